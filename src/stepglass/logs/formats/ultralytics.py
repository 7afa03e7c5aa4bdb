"""Ultralytics YOLOv5, v8 and later, and YOLOv7: the console, results.csv and results.txt.

          Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size
          1/100      2.61G      1.153      1.398      1.192         81        640: 100%|██| 8/8 ...
                       all        128        929      0.626      0.524      0.599      0.385
    epoch,time,train/box_loss,train/cls_loss,train/dfl_loss,metrics/precision(B),...,val/box_loss,...
      0/299  1.81G  0.069  0.036  0  0.105  37  640  0.0095  0.3594  0.005  0.0008  0.09  0.06  0

One record for each epoch. The loss is the sum of its printed parts, which is what is minimised; the
parts are means over the epoch. `time` in results.csv is the time since the start.
"""

import re

from stepglass.logs.bars import bars, clock_seconds, rate_per_s
from stepglass.logs.log_format import LogFormat
from stepglass.logs.reader import NUMBER, Record, number

HEADING = re.compile(r"(?i)Epoch\s+gpu_mem\s+(?P<columns>\S.{0,300})$")
ROW = re.compile(
    r"(?<![\w/.])(?P<epoch>\d{1,9})/(?P<last>\d{1,9})\s+(?P<memory>[\d.]{1,9}[GMK])\s+(?P<rest>\S.*)"
)
ALL = re.compile(
    rf"(?<!\w)all\s+\d{{1,12}}\s+\d{{1,12}}\s+(?P<values>{NUMBER}(?:\s+{NUMBER}){{3,7}})\s*$"
)
RULE_BAR = re.compile(
    r"100% [━╸─╺ ]{2,300} (?P<n>\d{1,12})/(?P<total>\d{1,12}) "
    rf"(?P<rate>{NUMBER})(?P<unit>it/s|s/it) (?P<spent>[\d:.]{{1,12}})s?"
)
METRICS = ("precision", "recall", "mAP50", "mAP50-95")
NOT_LOSSES = {"labels", "instances", "size", "img_size", "total"}
RESULTS_TXT = 15  # columns
BY_EPOCH = ("format-one-line-per-epoch", "format-summed-loss")
COARSE_S = 20.0  # a bar shows whole seconds


class Ultralytics:
    """Reads the console of YOLOv5, v7, v8 and later, and results.txt."""

    format = LogFormat(
        "ultralytics", limits=("format-ultralytics", "format-summed-loss"), loss_is_nats=False
    )

    def __init__(self) -> None:
        self._columns: list[str] = []  # of the console's table, after the memory
        self._iter: int | None = None
        self._first_epoch: int | None = None
        self._eval_ms: float | None = None  # of the evaluation whose bar was just read
        self.has_taken = False

    def read(self, text: str) -> list[Record]:
        self.has_taken = False
        if "pu_mem" in text.lower() and (found := HEADING.search(text)):
            self._columns = found["columns"].lower().split()
            self.has_taken = True
            return []
        if "/" in text and (found := ROW.search(text)):
            return self._row(found)
        if "all" in text and self._iter is not None and (found := ALL.search(text)):
            values = [number(value) for value in found["values"].split()]
            metrics = {k: v for k, v in zip(METRICS, values, strict=False) if v is not None}
            time_ms, self._eval_ms = self._eval_ms, None
            return [{"kind": "eval", "iter": self._iter, "metrics": metrics, "time_ms": time_ms}]
        if "Class" in text and "Images" in text and self._iter is not None:
            spent = _spent(text)
            self._eval_ms = spent[0] * spent[1] if spent and spent[1] is not None else None
            self.has_taken = spent is not None
        return []

    def _row(self, found: re.Match[str]) -> list[Record]:
        table, _, progress = found["rest"].partition(":")
        cells = table.split()
        values = [number(cell) for cell in cells]
        epoch, last = int(found["epoch"]), int(found["last"])
        if None in values or epoch > last:
            return []
        if not progress and len(cells) == RESULTS_TXT - 2:
            return self._results_txt(epoch, last, [value or 0.0 for value in values])
        if len(cells) != len(self._columns):
            return []
        said = dict(zip(self._columns, values, strict=True))
        parts = [
            value for key, value in said.items() if key not in NOT_LOSSES and value is not None
        ]
        spent = _spent(progress)
        if spent is None or not parts:
            self.has_taken = bool(parts)
            return []
        num_steps, time_ms = spent
        # YOLOv8 counts epochs from 1 to the last, v5 and v7 from 0 to the last.
        if self._first_epoch is None:
            self._first_epoch = 0 if epoch == 0 or "total" in said or "labels" in said else 1
        self._iter = (epoch - self._first_epoch + 1) * num_steps
        record: Record = {"kind": "iter", "iter": self._iter, "epoch": epoch, "window": num_steps}
        record["max_iters"] = (last - self._first_epoch + 1) * num_steps
        loss = said["total"] if "total" in said else sum(parts)
        return [{**record, "loss": loss, "time_ms": time_ms}]

    def _results_txt(self, epoch: int, last: int, values: list[float]) -> list[Record]:
        """Losses (box, obj, cls, total), labels and size, four metrics, three validation losses."""
        self.format = LogFormat("ultralytics", limits=BY_EPOCH, loss_is_nats=False, counts="epochs")
        record = {"kind": "iter", "iter": epoch, "epoch": epoch, "max_iters": last + 1}
        metrics = dict(zip(METRICS, values[6:10], strict=True))
        evaluation = {"kind": "eval", "iter": epoch, "val_loss": sum(values[10:])}
        return [{**record, "loss": values[3]}, {**evaluation, "metrics": metrics}]


