"""Any other log: lines with names and numbers that repeat, in which a step and a loss are plain.

    step 100 | loss: 2.31 | lr=3e-4 | time 12.5ms
    {"global_step": 100, "train/loss": 2.31}
    epoch  train_loss  valid_loss  accuracy  time

A guide watches the lines first. It trusts lines with the same names that occur at least three
times, with a whole number that grows (a step or an epoch) and a loss or a time. What each column
was taken for is a fact of the log (`columns`). Ambiguous columns are left out: a time without a
unit, or a `time` that may be one step's or that of all steps since the last line.
"""

from dataclasses import dataclass, field, replace
from itertools import pairwise

from stepglass.logs.formats.general_columns import duration_in_ms, metric_of, roles_in
from stepglass.logs.formats.general_rows import Row, RowSplitter
from stepglass.logs.log_format import LogFormat
from stepglass.logs.reader import Record

LEAST_ROWS = 3
MOST_ROWS = 2000  # of a kind, to judge it by
MOST_KINDS = 100
MOST_STEP = 10**12
SURE_ROWS = 8  # that grow without exception, before a `time` counts as the trainer's clock
RESULTS = ("loss", "val_loss", "test_loss", "step_time", "rate_per_s", "tok_s", "time")
FORMAT = LogFormat("general", is_general=True, limits=("format-general",), loss_is_nats=False)
Place = tuple[int, int]  # epoch and step


@dataclass
class Kind:
    """Lines that have the same names."""

    roles: dict[str, list[str]]
    split: str
    rows: list[Row] = field(default_factory=list)
    epochs: list[int] = field(default_factory=list)  # the newest epoch at each row
    count: int = 0


@dataclass(frozen=True)
class ReadingPlan:
    """How the columns of a log are read."""

    step: str  # name of the column that counts
    is_epoch: bool  # it counts epochs
    restarts: bool  # it restarts with every epoch
    first_epoch: int
    forms: frozenset[str]
    times: dict[str, str]  # a duration's column, and "time" (of a step) or "elapsed"


class Guide:
    """Watches the first lines of a log and finds out how to read it."""

    def __init__(self) -> None:
        self._splitter = RowSplitter()
        self._kinds: dict[tuple[str, ...], Kind] = {}
        self._epoch = 0

    def watch(self, text: str) -> None:
        row = self._splitter.read(text)
        if row is None:
            return
        kind = self._kinds.get(row.kind)
        if kind is None:
            roles = roles_in(row)
            if not roles or len(self._kinds) >= MOST_KINDS:
                return
            kind = self._kinds[row.kind] = Kind(roles, row.split)
        if "epoch" in kind.roles:
            self._epoch = epoch_of(row, kind.roles["epoch"][0], self._epoch)
        kind.count += 1
        if len(kind.rows) < MOST_ROWS:
            kind.rows.append(row)
            kind.epochs.append(self._epoch)

    def num_rows(self) -> int:
        """The number of lines that the plan rests on."""
        return max((kind.count for kind in self._trusted().values()), default=0)

    def plan(self) -> ReadingPlan | None:
        """How to read the log, or None if it is not plain that it is one."""
        trusted = self._trusted()
        if not trusted:
            return None
        # Steps are better than epochs: a summary of each epoch often stands between the steps.
        (step, is_epoch), main = max(
            trusted.items(), key=lambda item: (not item[0][1], item[1].count)
        )
        same = [kind for (name, _), kind in trusted.items() if name == step]
        places = _places(main, step)
        restarts = any(b[0] > a[0] and b[1] < a[1] for a, b in pairwise(places))
        return ReadingPlan(
            step,
            is_epoch,
            restarts and not is_epoch,
            min(1, min(place[0] for place in places)),
            frozenset(kind.rows[0].form for kind in same),
            _times(main, step, is_epoch),
        )

    def _trusted(self) -> dict[tuple[str, bool], Kind]:
        """For each column that counts, the commonest kind of lines that it numbers."""
        found: dict[tuple[str, bool], Kind] = {}
        for kind in self._kinds.values():
            if len(kind.rows) < LEAST_ROWS or kind.split or not set(RESULTS) & set(kind.roles):
                continue
            step = _step_of(kind)
            if step and (step not in found or found[step].count < kind.count):
                found[step] = kind
        return found


