"""modded-nanogpt: the log files of all its records.

    step:60/6200 train_loss:5.7158 train_time:10665ms step_avg:213.30ms
    step:2125/3350 val_loss:3.42888 train_time:316.910s step_avg:147.02ms

`train_time` is the time since the clock was last set to zero. The clock stops during validation. In
logs up to January 2025, it is reset once more after ten steps. So the time of a step is the
difference of two lines, if the clock was not reset between them. A log begins with the source code
of the script that wrote it.
"""

import re

from stepglass.logs.log_format import LogFormat
from stepglass.logs.reader import NUMBER, Record, number

STEP = re.compile(r"(?<![\w/-])step:(\d{1,15})/(\d{1,15})\s+(.*)")
CLOCK = re.compile(rf"\btrain_time:({NUMBER})(ms|s)\b")
AVERAGE = re.compile(rf"\bstep_avg:({NUMBER})ms")
TRAIN = re.compile(rf"\btrain_loss:({NUMBER})")
VAL = re.compile(rf"\bval_loss:({NUMBER})")
ALLOCATED = re.compile(r"peak memory allocated: (\d{1,15}) MiB(?: reserved: (\d{1,15}) MiB)?")
CONSUMPTION = re.compile(r"peak memory consumption: (\d{1,15}) MiB")


class Modded:
    """Reads modded-nanogpt's log files, and the consoles that print the same lines."""

    format = LogFormat("modded-nanogpt", limits=("format-modded-nanogpt",), slows_down_by_plan=True)

    def __init__(self) -> None:
        self._step: int | None = None  # step of the previous line
        self._clock = 0.0

    def read(self, text: str) -> list[Record]:
        if "train_time:" in text:
            found, clock = STEP.search(text), CLOCK.search(text)
            return (
                self._line(int(found[1]), int(found[2]), clock, found[3]) if found and clock else []
            )
        if "peak memory" not in text:
            return []
        if found := ALLOCATED.search(text):
            start: Record = {"kind": "start", "peak_memory_mb": number(found[1])}
            if found[2]:
                start["reserved_memory_mb"] = number(found[2])
            return [start]
        # llm.c prints this line too, so it counts only after a step of modded-nanogpt.
        if self._step is not None and (found := CONSUMPTION.search(text)):
            return [{"kind": "start", "peak_memory_mb": number(found[1])}]
        return []

    def _line(self, step: int, last: int, clock: re.Match[str], rest: str) -> list[Record]:
        total = (number(clock[1]) or 0.0) * (1000 if clock[2] == "s" else 1)
        average = AVERAGE.search(rest)
        time_ms = self._time(step, total, number(average[1]) if average else None)
        if val := VAL.search(rest):
            record: Record = {"kind": "eval", "iter": step, "val_loss": number(val[1])}
        else:
            loss = TRAIN.search(rest)
            record = {"kind": "iter", "iter": step, "loss": number(loss[1]) if loss else None}
            record["time_ms"] = time_ms
        return [{**record, "train_time_ms": total, "max_iters": last}]

    def _time(self, step: int, clock: float, average: float | None) -> float | None:
        """Milliseconds per step since the previous line, or None if the clock was reset."""
        before, since = self._step, self._clock
        if before == step and clock >= since:
            return None  # validation of a step that was already printed
        self._step, self._clock = step, clock
        if before is None or step <= before or clock < since:
            return None
        # clock / average is the number of steps since the last reset. If that reset is after the
        # previous line, the difference of the two clocks is meaningless.
        if average and average > 0 and step - clock / average > before + 0.5:
            return None
        return (clock - since) / (step - before)
