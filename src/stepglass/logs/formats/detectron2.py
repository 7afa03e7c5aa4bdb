"""detectron2: the console and metrics.json.

    eta: 1:02:03  iter: 19  total_loss: 1.2  time: 0.25  last_time: 0.24  data_time: 0.01  lr: 0.001
    copypaste: AP,AP50,AP75,APs,APm,APl
    copypaste: 15.1559,29.0805,14.0979,1.1482,5.3938,18.5776
    {"data_time": 0.004, "iteration": 19, "lr": 0.001, "time": 0.25, "total_loss": 1.2}

Losses are medians of the last 20 iterations. `last_time` is the iteration's own time; old versions
print only `time`, the mean since the start. Both include `data_time`.
"""

import json
import re
from typing import Any

from stepglass.logs.formats.running_mean import MeanOfEpoch
from stepglass.logs.log_format import LogFormat
from stepglass.logs.reader import NUMBER, Record, number

STEP = re.compile(r"(?<!\w)iter: (\d{1,15})  (.*)")
PAIR = re.compile(rf"(?<![\w/])([A-Za-z][\w/.]*): ({NUMBER})(?=M?(?:$|\s))")
COPYPASTE = re.compile(r"copypaste: (.*)")
NAMES = {"total_loss": "loss", "lr": "lr"}
STARTING = re.compile(r"Starting training from iteration (\d{1,12})")
UNTIMED = 3  # iterations at the start of a process, which are not in the mean
DIGITS = 4  # of a time
LEAST, MOST = 0.5, 1.4  # times the mean: what a few iterations change in it
SAVING = re.compile(r"Saving checkpoint to \S*?(\d{7,12})\.pth\b")


class Detectron2:
    """Reads detectron2's console and metrics.json."""

    format = LogFormat(
        "detectron2", limits=("format-detectron2",), loss_is_nats=False, time_holds_data=True
    )

    def __init__(self) -> None:
        self._iter: int | None = None
        self._start = 0  # the process's first iteration
        self._has_start = False
        self._is_lost = False  # it is not known since when the mean is
        self._means = MeanOfEpoch()
        self._task = ""
        self._metrics: list[str] = []  # the header of the copypaste lines
        self.has_taken = False

    def read(self, text: str) -> list[Record]:
        self.has_taken = False
        if "iter: " in text and "total_loss: " in text and (found := STEP.search(text)):
            said = {key: number(value) for key, value in PAIR.findall(found[2])}
            return self._iteration(int(found[1]), said)
        if "Starting training from" in text and (found := STARTING.search(text)):
            self._start, self._is_lost, self.has_taken = int(found[1]), False, True
            self._has_start = True
            return []
        if "copypaste: " in text and (found := COPYPASTE.search(text)):
            return self._evaluation(found[1])
        if "Saving checkpoint" in text and (found := SAVING.search(text)):
            # An evaluation follows, before the iteration itself is printed.
            self._iter = max(self._iter or 0, int(found[1]))
            return [{"kind": "checkpoint", "iter": int(found[1])}]
        if '"iteration"' in text and text.startswith("{"):
            return self._json(text)
        return []

    def _iteration(self, iteration: int, said: dict[str, float | None]) -> list[Record]:
        if "total_loss" not in said:
            return []
        self._iter = iteration
        record: Record = {"kind": "iter", "iter": iteration}
        record |= {name: said.get(key) for key, name in NAMES.items()}
        time, data = said.get("last_time", said.get("time")), said.get("data_time")
        record["time_ms"] = None if time is None else 1000 * time
        record["data_ms"] = None if data is None else 1000 * data
        if "last_time" not in said and time is not None:
            count = iteration + 1 - self._start - UNTIMED
            means = {"time": time}
            own = self._means.since_line_before(self._start, count, means, DIGITS)
            if own is not None and not LEAST < own[0]["time"] / max(time, 1e-9) < MOST:
                self._is_lost = own[1] < count  # the process began anew, and no line says where
            if own is not None and not self._is_lost:
                record["time_ms"] = 1000 * own[0]["time"]
                # An excerpt does not say where its process began.
                record |= {"window": own[1]} if own[1] < count or self._has_start else {}
        return [record]

    def _evaluation(self, rest: str) -> list[Record]:
        self.has_taken = True
        if rest.startswith("Task: "):
            self._task, self._metrics = rest[6:].strip(), []
            return []
        cells = rest.split(",")
        values = [number(cell) for cell in cells]
        if None in values:
            self._metrics = [cell.strip() for cell in cells]
            return []
        names, self._metrics = self._metrics, []
        if self._iter is None or len(names) != len(values):
            return []
        metrics = dict(zip(names, values, strict=True))
        return [{"kind": "eval", "iter": self._iter, "set": self._task, "metrics": metrics}]

    def _json(self, text: str) -> list[Record]:
        try:
            line: Any = json.loads(text)
        except (ValueError, RecursionError):
            return []
        step = line.get("iteration") if isinstance(line, dict) else None
        if type(step) is not int or "iter_time" in line:  # the latter is DINOv2's
            return []
        said = {key: number(str(v)) for key, v in line.items() if type(v) in (int, float)}
        metrics = {key: v for key, v in said.items() if "/AP" in key and v is not None}
        result = self._iteration(step, said)
        if metrics:
            result.append({"kind": "eval", "iter": step, "metrics": metrics})
        return result