def step_number(row: Row, key: str | None) -> int | None:
    """A whole number that can be a step, or None."""
    value = row.values.get(key) if key is not None else None
    if value is None or value.number is None or not 0 <= value.number <= MOST_STEP:
        return None
    return int(value.number) if value.number == int(value.number) else None


def epoch_of(row: Row, key: str, before: int) -> int:
    """The epoch of a row. Many trainers print a fraction: 0.35."""
    number = row.values[key].number
    return int(number) if number is not None and 0 <= number <= MOST_STEP else before


def _step_of(kind: Kind) -> tuple[str, bool] | None:
    """The column that counts, and whether it counts epochs. None if no column grows."""
    has_loss = bool({"loss", "val_loss", "test_loss"} & set(kind.roles))
    is_training = bool({"epoch", "lr"} & set(kind.roles)) or any(kind.epochs)
    for role in ("iter", "epoch"):
        for key in kind.roles.get(role, []):
            # A growing `batch` may be the batch size of a benchmark, or a batch of anything.
            is_batch = "batch" in key.lower() and kind.rows[0].values[key].total is None
            is_plain = (has_loss and is_training) if is_batch else (has_loss or role == "iter")
            if is_plain and _grows(kind, key):
                return key, role == "epoch"
    return None


def _grows(kind: Kind, key: str) -> bool:
    if any(step_number(row, key) is None for row in kind.rows):
        return False
    places = _places(kind, key)
    if "iter" not in kind.roles:
        places = [(0, step) for _, step in places]
    steps = list(pairwise(places))
    num_up, num_down = sum(b > a for a, b in steps), sum(b < a for a, b in steps)
    return num_up >= LEAST_ROWS - 1 and 4 * num_down <= len(places)


def _places(kind: Kind, key: str) -> list[Place]:
    pairs = zip(kind.epochs, kind.rows, strict=True)
    return [(epoch, step_number(row, key) or 0) for epoch, row in pairs]


