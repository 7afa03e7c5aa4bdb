"""MetricLogger, which torchvision's references, DETR, DeiT, MAE and many others share; and log.txt.

    Epoch: [0]  [ 103/5005]  eta: 4:43:31  lr: 0.1  loss: 6.853 (6.945)  time: 2.540  data: 0.033
    Test: Total time: 0:00:25 (0.6412 s / it)
    * Acc@1 78.836 Acc@5 94.466 loss 0.933
    {"train_lr": 8.1e-05, "train_loss": 3.2, "test_loss": 0.93, "test_acc1": 78.8, "epoch": 249}

`loss` is the median of the last 20 iterations, with the mean of the epoch in brackets. `time` is
the mean of the last 20 iterations, and includes `data`.
"""

import json
import re
from typing import Any

from stepglass.logs.bars import clock_seconds
from stepglass.logs.formats.running_mean import MeanOfLast
from stepglass.logs.log_format import LogFormat
from stepglass.logs.reader import NUMBER, Record, number

WINDOW = 20  # iterations that `time` is the mean of, if the epoch has had as many
EPOCH = re.compile(
    r"Epoch: \[(?P<epoch>\d{1,9})(?:/\d{1,9})?\]\s+\[\s*(?P<n>\d{1,12})/(?P<total>\d{1,12})\]\s+"
    r"(?P<rest>(?:eta|lr|\w{0,20}loss): .*)"
)
PAIR = re.compile(rf"(?<!\w)([A-Za-z][\w/@.]*):\s+({NUMBER})(?:\s+\(({NUMBER})\))?")
TESTED = re.compile(r"(?<!\w)Test:\s+Total time: ([\d:]{4,12}) ")
AVERAGED = re.compile(r"Averaged stats: (.*)")
ACCURACY = re.compile(
    rf"\*?\s*(?:Test:\s+)?\*?\s*Acc@1 ({NUMBER})(?: Acc@5 ({NUMBER}))?(?: loss ({NUMBER}))?$"
)


LOG_TXT = LogFormat(
    "metric-logger",
    limits=("format-one-line-per-epoch",),
    loss_is_nats=False,
    counts="epochs",
)


class MetricLogger:
    """Reads the console of trainers with a MetricLogger, and their log.txt."""

    format = LogFormat(
        "metric-logger", limits=("format-metric-logger",), loss_is_nats=False, time_holds_data=True
    )

    def __init__(self) -> None:
        self._means = MeanOfLast(WINDOW)
        self._iter: int | None = None
        self._is_test = False  # the newest lines are of an evaluation
        self.has_taken = False

    def read(self, text: str) -> list[Record]:
        self.has_taken = False
        if "Epoch: [" in text and (found := EPOCH.search(text)):
            self._is_test = False
            return self._iteration(found)
        if "Test:" in text:
            self._is_test = self._is_test or "eta: " in text or "Total time" in text
            self.has_taken = "eta: " in text and self._iter is not None
            if self._iter is not None and (found := TESTED.search(text)):
                time_ms = 1000 * clock_seconds(found[1])
                return [{"kind": "eval", "iter": self._iter, "time_ms": time_ms}]
        if "Acc@1" in text and self._iter is not None and (found := ACCURACY.search(text)):
            return [self._accuracy(found)]
        if self._is_test and "Averaged stats" in text and (found := AVERAGED.search(text)):
            return self._averaged(found[1])
        if '"epoch"' in text and '"train_' in text and text.startswith("{"):
            found_rows = _log_txt(text)
            if found_rows and self._iter is None:
                self.format = LOG_TXT
            return found_rows
        return []

    def _iteration(self, found: re.Match[str]) -> list[Record]:
        said = {key: number(value) for key, value, _ in PAIR.findall(found["rest"])}
        losses = [key for key in said if key.endswith("loss")]
        name = "loss" if "loss" in said else losses[0] if len(losses) == 1 else None
        if name is None or "time" not in said:
            return []
        epoch, n, total = int(found["epoch"]), int(found["n"]), int(found["total"])
        self._iter = epoch * total + n
        named = ((key, said.get(key)) for key in ("time", "data"))
        means = {key: mean for key, mean in named if mean is not None}
        # Lines that are closer than the window repeat each other's times.
        own = self._means.since_line_before(epoch, n, means) if "time" in means else None
        times, window = own or ({}, None)
        return [
            {
                "kind": "iter",
                "iter": n,
                "epoch": epoch,
                "epoch_iters": total,
                "global_iter": self._iter,
                "loss": said[name],
                "lr": said.get("lr"),
                "grad_norm": said.get("grad_norm"),
                "window": window,
                "samples_per_s": said.get("img/s"),
                **{f"{name}_ms": 1000 * seconds for name, seconds in times.items()},
            }
        ]

    def _accuracy(self, found: re.Match[str]) -> Record:
        values = {"acc1": number(found[1]), "acc5": number(found[2])}
        metrics = {key: value for key, value in values.items() if value is not None}
        loss = number(found[3])
        return {"kind": "eval", "iter": self._iter, "val_loss": loss, "metrics": metrics}

    def _averaged(self, rest: str) -> list[Record]:
        """DETR's means over the evaluation: those in brackets."""
        means = {key: number(mean) for key, _, mean in PAIR.findall(rest) if mean}
        loss = means.get("loss")
        if loss is None or self._iter is None:
            return []
        return [{"kind": "eval", "iter": self._iter, "val_loss": loss}]


def _log_txt(text: str) -> list[Record]:
    """A line of log.txt: one epoch, counted from 0."""
    try:
        line: Any = json.loads(text)
    except (ValueError, RecursionError):
        return []
    epoch = line.get("epoch") if isinstance(line, dict) else None
    if type(epoch) is not int or "train_loss" not in line:
        return []
    # An integer may be too large for float().
    said = {key: number(str(v)) for key, v in line.items() if type(v) in (int, float)}
    where: Record = {"iter": epoch, "epoch": epoch}
    train = {"loss": said.get("train_loss"), "lr": said.get("train_lr")}
    result: list[Record] = [{"kind": "iter", **where, **train}]
    tested = {key[5:]: value for key, value in said.items() if key.startswith("test_")}
    if tested:
        val_loss = tested.pop("loss", None)
        found = {"val_loss": val_loss, "metrics": tested or None}
        result.append({"kind": "eval", **where, **found})
    return result
