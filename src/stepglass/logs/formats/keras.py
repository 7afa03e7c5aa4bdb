"""Keras: the bar of each epoch, and CSVLogger's file.

    Epoch 2/100
    423/423 [==============================] - 186s 439ms/step - loss: 1.8087 - val_loss: 1.4
    1875/1875 ━━━━━━━━━━━━━━━━━━━━ 5s 2ms/step - accuracy: 0.8790 - loss: 0.4259
    epoch,acc,loss,val_acc,val_loss

One record for each epoch. Its loss is the mean over the epoch, and its time includes the evaluation
whose results stand in the same line. An iteration is a step, as the bar counts them; where the log
does not say `/step` the bar may count samples, so an iteration is an epoch.
"""

import re
from dataclasses import replace

from stepglass.logs.log_format import LogFormat
from stepglass.logs.reader import NUMBER, Record, number

HEADING = re.compile(r"Epoch (\d{1,9})/(\d{1,9})$")
BAR = re.compile(
    r"(?:(?P<n>\d{1,12})/(?P<total>\d{1,12})\s+(?:\[[=>.]{2,100}\]|[━╸─╺ ]{2,200})?\s*|^)(?:- )?"
    r"(?P<eta>ETA: )?(?:(?P<s>\d{1,9})s|\d{1,3}(?::\d\d){1,2})(?P<rest>(?: -)? \S.{0,4000})?$"
)
PER_STEP = re.compile(r"(?<![\w.])(\d{1,9})(us|ms|s)/(step|sample)")
PAIR = re.compile(rf"(?<=- )([A-Za-z][\w./ -]{{0,80}}?): ({NUMBER})(?=$| )")
SAVING = re.compile(r"Epoch \d{1,9}: .{0,500}?saving model to ")
UNIT_MS = {"us": 0.001, "ms": 1.0, "s": 1000.0}
FORMAT = LogFormat("keras", limits=("format-keras",), loss_is_nats=False)
FORMAT_WITH_EVALS = replace(FORMAT, time_holds_eval=True)


