"""Lightning: progress bars of tqdm and Rich, SimpleProfiler's table, and metrics.csv.

    Epoch 3:  33%|███▉      | 307/938 [00:01<00:02, 289.04it/s, loss=0.198, v_num=51]
    Epoch 4    --------------- ---- 232/291 0:00:33 • 0:00:09 7.00it/s loss: 0.398
    |  run_training_epoch   |  36.785   |  100   |  3678.5   |  98.818   |
    epoch,lr-Adam,step,train_loss_step,val_loss

A bar counts steps per epoch, and its rate is smoothed. `val_loss` stays on the bar until the next
evaluation. In the profiler's table, actions are nested, so their shares do not add up to 100 %.
"""

import re
from collections.abc import Iterable

from stepglass.logs.bars import Bar, bars, clock_seconds, rate_per_s
from stepglass.logs.log_format import LogFormat
from stepglass.logs.reader import NUMBER, Record, number

LABEL = re.compile(r"(?<!\w)Epoch (\d{1,9})(?:/-?\d{1,9})?$")
RICH = re.compile(
    r"(?<!\w)Epoch (?P<epoch>\d{1,9})(?:/-?\d{1,9})?\s+[^\w|]{2,400}?"
    r"(?P<n>\d{1,12})/(?P<total>\d{1,12})\s+(?P<elapsed>\d{1,6}:\d\d:\d\d)\s+•\s+\S{1,12}\s+"
    rf"(?P<rate>{NUMBER})(?P<unit>it/s|s/it)(?P<postfix>.{{0,2000}})"
)
PAIR = re.compile(rf"(?<![\w/.|-])([\w/.|-]{{1,80}})\s*[=:]\s*({NUMBER})(?![\w.])")
TRAIN_LOSS = re.compile(r"(?:reduced_)?(?:train(?:ing)?[_/|. -])?loss(?:$|_)")
VAL_LOSS = re.compile(r"(?:val|valid|validation|eval)[_/|. -]loss(?:$|_|/)")


class LightningBar:
    """Reads Lightning's console."""

    format = LogFormat("lightning", limits=("format-lightning",))

    def __init__(self) -> None:
        self._last: tuple[int, int] | None = None
        self._val_loss: float | None = None
        self._columns: list[str] | None = None  # while the profiler's table is read

    def read(self, text: str) -> list[Record]:
        if self._columns is not None or "Total time (s)" in text:
            return self._profiler(text)
        if "it/s" not in text and "s/it" not in text:
            return []
        result: list[Record] = []
        for bar in bars(text):
            if found := LABEL.search(bar.label):
                result += self._training(int(found[1]), bar)
            elif bar.label.startswith("Validat") and bar.n == bar.total:
                detail = {"label": bar.label, "elapsed_s": bar.elapsed_s}
                result.append({"kind": "event", "name": "validation", "detail": detail})
        if not result and "•" in text and (found := RICH.search(text)):
            bar = Bar(
                "",
                int(found["n"]),
                int(found["total"]),
                clock_seconds(found["elapsed"]),
                rate_per_s(found["rate"], found["unit"]),
                found["postfix"],
            )
            return self._training(int(found["epoch"]), bar)
        return result

    def _training(self, epoch: int, bar: Bar) -> list[Record]:
        if (epoch, bar.n) == self._last or bar.n == 0:
            return []  # the bar was redrawn, or training has not begun
        self._last = (epoch, bar.n)
        said = {key: number(value) for key, value in PAIR.findall(bar.postfix)}
        loss, val_loss = best_of(said, TRAIN_LOSS, "_epoch"), best_of(said, VAL_LOSS, "_step")
        result: list[Record] = [
            {
                "kind": "iter",
                "iter": bar.n,
                "epoch": epoch,
                "epoch_iters": bar.total,
                "global_iter": epoch * bar.total + bar.n,
                "loss": said[loss] if loss else None,
                "rate_per_s": bar.rate_per_s,
                "elapsed_s": bar.elapsed_s,
            }
        ]
        if val_loss and said[val_loss] != self._val_loss:
            self._val_loss = said[val_loss]
            result.append(
                {"kind": "eval", "iter": bar.n, "epoch": epoch, "val_loss": said[val_loss]}
            )
        return result

    def _profiler(self, text: str) -> list[Record]:
        cells = [cell.strip() for cell in text.strip("| \t").split("|")]
        if "Total time (s)" in cells and "Action" in cells:
            self._columns = cells
            return []
        if self._columns is None or (text and not text.strip("-=|+ ")):
            return []  # a line between two rows
        if len(cells) != len(self._columns):
            self._columns = None
            return self.read(text) if "it/s" in text else []
        row = dict(zip(self._columns, cells, strict=True))
        total_s = number(row["Total time (s)"])
        if total_s is None:
            return []
        return [
            {
                "kind": "event",
                "name": "profiler-action",
                "detail": row["Action"],
                "action": row["Action"],
                "total_s": total_s,
                "percent": number(row.get("Percentage %", "").rstrip("% ")),
                "mean_s": number(row.get("Mean duration (s)")),
                "calls": number(row.get("Num calls")),
            }
        ]