def _times(kind: Kind, step: str, is_epoch: bool) -> dict[str, str]:
    """The columns of durations whose meaning is plain."""
    found: dict[str, str] = {}
    numbers = [number for _, number in _places(kind, step)]
    gaps = sorted(b - a for a, b in pairwise(numbers) if b > a)
    is_every_step = is_epoch or (bool(gaps) and gaps[len(gaps) // 2] == 1)
    for role in ("step_time", "elapsed", "time"):
        for key in kind.roles.get(role, []):
            times = [duration_in_ms(key, row.values[key]) for row in kind.rows]
            known = [ms for ms in times if ms is not None and ms >= 0]
            if len(known) < len(times):
                continue
            num_down = sum(b < a for a, b in pairwise(known))
            if role == "step_time" and not is_epoch:
                found[key] = "time"
            elif role == "elapsed" and 4 * num_down <= len(known):
                found[key] = "elapsed"
            elif role == "time" and not num_down:
                if len(known) >= SURE_ROWS and known[-1] > 2 * known[0]:
                    found[key] = "elapsed"
            elif role == "time" and is_every_step:
                found[key] = "time"
    return found


class General:
    """Reads the lines that a plan was made for."""

    def __init__(self, plan: ReadingPlan) -> None:
        self._plan = plan
        self._splitter = RowSplitter()
        self._roles: dict[tuple[str, ...], dict[str, list[str]]] = {}
        self._epoch = 0
        self._columns: dict[str, str] = {}
        self._losses: tuple[float | None, float | None] = (None, None)  # the newest evaluation
        clocks = [key for key, meaning in plan.times.items() if meaning == "elapsed"]
        name = clocks[0] if clocks else ""
        self.format = replace(FORMAT, elapsed_name=name, counts_epochs=plan.is_epoch)

    def read(self, text: str) -> list[Record]:
        row = self._splitter.read(text)
        if row is None:
            return []
        if row.kind not in self._roles:
            if len(self._roles) > MOST_KINDS:
                self._roles.clear()
            self._roles[row.kind] = roles_in(row)
        roles = self._roles[row.kind]
        if "epoch" in roles:
            self._epoch = epoch_of(row, roles["epoch"][0], self._epoch)
        if row.form not in self._plan.forms:
            return []
        where = self._where(row, roles)
        if where is None:
            return []
        said, taken = self._values(row, roles)
        records = self._records(row, where, said)
        before = len(self._columns)
        self._columns |= taken if records else {}
        if len(self._columns) > before:
            records.insert(0, {"kind": "start", "columns": dict(self._columns)})
        return records

    def _where(self, row: Row, roles: dict[str, list[str]]) -> Record | None:
        """The place of a row. None if it has none."""
        plan = self._plan
        step = step_number(row, plan.step)
        if step is None:
            # A summary of an epoch between steps: its evaluation belongs to the newest step.
            is_summary = plan.step not in row.values and "epoch" in roles and not plan.is_epoch
            return {"iter": None} if is_summary else None
        total = row.values[plan.step].total
        where: Record = {"iter": step}
        if not plan.restarts:
            # If there are epochs, a total of steps may be that of one epoch.
            is_of_run = plan.is_epoch or not (self._epoch or "epoch" in roles)
            if total is not None and is_of_run and plan.step != "[n/total]":
                where["max_iters"] = total
            return where
        # Without the length of an epoch, the steps of later epochs have no number.
        base = self._epoch - plan.first_epoch
        return where | {"iter": None if total is None else base * total + step}

    def _values(self, row: Row, roles: dict[str, list[str]]) -> tuple[Record, dict[str, str]]:
        """The values by role, and the names of their columns."""
        said: Record = {}
        taken = {"iter": self._plan.step} if self._plan.step in row.values else {}
        for role in ("loss", "val_loss", "test_loss", "lr", "grad_norm", "tok_s", "rate_per_s"):
            for key in roles.get(role, [])[:1]:
                said[role], taken[role] = row.values[key].number, key
        for key, meaning in self._plan.times.items():
            if key in row.values and meaning not in said:
                said[meaning], taken[meaning] = duration_in_ms(key, row.values[key]), key
        return said, taken

    def _records(self, row: Row, where: Record, said: Record) -> list[Record]:
        if row.split and "loss" in said:
            said["test_loss" if row.split == "test" else "val_loss"] = said.pop("loss")
        is_summary = self._plan.step not in row.values
        elapsed_ms = said.get("elapsed")
        result: list[Record] = []
        trained = [said.get(role) for role in ("loss", "time", "rate_per_s", "tok_s")]
        if not is_summary and not row.split and any(value is not None for value in trained):
            record = {"kind": "iter", **where, "time_ms": said.get("time")}
            names = ("loss", "lr", "grad_norm", "tok_s", "rate_per_s")
            record |= {name: said.get(name) for name in names}
            record["elapsed_s"] = None if elapsed_ms is None else elapsed_ms / 1000
            result.append(record)
        place = None if self._plan.restarts else where["iter"]
        figures = {key: name for key in row.values if (name := metric_of(key))}
        metrics = {name: row.values[key].number for key, name in figures.items()}
        losses = (said.get("val_loss"), said.get("test_loss"))
        if losses != (None, None) and losses == self._losses:
            return result  # many trainers repeat the newest evaluation in every line
        self._losses = losses if losses != (None, None) else self._losses
        if "val_loss" in said or metrics:
            evaluation = {"kind": "eval", "iter": place, "val_loss": said.get("val_loss")}
            result.append({**evaluation, "metrics": metrics or None})
        if "test_loss" in said:
            tested = {"kind": "eval", "iter": place, "val_loss": said["test_loss"]}
            result.append({**tested, "set": "test"})
        return result
