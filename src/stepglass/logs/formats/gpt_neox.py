"""GPT-NeoX, which joins Megatron's lines with DeepSpeed's engine.

    samples/sec: 12.345 | iteration  100/ 320000 | elapsed time per iteration (ms): 900.1 | learning
    rate: 6.000E-04 | approx flops per GPU: 98.1TFLOPS | lm_loss: 2.1E+00 | number of ... (one line)
    validation results at iteration 1000 | lm_loss value: 2.724416E+00 | lm_loss_ppl value: ...

The time is the mean over the iterations since the previous line. A validation or checkpoint in
between is part of it. The loss is the mean of the same iterations, without the skipped ones.
DeepSpeed's `steps: 100 loss: ...` stands before the same iteration's line and says less.
"""

import re

from stepglass.logs.formats.deepspeed import PIPELINE, PROGRESS, engine_records
from stepglass.logs.log_format import LogFormat
from stepglass.logs.reader import NUMBER, Record, number

ITERATION = re.compile(
    rf"samples/sec:\s*({NUMBER})\s*\|\s*iteration\s+(\d{{1,15}})/\s*(\d{{1,15}})\s*\|(.*)"
)
# Numbers are printed with `E`, which writes NAN and INF.
VALUE = re.compile(rf"\s*({NUMBER})\s*(%?)\s*$", re.IGNORECASE)
FIELDS = {
    "elapsed time per iteration (ms)": "time_ms",
    "learning rate": "lr",
    "lm_loss": "loss",
    "lm loss": "loss",
    "MFU": "mfu",
    "loss scale": "loss_scale",
    "number of skipped iterations": "num_skipped",
    "number of nan iterations": "num_nan",
}
VALIDATION = re.compile(
    r"validation (?:results|loss) at (?:iteration\s+(\d{1,15})|the end of training for val data)"
    rf"\s*\|.*?\blm[_ ]loss value:\s*({NUMBER})",
    re.IGNORECASE,
)


class GPTNeoX:
    """Reads GPT-NeoX's console."""

    format = LogFormat(
        "gpt-neox", limits=("next-line",), times_everything=True, mfu_is_of_own_device=True
    )

    def __init__(self) -> None:
        self.has_taken = False  # the last line repeats what an iteration's line says

    def read(self, text: str) -> list[Record]:
        self.has_taken = False
        if "elapsed time per iteration (ms)" in text and (found := ITERATION.search(text)):
            return self._iteration(found)
        if "validation" in text and (found := VALIDATION.search(text)):
            iteration = int(found[1]) if found[1] else None
            return [{"kind": "eval", "iter": iteration, "val_loss": number(found[2])}]
        if "step" in text:
            self.has_taken = bool(PIPELINE.search(text) or PROGRESS.search(text))
            return engine_records(text)
        return []

    def _iteration(self, found: re.Match[str]) -> list[Record]:
        record: Record = {"kind": "iter", "iter": int(found[2]), "loss": None, "is_mean": True}
        for piece in found[4].split("|"):
            key, _, value = piece.rpartition(":")
            name = FIELDS.get(key.strip())
            if name and (said := VALUE.match(value)):
                record[name] = number(said[1])
        if "time_ms" not in record:
            return []
        return [{**record, "samples_per_s": number(found[1]), "max_iters": int(found[3])}]
