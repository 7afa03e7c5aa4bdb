"""modded-nanogpt: the log files of all its records, and of parameter-golf, which prints the same.

    step:60/6200 train_loss:5.7158 train_time:10665ms step_avg:213.30ms
    step:2125/3350 val_loss:3.42888 train_time:316.910s step_avg:147.02ms
    step:1000/10000 loss:3.3139 t:91682ms avg:91.7ms
    final_int8_zlib_roundtrip val_loss:2.0727 val_bpb:1.2244 eval_time:1401ms

`train_time` is the time since the clock was last set to zero. The clock stops during validation. In
logs up to January 2025, it is reset once more after ten steps, and `step_avg` is nan until then. So
the time of a step is the difference of two lines, if the clock was not reset between them. Later
scripts warm up before the clock starts; some do not, and their first steps are slow. Many logs
print only validations. A log begins with the source code of the script that wrote it.
"""

import math
import re
from dataclasses import replace

from stepglass.logs.log_format import LogFormat
from stepglass.logs.reader import NUMBER, Record, number, plain_number

STEP = re.compile(r"(?<![\w/-])step:(\d{1,15})/(\d{1,15})\s+(.*)")
CLOCK = re.compile(rf"\b(?:train_time|t):({NUMBER})(ms|s)\b")
AVERAGE = re.compile(rf"\b(?:step_)?avg:({NUMBER})ms")
TRAIN = re.compile(rf"(?<!\w)(?:train_)?loss:({NUMBER})")
VAL = re.compile(rf"\bval_loss:({NUMBER})")
BPB = re.compile(rf"\bval_bpb:({NUMBER})")
# After training: the quantized model, averaged weights and other ways to evaluate.
AFTER = re.compile(rf"(?:^|\s)(\w{{1,60}}) val_loss:{NUMBER}\s+val_bpb:{NUMBER}(?=\s|$)")
TOOK = re.compile(rf"\beval_time:({NUMBER})ms\b")
STOPPED = re.compile(r"stopping_early: \w+ train_time:\d+ms step:(\d{1,15})/")
ALLOCATED = re.compile(r"peak memory allocated: (\d{1,15}) MiB(?: reserved: (\d{1,15}) MiB)?")
CONSUMPTION = re.compile(r"peak memory consumption: (\d{1,15}) MiB")
PARAMETERS = re.compile(r"^model_params:(\d{1,15})$")
START_RATIO = 1.5  # the first time to the next
LEAST_START_MS = 500.0
TOKENS = re.compile(r"^train_batch_tokens:(\d{1,15}) ")


class Modded:
    """Reads modded-nanogpt's log files, and the consoles that print the same lines."""

    format = LogFormat(
        "modded-nanogpt",
        limits=("format-modded-nanogpt", "format-untimed-validation"),
        slows_down_by_plan=True,
        elapsed_name="train_time",
        elapsed_excludes=("eval", "warmup"),
    )

    def __init__(self) -> None:
        self._step: int | None = None  # step of the previous line
        self._clock = 0.0
        self._prints_steps = False  # a line of a step was printed, not only validations
        self._times: list[tuple[float, int]] = []  # the first two, with their numbers of steps

    def read(self, text: str) -> list[Record]:
        if "train_time:" in text or " t:" in text:
            found, clock = STEP.search(text), CLOCK.search(text)
            if found and clock:
                return self._line(int(found[1]), int(found[2]), clock, found[3])
            if found := STOPPED.search(text):
                event = {"kind": "event", "name": "stopped-early", "iter": int(found[1])}
                return [{**event, "detail": text}]
            return []
        if "val_loss:" in text and self._step is not None and (found := AFTER.search(text)):
            return [self._after(found[1].removesuffix("_exact"), text)]
        if found := PARAMETERS.search(text):
            return [{"kind": "start", "parameters": number(found[1])}]
        if found := TOKENS.search(text):
            return [{"kind": "start", "tokens_per_iter": number(found[1])}]
        return self._memory(text) if "peak memory" in text else []

    def _memory(self, text: str) -> list[Record]:
        if found := ALLOCATED.search(text):
            start: Record = {"kind": "start", "peak_memory_mb": number(found[1])}
            if found[2]:
                start["reserved_memory_mb"] = number(found[2])
            return [start]
        # llm.c prints this line too, so it counts only after a step of modded-nanogpt.
        if self._step is not None and (found := CONSUMPTION.search(text)):
            return [{"kind": "start", "peak_memory_mb": number(found[1])}]
        return []

    def _after(self, name: str, text: str) -> Record:
        val, bpb, took = VAL.search(text), BPB.search(text), TOOK.search(text)
        return {
            "kind": "eval",
            "iter": self._step,
            "set": name,
            "val_loss": plain_number(val[1]) if val else None,
            "val_bpb": plain_number(bpb[1]) if bpb else None,
            "time_ms": plain_number(took[1]) if took else None,
        }

    def _line(self, step: int, last: int, clock: re.Match[str], rest: str) -> list[Record]:
        total = (plain_number(clock[1]) or 0.0) * (1000 if clock[2] == "s" else 1)
        found = AVERAGE.search(rest)
        average = plain_number(found[1]) if found else None
        if self._step is not None and step < self._step:
            self._prints_steps = False  # another run
        val, bpb = VAL.search(rest), BPB.search(rest)
        self._prints_steps |= not val
        time_ms, window = self._time(step, total, average)
        if time_ms and len(self._times) < 2:
            # The first line may be a mean since the clock started.
            self._look_at_start(time_ms, window or max(1, round(total / time_ms)))
        where: Record = {"iter": step, "train_time_ms": total, "max_iters": last}
        if average is None or not math.isnan(average):  # before the reset, the clock differs
            where["elapsed_s"] = total / 1000
        timed: Record = {"time_ms": time_ms, "window": window}
        if not val:
            loss = TRAIN.search(rest)
            return [
                {"kind": "iter", "loss": plain_number(loss[1]) if loss else None, **timed, **where}
            ]
        record = {"kind": "eval", "val_loss": plain_number(val[1]), **where}
        if bpb:
            record["val_bpb"] = plain_number(bpb[1])
        # Without lines of steps, the validations are all that tells the time of a step.
        if self._prints_steps or time_ms is None:
            return [record]
        return [record, {"kind": "iter", "loss": None, **timed, **where}]

    def _look_at_start(self, time_ms: float, window: int) -> None:
        """If the first steps took much longer than the next, the clock ran during the start-up."""
        self._times.append((time_ms, window))
        first_ms, num_steps = self._times[0]
        is_slower = first_ms > START_RATIO * time_ms
        if is_slower and (first_ms - time_ms) * num_steps > LEAST_START_MS:
            self.format = replace(self.format, elapsed_excludes=("eval",))

    def _time(
        self, step: int, clock: float, average: float | None
    ) -> tuple[float | None, int | None]:
        """Milliseconds per step since the previous line and the number of those steps. None if the
        clock was reset and does not say when."""
        before, since = self._step, self._clock
        if before == step and clock >= since:
            return None, None  # validation of a step that was already printed
        self._step, self._clock = step, clock
        if before is None and not self._prints_steps and average and step:
            return average, None  # an excerpt from the middle: a mean of unknown length
        if before is None or step <= before:
            return None, None
        if average and average > 0:
            # The number of steps since the last reset. If that reset is after the previous line,
            # the difference of the two clocks is meaningless.
            num_steps = clock / average
            if step - num_steps > before + 0.5:
                window = round(num_steps)
                return (clock / window, window) if window else (None, None)
        if clock < since:
            return None, None
        return (clock - since) / (step - before), step - before
