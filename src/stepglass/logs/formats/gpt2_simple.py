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

    def read(self, text: str) -> list[Record]:
        if "loss" in text and (found := LINE.search(text)):
            where = {"iter": int(found[1]), "elapsed_s": plain_number(found[2])}
            loss = plain_number(found[4])
            if found["val"]:
                return [{"kind": "eval", **where, "val_loss": loss}]
            return [{"kind": "iter", **where, "loss": loss, "avg_loss": field(text, "avg")}]
        if "Saving " in text and (found := SAVING.search(text)):
            return [{"kind": "checkpoint", "iter": int(found[1])}]
        return []
