"""MaxText.

    completed step: 5, seconds: 1.230, TFLOP/s/device: 80.1, Tokens/s/device: 5000.2,
    total_weights: 8192, loss: 10.800                                               (one line)
    eval metrics after step: 9, loss=3.120, total_weights=65536.0

`seconds` runs from the dispatch of one step to the next, so the first step holds compilation and an
evaluation or checkpoint is part of the step after it. Rates are those of one device.
"""

import re

from stepglass.logs.log_format import LogFormat
from stepglass.logs.reader import NUMBER, Record, number

STEP = re.compile(
    r"(?<!\w)completed (?:profiler activation/deactivation )?step: (\d{1,15}), "
    rf"seconds: ({NUMBER})(?=[,\s]|$)(.*)"
)
PAIR = re.compile(rf", ([A-Za-z][\w/ ]{{0,40}}): ({NUMBER})(?=,|\s|$)")
EVAL = re.compile(
    r"(?:(?:eval metrics after step: |Completed eval after train step )(?P<a>\d{1,15}),"
    r"|average loss after step=(?P<b>\d{1,15}):.*?,) "
    rf"(?:eval_)?loss=(?P<loss>{NUMBER})(?=,|\s|$)"
)
SAVED = re.compile(r"(?<!\w)saved a checkpoint at step (\d{1,15})$")
NAMES = {
    "loss": "loss",
    "Tokens/s/device": "tok_s",
    "TFLOP/s/device": "tflops",
    "TFLOP/s": "tflops",
    "total_weights": "tokens_in_step",
}


class MaxText:
    """Reads MaxText's console."""

    format = LogFormat("maxtext", limits=("next-line",), times_everything=True)

    def read(self, text: str) -> list[Record]:
        if "completed " in text and (found := STEP.search(text)):
            said = {
                NAMES[key]: number(value) for key, value in PAIR.findall(found[3]) if key in NAMES
            }
            seconds = number(found[2])
            if seconds is None or "loss" not in said:
                return []
            return [{"kind": "iter", "iter": int(found[1]), "time_ms": 1000 * seconds, **said}]
        if "loss=" in text and (found := EVAL.search(text)):
            step = int(found["a"] or found["b"])
            return [{"kind": "eval", "iter": step, "val_loss": number(found["loss"])}]
        if "saved a checkpoint" in text and (found := SAVED.search(text)):
            return [{"kind": "checkpoint", "iter": int(found[1])}]
        return []