def best_of(keys: Iterable[str], pattern: re.Pattern[str], worse: str) -> str | None:
    """The shortest key that matches the pattern. Keys that end with `worse` come last.

    >>> best_of(["train_loss_epoch", "train_loss_step"], TRAIN_LOSS, "_epoch")
    'train_loss_step'
    """
    fitting = [key for key in keys if pattern.match(key)]
    return min(fitting, key=lambda key: (key.endswith(worse), len(key)), default=None)


# -- metrics.csv ---------------------------------------------------------------------------------

CELL = re.compile(r"[A-Za-z_][\w/.|:@-]*(?: [\w/.|:@-]+)?")
LR = re.compile(r"(?:lr|learning_rate)(?:$|[-_/])")
RATES = {
    "batches_per_sec": "rate_per_s",
    "samples_per_sec": "samples_per_s",
    "items_per_sec": "items_per_s",
    "flops_per_sec": "flops_per_s",
    "mfu": "mfu",
}  # names of ThroughputMonitor, after the stage and `device`
RATE = re.compile(rf"train[/|.:-](?:device[/|.:-])?({'|'.join(RATES)})")
MOST_COLUMNS = 1000


class MetricsCsv:
    """Reads CSVLogger's metrics.csv. A row has only those cells that were logged together."""

    format = LogFormat("lightning", limits=("format-lightning",))

    def __init__(self) -> None:
        self._header: list[str] | None = None
        self._loss: str | None = None
        self._val_loss: str | None = None
        self._lr: str | None = None
        self._rates: dict[str, str] = {}
        self._newest_lr: float | None = None  # has its own row, before the loss

    def read(self, text: str) -> list[Record]:
        if "," not in text:
            return []
        if not (text[0] in "-+.," or text[0].isdigit()):
            self._read_header(text)
            return []
        if self._header is None:
            return []
        cells = text.split(",", MOST_COLUMNS)
        if len(cells) != len(self._header):
            return []
        row = {}
        for key, cell in zip(self._header, cells, strict=True):
            if cell:
                row[key] = number(cell)
                if row[key] is None:
                    return []
        return self._row({key: value for key, value in row.items() if value is not None})

    def _read_header(self, text: str) -> None:
        cells = text.split(",", MOST_COLUMNS)
        if not {"step", "epoch"} & set(cells) or len(cells) < 2 or len(cells) > MOST_COLUMNS:
            return
        if len(set(cells)) != len(cells) or not all(map(CELL.fullmatch, cells)):
            return
        self._header = cells
        self._loss = best_of(cells, TRAIN_LOSS, "_epoch")
        self._val_loss = best_of(cells, VAL_LOSS, "_step")
        self._lr = best_of(cells, LR, "-momentum")
        self._rates = {
            cell: RATES[found[1]] for cell in reversed(cells) if (found := RATE.fullmatch(cell))
        }

    def _row(self, row: dict[str, float]) -> list[Record]:
        where: Record = {"iter": _whole(row.get("step")), "epoch": row.get("epoch")}
        if self._lr in row:
            self._newest_lr = row[self._lr]
        rates = {name: row[cell] for cell, name in self._rates.items() if cell in row}
        if "mfu" in rates:
            rates["mfu"] *= 100
        result: list[Record] = []
        if self._loss in row or rates:
            loss = row.get(self._loss) if self._loss else None
            result.append({"kind": "iter", **where, "loss": loss, "lr": self._newest_lr, **rates})
        if self._val_loss in row:
            result.append({"kind": "eval", **where, "val_loss": row[self._val_loss]})
        return result


def _whole(value: float | None) -> int | None:
    return int(value) if value is not None and abs(value) < 1e15 else None
