"""parameter-golf's second script, whose lines have a step without a name. The first one prints
those of modded-nanogpt.

    1500/20000 train_loss: 2.6386 train_time: 2.4m tok/s: 8213200
    4957/20000 val_loss: 2.3571 val_bpb: 1.0771
    stopping_early: wallclock_cap train_time: 599556ms step: 4957/20000
    diagnostic quantized val_loss:2.35491149 val_bpb:1.07603278 eval_time:10989ms

A tenth of a minute is too coarse to time a step. But `tok/s` is the mean since the clock started:
with the tokens of a step it gives the same clock, exactly. The clock stops during validation.
"""

import re

from stepglass.logs.formats.modded import AFTER, BPB, TOOK, VAL
from stepglass.logs.log_format import LogFormat
from stepglass.logs.reader import NUMBER, Record, number, plain_number

STEP = re.compile(rf"^\s*(\d{{1,15}})/(\d{{1,15}}) (train|val)_loss: ({NUMBER})(?=\s|$)(.*)")
MINUTES = re.compile(rf"\btrain_time: ({NUMBER})m\b")
SPEED = re.compile(rf"\btok/s: ({NUMBER})(?=\s|$)")
VAL_BPB = re.compile(rf"\bval_bpb: ({NUMBER})(?=\s|$)")
STOPPED = re.compile(r"stopping_early: \w+ train_time: \d+ms step: (\d{1,15})/")
TOKENS = re.compile(r"^\s*train_batch_tokens: (\d{1,15})$")
PARAMETERS = re.compile(r"^model_params:(\d{1,15})$")
ROUNDING_S = 3.1  # half of a tenth of a minute, and a little for the step that was going on


class ParameterGolf:
    """Reads the logs of parameter-golf's second script."""

    format = LogFormat(
        "parameter-golf",
        limits=("format-modded-nanogpt", "format-untimed-validation"),
        slows_down_by_plan=True,
        elapsed_name="train_time",
        elapsed_excludes=("eval", "warmup"),
    )

    def __init__(self) -> None:
        self._tokens: float | None = None  # of a step
        self._last: tuple[int, float] | None = None  # step and clock of the line before
        self._step: int | None = None

    def read(self, text: str) -> list[Record]:
        if "_loss: " in text and (found := STEP.match(text)):
            return self._line(found)
        if "stopping_early" in text and (found := STOPPED.search(text)):
            event = {"kind": "event", "name": "stopped-early", "iter": int(found[1])}
            return [{**event, "detail": text}]
        if "val_loss:" in text and self._step is not None and (found := AFTER.search(text)):
            val, bpb, took = VAL.search(text), BPB.search(text), TOOK.search(text)
            return [
                {
                    "kind": "eval",
                    "iter": self._step,
                    "set": found[1],
                    "val_loss": plain_number(val[1]) if val else None,
                    "val_bpb": plain_number(bpb[1]) if bpb else None,
                    "time_ms": plain_number(took[1]) if took else None,
                }
            ]
        if found := TOKENS.match(text):
            self._tokens = number(found[1])
            return [{"kind": "start", "tokens_per_iter": self._tokens}]
        if found := PARAMETERS.match(text):
            return [{"kind": "start", "parameters": number(found[1])}]
        return []

    def _line(self, found: re.Match[str]) -> list[Record]:
        step, loss, rest = int(found[1]), plain_number(found[4]), found[5]
        if self._step is not None and step < self._step:
            self._last = None  # another run
        self._step = step
        where: Record = {"iter": step, "max_iters": int(found[2])}
        if found[3] == "val":
            bpb = VAL_BPB.search(rest)
            figures = {"val_loss": loss, "val_bpb": plain_number(bpb[1]) if bpb else None}
            return [{"kind": "eval", **where, **figures}]
        record: Record = {"kind": "iter", "loss": loss, **where}
        clock, before = self._clock(step, rest), self._last
        if clock is None:
            return [record]
        self._last = (step, clock)
        record["elapsed_s"] = clock
        if before is not None and step > before[0] and clock > before[1]:
            record["window"] = step - before[0]
            record["time_ms"] = 1000 * (clock - before[1]) / (step - before[0])
        return [record]

    def _clock(self, step: int, rest: str) -> float | None:
        """Seconds since the clock started. None if `tok/s` does not fit the printed minutes: then
        it is the rate of something else."""
        speed, minutes = SPEED.search(rest), MINUTES.search(rest)
        rate = plain_number(speed[1]) if speed else None
        printed = plain_number(minutes[1]) if minutes else None
        if not rate or printed is None or self._tokens is None:
            return None
        seconds = step * self._tokens / rate
        return seconds if abs(seconds - 60 * printed) <= ROUNDING_S else None