class Keras:
    """Reads Keras' console, of any version."""

    format = FORMAT

    def __init__(self) -> None:
        self._epoch: int | None = None  # of the latest heading
        self._num_epochs: int | None = None
        self._num_bars = 0  # epochs that were counted because there is no heading
        self._is_open = False  # the heading's epoch has not ended
        self._held: re.Match[str] | None = None  # a bar that may not be the last of its epoch
        self._is_saved = False  # a checkpoint of the epoch that has not ended
        self._iter: int | None = None
        self.has_taken = False  # the last line was a heading or an unfinished bar

    def read(self, text: str) -> list[Record]:
        self.has_taken = False
        if "Epoch " in text and (found := HEADING.search(text)):
            self.has_taken = True
            before = self._end_held(int(found[1]) - 1)
            self._epoch, self._num_epochs = int(found[1]), int(found[2])
            self._is_open = True
            return before
        # A notebook keeps every state of a bar in one line: the last one counts.
        start = max(text.rfind(f" {mark}") for mark in ("[", "━")) if len(text) > 500 else -1
        start = text.rfind(" ", 0, start) + 1 if start > 0 else 0
        if "loss: " in text and (found := BAR.search(text, start)):
            return self._bar(found)
        if "saving model" in text and SAVING.search(text):
            if not self._is_open:
                return [{"kind": "checkpoint", "iter": self._iter}]
            self.has_taken = self._is_saved = True  # the bar of its epoch has not ended yet
        return []

    def flush(self) -> list[Record]:
        return self._end_held()

    def _bar(self, found: re.Match[str]) -> list[Record]:
        is_whole = _is_whole(found)
        if found["n"] is None and not self._is_open:
            return []  # without a count, only the heading shows that this is Keras
        # Keras 3 prints the time left before it ends the bar, in the place of the time spent.
        is_left = "━" in found[0] and found["s"] == "0"
        if not is_whole or is_left or (self._epoch is None and not self._num_bars):
            self.has_taken = True
            is_first = self._held is None and self._iter is None
            self._held = found
            return [{"kind": "start", "num_epochs": self._num_epochs}] if is_first else []
        self._held = None
        return self._records(found, None)

    def _end_held(self, epoch: int | None = None) -> list[Record]:
        """The records of the bar before. `epoch`: its number, if a heading has shown it."""
        held, self._held = self._held, None
        if held is None or (not _is_whole(held) and self._iter is not None):
            return []
        return self._records(held, None if self._epoch is not None else epoch)

    def _records(self, found: re.Match[str], epoch: int | None) -> list[Record]:
        said = {key: number(value) for key, value in PAIR.findall(found["rest"] or "")}
        if "loss" not in said:
            return []
        if self._epoch is not None and not self._is_open:  # evaluate() after training
            metrics = {k: v for k, v in said.items() if k != "loss" and v is not None}
            loss = {"iter": self._iter, "val_loss": said["loss"], "set": "evaluate"}
            return [{"kind": "eval", **loss, "metrics": metrics or None}]
        self._is_open = False
        if self._epoch is None:
            self._num_bars = epoch or self._num_bars + 1
        number_of_epoch = self._epoch or self._num_bars
        record = self._timed(found, number_of_epoch)
        record["loss"] = said["loss"]
        record["lr"] = said.get("learning_rate", said.get("lr"))
        self._iter = record["iter"]
        evaluation = evaluation_of(said, self._iter)
        if evaluation:
            self.format = FORMAT_WITH_EVALS
        was_saved, self._is_saved = self._is_saved, False
        save: list[Record] = [{"kind": "checkpoint", "iter": self._iter}] if was_saved else []
        return [record, *evaluation, *save]

    def _timed(self, found: re.Match[str], epoch: int) -> Record:
        """The record of an epoch's bar, with its number and time."""
        record: Record = {"kind": "iter", "epoch": epoch}
        has_ended, seconds = _is_whole(found), int(found["s"] or 0)
        per_step = PER_STEP.search(found["rest"] or "")
        if per_step is None or per_step[3] != "step" or found["n"] is None:
            record["iter"], record["max_iters"] = epoch, self._num_epochs
            if has_ended and seconds:
                record["time_ms"] = 1000.0 * seconds
            return record
        steps, total = int(found["n"]), int(found["total"])
        record["iter"] = (epoch - 1) * total + steps
        record["max_iters"] = self._num_epochs * total if self._num_epochs else None
        record["window"] = max(steps, 1)
        # Both are rounded to whole units. The larger number is the more precise one.
        if has_ended and seconds > int(per_step[1]):
            record["time_ms"] = 1000.0 * seconds / max(steps, 1)
        elif int(per_step[1]):
            record["time_ms"] = int(per_step[1]) * UNIT_MS[per_step[2]]
        return record


def _is_whole(bar: re.Match[str]) -> bool:
    return bar["n"] == bar["total"] and not bar["eta"] and bar["s"] is not None


def evaluation_of(said: dict[str, float | None], iteration: int | None) -> list[Record]:
    """The evaluation among the values of an epoch: those that begin with `val_`."""
    of_val = {key[4:]: value for key, value in said.items() if key.startswith("val_")}
    if not of_val:
        return []
    loss = of_val.pop("loss", None)
    metrics = {key: value for key, value in of_val.items() if value is not None}
    found = {"iter": iteration, "val_loss": loss, "metrics": metrics or None}
    return [{"kind": "eval", **found}]


class KerasCsv:
    """Reads the file of Keras' CSVLogger: one row for each epoch, counted from 0."""

    format = LogFormat("keras", counts_epochs=True, loss_is_nats=False)

    def __init__(self) -> None:
        self._header: list[str] | None = None
        self._separator = ","

    def read(self, text: str) -> list[Record]:
        if text.startswith("epoch"):
            self._separator = text[5:6]
            cells = text.split(self._separator) if self._separator in (",", ";", "\t") else []
            # Lightning's file has a column `step` as well.
            is_ours = "loss" in cells and "step" not in cells and len(set(cells)) == len(cells)
            self._header = cells if is_ours else None
            return []
        if self._header is None or not text[:1].isdecimal():
            return []
        cells = text.split(self._separator)
        if len(cells) != len(self._header) or not cells[0].isdecimal():
            return []
        said = {
            key: number(cell) for key, cell in zip(self._header, cells, strict=True) if cell != "NA"
        }
        epoch = int(cells[0][:15])
        record: Record = {"kind": "iter", "iter": epoch, "epoch": epoch, "loss": said.get("loss")}
        record["lr"] = said.get("learning_rate", said.get("lr"))
        return [record, *evaluation_of(said, epoch)]
