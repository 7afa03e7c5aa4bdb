"""OpenMMLab: MMEngine and its predecessor MMCV, on the console and as JSON lines.

    Epoch(train)  [1][  50/7330]  lr: 1.98e-03  eta: 1 day, 1:23:45  time: 0.5  loss: 1.2  ...
    Iter(train) [   50/40000]  base_lr: 1e-02 lr: 9.9e-03  eta: 5:23:45  time: 0.5  loss: 1.2  ...
    Epoch [1][50/7330]  lr: 1.978e-03, eta: 1 day, 3:05:06, time: 0.591, data_time: 0.055, loss: 1.9
    Epoch(val) [1][625/625]    coco/bbox_mAP: 0.1230  coco/bbox_mAP_50: 0.2500
    {"lr": 0.002, "data_time": 0.01, "loss": 1.2, "time": 0.5, "epoch": 1, "iter": 50, "step": 50}

`time`, which includes `data_time`, and the losses are means: in MMCV since the previous line, in
MMEngine over the last iterations (`window_size`, 10 unless the printed config says otherwise).
"""

import json
import re
from typing import Any

from stepglass.logs.log_format import LogFormat
from stepglass.logs.reader import NUMBER, Record, number

LINE = re.compile(
    r"(?<!\w)(?P<unit>Epoch|Iter)(?:\((?P<mode>train|val|test)\))?\s*(?:\[\s*(?P<epoch>\d{1,9})\]\s*)?"
    r"\[\s*(?P<n>\d{1,12})(?:/\s*(?P<total>\d{1,12}))?\]\s+(?P<rest>\S.*)"
)
PAIR = re.compile(rf"(?<![\w/.@-])([A-Za-z][\w/.@=-]*): ({NUMBER})(?=,?(?:\s|$))")
WINDOW_SIZE = re.compile(r"LogProcessor'?,.{0,80}?window_size=(\d{1,6})\b")
DEFAULT_WINDOW = 10
SAVING = re.compile(r"Saving checkpoint at (\d{1,12}) (epochs|iterations)")
PROGRESS = {"eta", "time", "data_time", "memory", "lr", "base_lr", "iter", "epoch", "step"}