def _spent(progress: str) -> tuple[int, float | None] | None:
    """Steps and mean time of a finished bar, or None."""
    for bar in bars(progress):
        if bar.n == bar.total and bar.n:
            if bar.elapsed_s >= COARSE_S:
                return bar.n, 1000 * bar.elapsed_s / bar.n
            return bar.n, 1000 / bar.rate_per_s if bar.rate_per_s else None
    if (found := RULE_BAR.search(progress)) and found["n"] == found["total"] != "0":
        num_steps, spent_s = int(found["n"]), clock_seconds(found["spent"])
        if spent_s >= COARSE_S:
            return num_steps, 1000 * spent_s / num_steps
        rate = rate_per_s(found["rate"], found["unit"])
        return num_steps, 1000 / rate if rate else None
    return None


class UltralyticsCsv:
    """Reads results.csv, one row for each epoch."""

    format = LogFormat(
        "ultralytics",
        limits=BY_EPOCH,
        elapsed_name="time",
        loss_is_nats=False,
        counts="epochs",
    )

    def __init__(self) -> None:
        self._header: list[str] | None = None

    def read(self, text: str) -> list[Record]:
        if "," not in text:
            return []
        cells = [cell.strip() for cell in text.split(",", 200)]
        if cells[0] == "epoch":
            is_ours = any(c.startswith("train/") and c.endswith("_loss") for c in cells)
            is_ours &= any(cell.startswith("metrics/") for cell in cells)
            self._header = cells if is_ours and len(set(cells)) == len(cells) else None
            return []
        if self._header is None or len(cells) != len(self._header) or not cells[0].isdecimal():
            return []
        said = {key: number(cell) for key, cell in zip(self._header, cells, strict=True)}
        epoch = int(cells[0][:15])
        record: Record = {"kind": "iter", "iter": epoch, "epoch": epoch}
        record["loss"] = _sum_of(said, "train/")
        record["lr"] = said.get("lr/pg0", said.get("x/lr0"))
        record["elapsed_s"] = said.get("time")
        metrics = {k[8:]: v for k, v in said.items() if k.startswith("metrics/") and v is not None}
        evaluation = {"kind": "eval", "iter": epoch, "val_loss": _sum_of(said, "val/")}
        return [record, {**evaluation, "metrics": metrics}]


def _sum_of(said: dict[str, float | None], prefix: str) -> float | None:
    """The sum of the losses with this prefix. None if one is missing."""
    parts = [v for k, v in said.items() if k.startswith(prefix) and k.endswith("loss")]
    known = [value for value in parts if value is not None]
    return sum(known) if known and len(known) == len(parts) else None
