"""mlx-lm: fine-tuning on Apple silicon.

    Iter 1: Val loss 2.086, Val took 17.177s
    Iter 25: Train loss 1.593, Learning Rate 7.000e-05, It/sec 0.999, Tokens/sec 387.697, ...
    Iter 100: Saved adapter weights to adapters/adapters.safetensors and ...

Loss and rates are means since the previous report, without evaluation. So the first report includes
the warm-up. `Trained Tokens` counts from the start.
"""

import re

from stepglass.logs.log_format import LogFormat
from stepglass.logs.reader import NUMBER, Record, field, plain_number

LINE = re.compile(r"(?<![\w/-])Iter (\d{1,15}): (Train loss|Val loss|Saved) (.{1,1000})")
STARTING = re.compile(r"Starting training\.*, iters: (\d{1,15})")
LOSS = re.compile(rf"({NUMBER})(?![\w.])")
FIELDS = {
    "lr": "Learning Rate",
    "rate_per_s": "It/sec",
    "tok_s": "Tokens/sec",
    "trained_tokens": "Trained Tokens",
    "peak_gb": "Peak(?: mem)?",
}


class MlxLM:
    """Reads the console of `mlx_lm.lora`."""

    format = LogFormat("mlx-lm")

    def __init__(self) -> None:
        self._reported: int | None = None  # iteration of the latest report; 0 at the start

    def read(self, text: str) -> list[Record]:
        if "Starting training" in text and (found := STARTING.search(text)):
            self._reported = 0
            return [{"kind": "start", "config": {"max_iters": int(found[1])}}]
        if "Iter " not in text or not (found := LINE.search(text)):
            return []
        iteration, rest = int(found[1]), found[3]
        if iteration == 1 or (self._reported or 0) > iteration:
            self._reported = 0  # training begins at 1, also with the weights of an earlier run
        if found[2] == "Saved":
            return [{"kind": "checkpoint", "iter": iteration}]
        loss = LOSS.match(rest)
        if not loss:
            return []
        if found[2] == "Val loss":
            time_s = field(rest, "Val took", "s")
            time_ms = None if time_s is None else 1000 * time_s
            val_loss = plain_number(loss[1])
            return [{"kind": "eval", "iter": iteration, "val_loss": val_loss, "time_ms": time_ms}]
        record: Record = {"kind": "iter", "iter": iteration, "loss": plain_number(loss[1])}
        if self._reported is not None and iteration > self._reported:
            record["window"] = iteration - self._reported
        self._reported = iteration
        record |= {name: field(rest, key) for name, key in FIELDS.items()}
        if record["peak_gb"] is not None:
            record["memory_bytes"] = 1e9 * record["peak_gb"]
        return [record]