class MMEngine:
    """Reads the logs of OpenMMLab's trainers."""

    format = LogFormat(
        "mmengine", limits=("format-mmengine",), loss_is_nats=False, time_holds_data=True
    )

    def __init__(self) -> None:
        self._iter: int | None = None
        self._epoch_iters: int | None = None
        self._window = DEFAULT_WINDOW
        self._place: tuple[object, int] | None = None  # epoch and number of MMCV's last JSON line
        self._is_per_epoch = False
        self._line_before: int | None = None
        self.has_taken = False  # the last line shows the progress of an evaluation

    def read(self, text: str) -> list[Record]:
        self.has_taken = False
        if ("Epoch" in text or "Iter" in text) and ": " in text and (found := LINE.search(text)):
            return self._line(found)
        if "LogProcessor" in text and (found := WINDOW_SIZE.search(text)):
            self._window = int(found[1])
            self.has_taken = True
            return []
        if "Saving checkpoint at" in text and (found := SAVING.search(text)):
            count = int(found[1])
            if found[2] == "iterations":
                return [{"kind": "checkpoint", "iter": count}]
            return [{"kind": "checkpoint", "iter": self._iter}] if self._iter is not None else []
        if text.startswith("{") and ('"time"' in text or '"mode": "val"' in text):
            return self._json(text)
        return []

    def _line(self, found: re.Match[str]) -> list[Record]:
        said = {key: number(value) for key, value in PAIR.findall(found["rest"])}
        is_epoch = found["unit"] == "Epoch"
        if is_epoch != (found["epoch"] is not None) and found["mode"] in (None, "train"):
            return []
        if found["mode"] in ("val", "test"):
            return self._evaluation(found, said)
        if found["total"] is None or "loss" not in said or "time" not in said:
            return []
        n, total = int(found["n"]), int(found["total"])
        record: Record = {"kind": "iter", "iter": n, "loss": said["loss"]}
        before, self._iter = self._iter, n
        if is_epoch:
            epoch = int(found["epoch"])
            self._iter, self._epoch_iters = (epoch - 1) * total + n, total
            record |= {"epoch": epoch, "epoch_iters": total, "global_iter": self._iter}
        else:
            record["max_iters"] = total
        is_mmcv = found["mode"] is None
        if is_mmcv and before is None:
            return [record | {"is_mean": True} | _values(said)]  # the line before may be cut off
        # No mean reaches back into the epoch before.
        distance = min(n, self._iter - before) if before is not None and before < self._iter else n
        record["window"] = max(1, distance if is_mmcv else min(self._window, distance))
        return [record | _values(said)]

    def _evaluation(self, found: re.Match[str], said: dict[str, float | None]) -> list[Record]:
        metrics = {k: v for k, v in said.items() if k not in PROGRESS and v is not None}
        if not metrics or "eta" in found["rest"][:8]:
            self.has_taken = True
            return []
        if found["mode"] == "test":
            return [{"kind": "eval", "iter": self._iter, "set": "test", "metrics": metrics}]
        iteration = self._iter
        if found["epoch"] and self._epoch_iters:
            iteration = int(found["epoch"]) * self._epoch_iters
        loss = metrics.pop("loss", None)
        values = {"val_loss": loss, "metrics": metrics or None}
        return [{"kind": "eval", "iter": iteration, **values}]

    def _json(self, text: str) -> list[Record]:
        try:
            line: Any = json.loads(text)
        except (ValueError, RecursionError):
            return []
        if not isinstance(line, dict):
            return []
        said = {k: number(str(v)) for k, v in line.items() if type(v) in (int, float)}
        is_ours = "time" in said and ("data_time" in said or "memory" in said)
        if line.get("mode") == "val" and self._iter is not None:
            is_ours = True
        if not is_ours or line.get("mode", "train") not in ("train", "val"):
            return []
        step = line.get("step")
        if "loss" in said and line.get("mode") != "val" and type(line.get("iter")) is int:
            number_of = step if type(step) is int else self._mmcv_number(line)
            self._iter = number_of
            record = {"kind": "iter", "iter": number_of, "epoch": said.get("epoch")}
            if "mode" in line and number_of is not None:  # MMCV's means begin after the last line
                before = number_of - self._line_before if self._line_before else 0
                record |= {"window": before} if before > 0 else {"is_mean": True}
            self._line_before = number_of
            return [{**record, "loss": said["loss"], **_values(said)}]
        metrics = {k: v for k, v in said.items() if k not in PROGRESS and v is not None}
        if not metrics or "loss" in said:
            return []
        if self._line_before and "mode" in line and type(line.get("iter")) is int:
            self._line_before = max(self._line_before, line["iter"])
        return [{"kind": "eval", "iter": self._iter, "metrics": metrics}]

    def _mmcv_number(self, line: dict[str, Any]) -> int | None:
        """MMCV counts over the whole run, or from 1 in every epoch, and does not say which. If the
        number goes back with a new epoch, it is the latter, and no number can be told."""
        place = (line.get("epoch"), line["iter"])
        goes_back = self._place is not None and place[0] != self._place[0]
        goes_back = goes_back and self._place is not None and place[1] <= self._place[1]
        self._place, self._is_per_epoch = place, self._is_per_epoch or goes_back
        return None if self._is_per_epoch else line["iter"]


def _values(said: dict[str, float | None]) -> Record:
    time, data = said.get("time"), said.get("data_time")
    return {
        "lr": said.get("lr"),
        "grad_norm": said.get("grad_norm"),
        "time_ms": None if time is None else 1000 * time,
        "data_ms": None if data is None else 1000 * data,
    }
