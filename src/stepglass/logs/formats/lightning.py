"""Lightning: progress bars of tqdm and Rich, SimpleProfiler's table, and metrics.csv.

    Epoch 3:  33%|███▉      | 307/938 [00:01<00:02, 289.04it/s, loss=0.198, v_num=51]
    Epoch 4    --------------- ---- 232/291 0:00:33 • 0:00:09 7.00it/s loss: 0.398
    Epoch 0: :   1%|   | 795/77225 [9:07:58<878:01:48, reduced_train_loss=3.09, global_step=794.0]
    |  run_training_epoch   |  36.785   |  100   |  3678.5   |  98.818   |
    epoch,lr-Adam,step,train_loss_step,val_loss

A bar counts steps and time per epoch, evaluations included. It is drawn twice for a step: first
with the values of an earlier one, so the second drawing counts. `val_loss` stays on the bar until
the next evaluation. In the profiler's table, actions are nested, so their shares do not add up to
100 %.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from stepglass.logs.bars import Bar, bars, clock_seconds, rate_per_s
from stepglass.logs.formats.epoch_clock import EpochClock
from stepglass.logs.log_format import LogFormat
from stepglass.logs.reader import NUMBER, Record, number, plain_number

LABEL = re.compile(r"(?<!\w)Epoch (\d{1,9})(?:/-?\d{1,9})?$")
RICH = re.compile(
    r"(?<!\w)Epoch (?P<epoch>\d{1,9})(?:/-?\d{1,9})?\s+[^\w|]{2,400}?"
    r"(?P<n>\d{1,12})/(?P<total>\d{1,12})\s+(?P<elapsed>\d{1,6}:\d\d:\d\d)\s+•\s+\S{1,12}\s+"
    rf"(?P<rate>{NUMBER})(?P<unit>it/s|s/it)(?P<postfix>.{{0,2000}})"
)
PAIR = re.compile(rf"(?<![\w/.|-])([\w/.|-]{{1,80}})\s*[=:]\s*({NUMBER})(?![\w.])")
STEP_TIME = re.compile(rf"\btrain_step_timing in s\s*[=:]\s*({NUMBER})")  # of NeMo
TRAIN_LOSS = re.compile(
    r"(?:(?:reduced_)?(?:train(?:ing)?[_/|. -])?loss|loss[_/|.]train(?:ing)?)(?:_(?:step|epoch))?$",
    re.IGNORECASE,
)
VAL = r"(?:val|valid|validation|eval)"
VAL_LOSS = re.compile(
    rf"(?:{VAL}[_/|. -]loss|loss[_/|.]{VAL})(?:_(?:step|epoch))?(?:/dataloader_idx_\d+)?$",
    re.IGNORECASE,
)
VAL_METRIC = re.compile(rf"{VAL}[_/|.](?P<name>[\w/.|-]{{1,60}})$", re.IGNORECASE)


class LightningBar:
    """Reads Lightning's console."""

    format = LogFormat(
        "lightning",
        limits=("format-lightning", "next-line"),
        times_everything=True,
        elapsed_name="",
    )

    def __init__(self) -> None:
        self.line = 0  # of the log
        self._held_line = 0
        self._validated = 0  # batches of the evaluation that has just ended
        self._val_batches = 0  # of those that the bar counts
        self._is_validating = False
        self._step: tuple[int, int] | None = None  # epoch and number of the latest step
        self._held: Bar | None = None  # its first drawing, until there is a second one
        self._clock = EpochClock()
        self._has_loss = False  # bars show a loss
        self._said: dict[str, float] = {}  # values of the latest evaluation
        self.has_taken = False  # the last line was a bar of training
        self._columns: list[str] | None = None  # while the profiler's table is read

    def read(self, text: str) -> list[Record]:
        self.has_taken = False
        if self._columns is not None or "Total time (s)" in text:
            return self._profiler(text)
        if "/" not in text or ("<" not in text and "•" not in text):
            return []
        result: list[Record] = []
        is_bar = False
        for bar in bars(text):
            is_bar = True
            if found := LABEL.search(bar.label):
                result += self._training(int(found[1]), bar)
            elif bar.label.startswith("Validat") and bar.n == bar.total:
                detail = {"label": bar.label, "elapsed_s": bar.elapsed_s}
                result.append({"kind": "event", "name": "validation", "detail": detail})
                self._validated = bar.total
        if not is_bar and "•" in text and (found := RICH.search(text)):
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

    def flush(self) -> list[Record]:
        """The records of the last step."""
        held, self._held = self._held, None
        records = self._records(held) if held and self._step else []
        return [{**record, "line": self._held_line} for record in records]

    def _training(self, epoch: int, bar: Bar) -> list[Record]:
        self.has_taken = True
        if bar.n == 0:
            return []  # training has not begun
        total, bar = bar.total, self._trained(epoch, bar)
        if self._val_batches and bar.total < total and bar.n == bar.total and self._is_validating:
            return [*self.flush(), *self._evaluation(epoch, bar)]
        if (epoch, bar.n) != self._step:
            result = self.flush() if self._step else [{"kind": "start"}]
            self._step, self._held, self._held_line = (epoch, bar.n), bar, self.line
            return result
        if self._held is None:  # drawn for the third time: after an evaluation
            return self._evaluation(epoch, bar)
        self._held = None
        return self._records(bar)

    def _trained(self, epoch: int, bar: Bar) -> Bar:
        """The bar without the batches of an evaluation at the end of an epoch, which Lightning 1
        counts too. Its bars end with `loss=`; those of Lightning 2 do not count them."""
        validated, self._validated = self._validated, 0
        before = self._step[1] if self._step and self._step[0] == epoch else bar.n
        is_end = bar.n == bar.total and 0 < validated <= bar.n - before and validated < bar.total
        if is_end and "loss=" in bar.postfix and "v_num=" in bar.postfix:
            self._val_batches = validated
        trained = bar.total - self._val_batches
        self._is_validating = bar.n > trained
        if not self._val_batches or trained <= 0:
            return bar
        return replace(bar, n=min(bar.n, trained), total=trained)

    def _records(self, bar: Bar) -> list[Record]:
        assert self._step is not None
        epoch, _ = self._step
        said = _bar_values(bar)
        loss = best_of(said, TRAIN_LOSS, "_epoch")
        if loss is None and self._has_loss:
            return []  # the bar is cut off: a loss that is NaN is shown
        self._has_loss |= loss is not None
        record: Record = {
            "kind": "iter",
            **_where(epoch, bar),
            "loss": said[loss] if loss else None,
        }
        record |= self._clock.read(epoch, bar)
        if (time := STEP_TIME.search(bar.postfix)) and (time_s := plain_number(time[1])):
            self.format = replace(self.format, times_everything=False)
            record |= {"time_ms": 1000 * time_s, "window": None}
        return [record, *self._evaluation(epoch, bar)]

    def _evaluation(self, epoch: int, bar: Bar) -> list[Record]:
        """The evaluation whose values the bar shows, if they are new."""
        said = evaluated(_bar_values(bar))
        if all(self._said.get(key) == value for key, value in said.items()):
            return []
        self._said |= said
        where = _where(epoch, bar)
        return [{"kind": "eval", **where, "iter": where["global_iter"], **eval_values(said)}]

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


