"""mlx-lm: fine-tuning on Apple silicon.

    Iter 1: Val loss 2.086, Val took 17.177s
    Iter 25: Train loss 1.593, Learning Rate 7.000e-05, It/sec 0.999, Tokens/sec 387.697, ...
    Iter 100: Saved adapter weights to adapters/adapters.safetensors and ...

Loss and rates are means since the previous report, without evaluation. `Trained Tokens` counts from
the start.
"""

import re

from stepglass.logs.log_format import LogFormat
from stepglass.logs.reader import NUMBER, Record, field, number

LINE = re.compile(r"(?<![\w/-])Iter (\d{1,15}): (Train loss|Val loss|Saved) (.{1,1000})")
LOSS = re.compile(rf"({NUMBER})(?![\w.])")
FIELDS = {
    "lr": "Learning Rate",
    "rate_per_s": "It/sec",
    "tok_s": "Tokens/sec",
    "trained_tokens": "Trained Tokens",
    "peak_gb": "Peak mem",
}


class MlxLM:
    """Reads the console of `mlx_lm.lora`."""

    format = LogFormat("mlx-lm")

    def read(self, text: str) -> list[Record]:
        if "Iter " not in text or not (found := LINE.search(text)):
            return []
        iteration, rest = int(found[1]), found[3]
        if found[2] == "Saved":
            return [{"kind": "checkpoint", "iter": iteration}]
        loss = LOSS.match(rest)
        if not loss:
            return []
        if found[2] == "Val loss":
            time_s = field(rest, "Val took", "s")
            time_ms = None if time_s is None else 1000 * time_s
            val_loss = number(loss[1])
            return [{"kind": "eval", "iter": iteration, "val_loss": val_loss, "time_ms": time_ms}]
        said = {name: field(rest, key) for name, key in FIELDS.items()}
        return [{"kind": "iter", "iter": iteration, "loss": number(loss[1]), **said}]
