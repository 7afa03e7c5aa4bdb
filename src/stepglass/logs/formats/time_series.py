"""Time-Series-Library (TimesNet), Informer, Autoformer and the many that copied their loop.

    iters: 200, epoch: 2 | loss: 0.3120418
    speed: 0.0521s/iter; left time: 110.4012s
    Epoch: 2 cost time: 14.127403020858765
    Epoch: 2, Steps: 265 | Train Loss: 0.3198012 Vali Loss: 0.6810444 Test Loss: 0.3840561

`speed` divides the time since the previous such line by the iterations of this epoch since then.
The first one in an epoch therefore also contains the end of the epoch before and its evaluations,
and is no time of an iteration.
"""

import re

from stepglass.logs.log_format import LogFormat
from stepglass.logs.reader import NUMBER, Record, number

LOSS = re.compile(rf"(?<!\w)iters: (\d{{1,12}}), epoch: (\d{{1,9}}) \| loss: ({NUMBER})(?=\s|$)")
SPEED = re.compile(rf"(?<!\w)speed: ({NUMBER})\s?s/iter; left time: {NUMBER}\s?s")
SUMMARY = re.compile(
    rf"(?<!\w)Epoch: (\d{{1,9}}), Steps: (\d{{1,12}}) \| Train Loss: ({NUMBER}) Vali Loss: "
    rf"({NUMBER})(?: Vali Acc: ({NUMBER}))?(?: Test Loss: ({NUMBER}))?(?: Test Acc: ({NUMBER}))?"
)
COST = re.compile(rf"(?<!\w)Epoch: \d{{1,9}} cost time: {NUMBER}$")
LEARNING_RATE = re.compile(rf"(?<!\w)Updating learning rate to ({NUMBER})$")
SAVING = re.compile(rf"Validation loss decreased \({NUMBER} --> {NUMBER}\)\.\s+Saving model")


class TimeSeries:
    """Reads the console of that loop. A loss waits for the line with its speed."""

    format = LogFormat("time-series", limits=("format-time-series",), loss_is_nats=False)

    def __init__(self) -> None:
        self._epoch = 0  # of the latest line; 0 before the first
        self._n = 0  # iteration of this epoch in the latest line
        self._offset = 0  # iterations of the earlier epochs in this log
        self._steps: int | None = None  # iterations of an epoch, once printed
        self._lr: float | None = None
        self._waiting: Record | None = None
        self.has_taken = False  # the last line was understood, although it has no record

    def read(self, text: str) -> list[Record]:
        self.has_taken = False
        if "iters:" in text and (found := LOSS.search(text)):
            self.has_taken = True
            done = self.flush()
            self._loss(int(found[2]), int(found[1]), number(found[3]))
            return done
        if "speed:" in text and (found := SPEED.search(text)):
            return self._speed(number(found[1]))
        if "Epoch:" in text and (found := SUMMARY.search(text)):
            return self.flush() + self._summary(found)
        if "learning rate" in text and (found := LEARNING_RATE.search(text)):
            self._lr = number(found[1])
            self.has_taken = True
        elif "Saving model" in text and SAVING.search(text):
            return [{"kind": "checkpoint"}]
        elif "cost time" in text:
            self.has_taken = bool(COST.search(text))
        return []

    def flush(self) -> list[Record]:
        """The loss that no speed followed."""
        waiting, self._waiting = self._waiting, None
        return [waiting] if waiting else []

    def _loss(self, epoch: int, n: int, loss: float | None) -> None:
        window = self._move_to(epoch, n)
        self._waiting = {
            "kind": "iter",
            "iter": n,
            "global_iter": self._offset + n,
            "epoch": epoch,
            "loss": loss,
            "time_ms": None,
            "lr": self._lr,
            "window": window,
        }

    def _move_to(self, epoch: int, n: int) -> int | None:
        """The number of iterations since the previous line. None if its speed has more in it than
        them, or if the previous line is not in this log."""
        before, was_epoch = self._n, self._epoch
        self._n, self._epoch = n, epoch
        if was_epoch == 0 or epoch < was_epoch or (epoch == was_epoch and n <= before):
            self._offset = 0
            return n if epoch == 1 else None
        if epoch == was_epoch:
            return n - before
        self._offset += self._steps or before
        return None

    def _speed(self, speed: float | None) -> list[Record]:
        if self._waiting and self._waiting["window"] and speed is not None:
            self._waiting["time_ms"] = 1000 * speed
        return self.flush()

    def _summary(self, found: re.Match[str]) -> list[Record]:
        epoch, self._steps = int(found[1]), int(found[2])
        if epoch != self._epoch:  # an epoch may be too short for a line with a loss
            self._move_to(epoch, 0)
        said = [number(value) for value in found.groups()[2:]]
        end = self._offset + self._steps
        record: Record = {"kind": "eval", "iter": end, "train_loss": said[0], "val_loss": said[1]}
        if said[2] is not None:
            record["metrics"] = {"accuracy": said[2]}
        if said[3] is None:
            return [record]
        test: Record = {"kind": "eval", "iter": end, "set": "test", "val_loss": said[3]}
        if said[4] is not None:
            test["metrics"] = {"accuracy": said[4]}
        return [record, test]
