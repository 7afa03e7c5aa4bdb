"""nanotron.

    iteration: 120 / 9000 | consumed_tokens: 126M | elapsed_time_per_iteration_ms: 1.82K |
    tokens_per_sec: 576K | lm_loss: 6.71 | lr: 0.00024 | grad_norm: 1.2 | ...      (one line)

Numbers have three digits, with K, M, G or T for thousands and more. The time is that of the one
iteration, without the checkpoint after it. New versions call it `time_per_iteration_ms`.
"""

import re

from stepglass.logs.log_format import LogFormat
from stepglass.logs.reader import NUMBER, Record, number

LINE = re.compile(r"(?<![\w/-])iteration:\s*(\d{1,15})\s*/\s*(\d{1,15})\s*\|(.{1,8000})")
VALUE = re.compile(rf"({NUMBER})([KMGBTPE]?)")
FACTOR = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
FIELDS = {
    "elapsed_time_per_iteration_ms": "time_ms",
    "time_per_iteration_ms": "time_ms",
    "tokens_per_sec": "tok_s",
    "consumed_tokens": "tokens",
    "lm_loss": "loss",
    "lr": "lr",
    "grad_norm": "grad_norm",
    "model_tflops_per_gpu": "tflops",
}
SAVING = re.compile(r"Saving checkpoint at \S*/(\d{1,15})/?$")


class Nanotron:
    """Reads nanotron's console."""

    format = LogFormat("nanotron", limits=("format-nanotron",))

    def read(self, text: str) -> list[Record]:
        if "time_per_iteration_ms:" in text and (found := LINE.search(text)):
            return self._iteration(found)
        if "Saving checkpoint at" in text and (found := SAVING.search(text)):
            return [{"kind": "checkpoint", "iter": int(found[1])}]
        return []

    def _iteration(self, found: re.Match[str]) -> list[Record]:
        record: Record = {"kind": "iter", "iter": int(found[1]), "loss": None}
        for piece in found[3].split("|"):
            key, _, value = piece.partition(":")
            name = FIELDS.get(key.strip())
            if name and (said := VALUE.fullmatch(value.strip())):
                record[name] = _scaled(said[1], said[2])
        if record.get("time_ms") is None or "lm_loss:" not in found[3]:
            return []  # without a loss, the line is cut off: a NaN is printed
        return [record | {"max_iters": int(found[2])}]


def _scaled(digits: str, suffix: str) -> float | None:
    value = number(digits)
    return None if value is None else float(f"{value * FACTOR[suffix]:.6g}")
