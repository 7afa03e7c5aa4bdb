"""Forks of OpenAI's gpt-2 that can train: nshepperd's fork and gpt-2-simple.

    [1 | 22.35] loss=3.69 avg=3.69
    [100 | 512.80] validation loss = 3.41
    Saving checkpoint/run1/model-100

The second number is the time since the start in seconds, including sampling and saving. `avg` is a
moving average of the loss.
"""

import re

from stepglass.logs.log_format import LogFormat
from stepglass.logs.reader import NUMBER, Record, field, plain_number

LINE = re.compile(
    rf"\[(\d{{1,15}}) \| ({NUMBER})\]\s+(?:(?P<val>validation loss)\s*=\s*|loss\s*=\s*)({NUMBER})"
)
SAVING = re.compile(r"(?<!\w)Saving \S{0,500}?model-(\d{1,15})$")


class Gpt2Fork:
    """Reads the console of gpt-2's training forks."""

    format = LogFormat("gpt-2", elapsed_name="[iteration | seconds]")

    def __init__(self) -> None:
        self._before: tuple[int, float] | None = None  # iteration and time of the line before

    def read(self, text: str) -> list[Record]:
        if "loss" in text and (found := LINE.search(text)):
            where = {"iter": int(found[1]), "elapsed_s": plain_number(found[2])}
            loss = plain_number(found[4])
            if found["val"]:
                return [{"kind": "eval", **where, "val_loss": loss}]
            record = {"kind": "iter", **where, "loss": loss, "avg_loss": field(text, "avg")}
            return [record | self._time(int(found[1]), where["elapsed_s"])]
        if "Saving " in text and (found := SAVING.search(text)):
            return [{"kind": "checkpoint", "iter": int(found[1])}]
        return []

    def _time(self, iteration: int, elapsed_s: float | None) -> Record:
        """The mean since the line before."""
        if elapsed_s is None:
            return {}
        before, self._before = self._before, (iteration, elapsed_s)
        if before is None or iteration <= before[0] or elapsed_s < before[1]:
            return {}
        steps = iteration - before[0]
        return {"time_ms": 1000 * (elapsed_s - before[1]) / steps, "window": steps}