def _bar_values(bar: Bar) -> dict[str, float]:
    pairs = ((key, plain_number(text)) for key, text in PAIR.findall(bar.postfix))
    return {key: value for key, value in pairs if value is not None}


def _where(epoch: int, bar: Bar) -> Record:
    return {
        "iter": bar.n,
        "epoch": epoch,
        "epoch_iters": bar.total,
        "global_iter": epoch * bar.total + bar.n,
    }


def evaluated(said: Mapping[str, float]) -> dict[str, float]:
    """The values of an evaluation among those of a bar or a row."""
    return {key: said[key] for key in said if VAL_LOSS.match(key) or VAL_METRIC.match(key)}


def eval_values(said: Mapping[str, float]) -> Record:
    """The loss and the other metrics of an evaluation.

    >>> eval_values({"val_loss": 1.5, "val_acc": 0.25})
    {'val_loss': 1.5, 'metrics': {'acc': 0.25}}
    """
    loss = best_of(said, VAL_LOSS, "_step")
    metrics = {
        found["name"]: value
        for key, value in said.items()
        if not VAL_LOSS.match(key) and (found := VAL_METRIC.match(key))
    }
    return {"val_loss": said[loss] if loss else None, **({"metrics": metrics} if metrics else {})}


def best_of(keys: Iterable[str], pattern: re.Pattern[str], worse: str) -> str | None:
    """The key that fits best: the loss of a step (NeMo also prints a mean under a shorter name),
    else the shortest. Keys that end with `worse` come last.

    >>> best_of(["train_loss_epoch", "train_loss_step"], TRAIN_LOSS, "_epoch")
    'train_loss_step'
    """
    fitting = [key for key in keys if pattern.match(key)]
    return min(
        fitting,
        key=lambda key: (key.endswith(worse), not key.startswith("reduced_"), len(key)),
        default=None,
    )


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

    format = LogFormat("lightning")

    def __init__(self) -> None:
        self._header: list[str] | None = None
        self._loss: str | None = None
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
        if "step" not in cells or len(cells) < 2 or len(cells) > MOST_COLUMNS:
            return
        if len(set(cells)) != len(cells) or not all(map(CELL.fullmatch, cells)):
            return
        self._header = cells
        self._loss = best_of(cells, TRAIN_LOSS, "_epoch")
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
        if evaluation := evaluated(row):
            result.append({"kind": "eval", **where, **eval_values(evaluation)})
        return result


def _whole(value: float | None) -> int | None:
    return int(value) if value is not None and abs(value) < 1e15 else None
