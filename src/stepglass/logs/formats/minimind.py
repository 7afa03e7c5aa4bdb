"""MiniMind.

    Epoch:[0/3](200/8800) loss:4.902 lr:0.000300000000 epoch_Time:41.0min:
    Epoch:[1/2](200/8800), loss: 4.9021, ..., lr: 0.00030000, epoch_time: 41.0min

Despite its name, `epoch_time` is what is left of the epoch, in whole minutes: far too coarse for
the time of a step. A step is a micro-batch. Its number starts again in every epoch. Epochs are
counted from 0 in some versions and from 1 in others.
"""

import re

from stepglass.logs.log_format import LogFormat
from stepglass.logs.reader import NUMBER, Record, number

LINE = re.compile(
    r"(?<!\w)Epoch:\s?\[(?P<epoch>\d{1,9})/(?P<epochs>\d{1,9})\]"
    r"\((?P<step>\d{1,12})/(?P<steps>\d{1,12})\)(?P<comma>,?)(?P<rest>.{1,400})"
)
LOSS = re.compile(rf"(?<![\w ])\s?loss:\s?({NUMBER})(?=[,\s])")
RATE = re.compile(rf"(?<!\w)(?:lr|learning_rate):\s?({NUMBER})(?=[,\s])")
LEFT = re.compile(rf"(?<!\w)epoch_[Tt]ime:\s?{NUMBER}\s?min")


class MiniMind:
    """Reads the console of MiniMind's trainers."""

    format = LogFormat("minimind", limits=("format-minimind",))

    def __init__(self) -> None:
        self._first_epoch: int | None = None  # 0 or 1, once a line tells

    def read(self, text: str) -> list[Record]:
        if "Epoch:" not in text or not (found := LINE.search(text)):
            return []
        loss, rate = LOSS.search(found["rest"]), RATE.search(found["rest"])
        if not loss or not rate or not LEFT.search(found["rest"]):
            return []
        epoch, step, steps = int(found["epoch"]), int(found["step"]), int(found["steps"])
        record: Record = {
            "kind": "iter",
            "iter": step,
            "loss": number(loss[1]),
            "time_ms": None,
            "lr": number(rate[1]),
            "epoch": epoch,
        }
        if epoch == 0:
            self._first_epoch = 0
        elif found["comma"]:
            self._first_epoch = 1
        before = epoch - (1 if self._first_epoch is None else self._first_epoch)
        record["global_iter"] = before * steps + step
        if self._first_epoch is not None:
            record["max_iters"] = (int(found["epochs"]) + 1 - self._first_epoch) * steps
        return [record]
