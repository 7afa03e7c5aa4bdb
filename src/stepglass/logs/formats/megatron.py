"""Megatron-LM and its forks.

    iteration  122/ 250000 | elapsed time per iteration (ms): 86545.2 | lm loss: 2.504220E+00 | ...
    validation loss at iteration 1000 | lm loss value: 2.724416E+00 | lm loss PPL: 1.524750E+01 |

The time is the mean over the iterations since the previous line. The counters of skipped and nan
iterations cover the same iterations. An iteration is skipped if its gradients overflow.
"""

import re

from stepglass.logs.log_format import LogFormat
from stepglass.logs.reader import NUMBER, Record, number

ITERATION = re.compile(r"(?<![\w/-])iteration\s+(\d{1,15})/\s*(\d{1,15})\s*\|(.*)")
VALUE = re.compile(rf"\s*({NUMBER})\s*$")
FIELDS = {
    "elapsed time per iteration (ms)": "time_ms",
    "elapsed time per iteration (s)": "time_ms",
    "lm loss": "loss",
    "learning rate": "lr",
    "grad norm": "grad_norm",
    "loss scale": "loss_scale",
    "global batch size": "global_batch_size",
    "consumed samples": "samples",
    "consumed tokens": "tokens",
    "throughput per GPU (TFLOP/s/GPU)": "tflops",
    "number of skipped iterations": "num_skipped",
    "number of nan iterations": "num_nan",
}
VALIDATION = re.compile(
    r"validation loss at iteration\s+(\d{1,15})\b(?!.*\btest set)"
    rf".*?\blm loss value:\s*({NUMBER})"
)
SAVING = re.compile(
    r"(?:saving checkpoint at|successfully saved checkpoint from) iteration\s+(\d{1,15})\s+to\b"
)


class Megatron:
    """Reads the console of Megatron-LM and of forks that print the same lines."""

    format = LogFormat("megatron", limits=("format-megatron",))

    def __init__(self) -> None:
        self._saved = -1

    def read(self, text: str) -> list[Record]:
        if "iteration" not in text:
            return []
        if "elapsed time per iteration" in text and (found := ITERATION.search(text)):
            return self._iteration(int(found[1]), int(found[2]), found[3])
        if "validation loss" in text and (found := VALIDATION.search(text)):
            return [{"kind": "eval", "iter": int(found[1]), "val_loss": number(found[2])}]
        if "checkpoint" in text and (found := SAVING.search(text)):
            # A second line with the same iteration reports that the save has finished. With
            # background saves, it comes some lines later.
            if int(found[1]) == self._saved:
                return []
            self._saved = int(found[1])
            return [{"kind": "checkpoint", "iter": self._saved}]
        return []

    def _iteration(self, iteration: int, last: int, rest: str) -> list[Record]:
        record: Record = {"kind": "iter", "iter": iteration, "loss": None, "time_ms": None}
        for piece in rest.split("|"):
            key, _, value = piece.rpartition(":")
            name = FIELDS.get(key.strip())
            if name and (found := VALUE.match(value)):
                record[name] = number(found[1])
                if key.strip().endswith("(s)"):
                    record[name] = 1000 * (number(found[1]) or 0.0)
        if record["time_ms"] is None:
            return []
        if iteration <= self._saved:
            self._saved = -1  # after a restart, the same iteration may be saved again
        return [{**record, "max_iters": last}]
