"""The iterations of a run, for drawing: all of them as long as there is room, and never without the
lowest and highest of each figure.

    table = AllRows()
    table.slice(0, len(table))["loss"]      # one number for each row that is kept, NaN if unknown
    table.slice(0, 10)["phase:eval"]        # what of its time was an evaluation, in milliseconds
    table.between(100, 200)                 # the rows of lines 101 to 200 of the log

Numbers are kept in 32 bits, as they will be drawn. Beyond `most_rows` the run is divided into
stretches of equal length, and of each those rows stay that have the lowest or the highest value of
some column: they are real iterations, and a spike is never lost. A row then also stands for those
that were dropped before it: `num` is how many it stands for, itself among them, and a column
`sum:...` adds up what they had.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from stepglass.logs.table import Block, Table, halve_largest

Numbers = npt.NDArray[Any]
Columns = dict[str, Numbers]

EXACT = ("iter", "line")
FIGURES = ("loss", "time_ms", "step_ms", "mfu", "lr", "grad_norm", "tok_s", "memory_bytes")
DRAWN = (*EXACT, *FIGURES)
PHASE = "phase:"
SUM = "sum:"
NUM = "num"  # of rows
NUM_LOSSES = "num:loss"  # of rows with one
SUMMED = ("time_ms", "loss")  # and the phases
MOST_PHASES = 32  # ours has nine; whoever names more is not telling where the time went
FIRST_CAPACITY = 1024
ALL = slice(None)


class AllRows(Table):
    """A table that also keeps rows to be drawn, and more evaluations."""

    most_notes = 32_000
    most_rows = 1 << 20

    def __init__(self) -> None:
        super().__init__()
        self._num_rows = 0
        self._has_sums = False
        self._kept: Columns = {}
        self._rows: list[tuple[dict[str, float | None], dict[str, float]]] = []

    def add(self, values: dict[str, float | None], phases: dict[str, float]) -> None:
        super().add(values, phases)
        self._rows.append((values, phases))
        if len(self._rows) >= 4096:
            self._keep_rows()

    def add_block(self, block: Block) -> None:
        super().add_block(block)
        self._keep_rows()
        columns: Columns = dict(block.take(ALL))
        for name, column in getattr(block, "phases", {}).items():
            columns[PHASE + name] = column
        self._append_rows(columns, len(block))

    def slice(self, start: int, end: int) -> Columns:
        """The columns of these rows. A view: it must not be changed."""
        self._keep_rows()
        end = min(end, self._num_rows)
        return {name: column[start:end] for name, column in self._kept.items()}

    def between(self, after: int, until: int) -> Columns:
        """The rows of lines after the one and up to the other. A view."""
        self._keep_rows()
        if not self._num_rows:
            return {}
        lines = self._kept["line"][: self._num_rows]
        start, end = np.searchsorted(lines, [after, until], side="right")
        return self.slice(int(start), int(end))

    def num_rows(self) -> int:
        self._keep_rows()
        return self._num_rows

    @classmethod
    def share_room(cls, tables: Sequence[Table]) -> None:
        super().share_room(tables)
        drawn = [table for table in tables if isinstance(table, AllRows)]
        halve_largest(drawn, AllRows.num_rows, AllRows._thin_rows, cls.most_rows)

    def _keep_rows(self) -> None:
        if not self._rows:
            return
        rows, self._rows = self._rows, []
        columns: Columns = {
            name: np.array([as_number(values.get(name)) for values, _ in rows]) for name in DRAWN
        }
        for name in dict.fromkeys(name for _, phases in rows for name in phases):
            columns[PHASE + name] = np.array([phases.get(name, 0.0) for _, phases in rows])
        self._append_rows(columns, len(rows))

    def _append_rows(self, columns: Columns, count: int) -> None:
        if self._num_rows + count > self.most_rows:
            self._thin_rows(self.most_rows // 2)
        columns = {name: columns[name] for name in self._drawn(columns)}
        if self._has_sums:
            columns = with_sums(columns)
        start, end = self._num_rows, self._num_rows + count
        for name, values in columns.items():
            if name not in self._kept:
                self._kept[name] = new_column(name, FIRST_CAPACITY)
            with np.errstate(over="ignore"):  # what no float32 holds is drawn as infinite
                self._room(name, end)[start:end] = values
        for name in self._kept.keys() - columns.keys():
            self._room(name, end)
        self._num_rows = end
        if end > self.most_rows:  # so many at once
            self._thin_rows(self.most_rows // 2)

    def _thin_rows(self, most: int) -> None:
        """Into the same arrays: they are needed again. What was beyond is as if never written."""
        before = self._num_rows
        rows = thinned(self.slice(0, before), most)
        self._num_rows = len(rows["iter"]) if rows else 0
        self._has_sums |= NUM in rows
        for name, column in rows.items():
            if name not in self._kept:
                self._kept[name] = new_column(name, before)
            self._kept[name][: self._num_rows] = column
            self._kept[name][self._num_rows :] = empty_of(name)

    def _drawn(self, names: Iterable[str]) -> list[str]:
        """Those of the names that are kept: what is drawn, and the first phases."""
        phases = list(filter(is_phase, self._kept))
        new = [name for name in names if is_phase(name) and name not in self._kept]
        known = {*DRAWN, *phases, *new[: max(0, MOST_PHASES - len(phases))]}
        return [name for name in names if name in known]

    def _room(self, name: str, end: int) -> Numbers:
        """The column, with space up to `end`."""
        column = self._kept[name]
        if end > len(column):
            grown = new_column(name, max(end, min(2 * len(column), self.most_rows)))
            grown[: len(column)] = column
            self._kept[name] = column = grown
        return column


class LiveRows(AllRows):
    """Those of a page whose server can read the log again where somebody looks closer."""

    most_notes = 8_000
    most_rows = 1 << 17


def is_phase(name: str) -> bool:
    return name.startswith(PHASE)


def is_sum(name: str) -> bool:
    return name.startswith((SUM, NUM))


def empty_of(name: str) -> float:
    """Nothing known yet; of a phase, no time spent."""
    return 0.0 if is_phase(name) or is_sum(name) else np.nan


def new_column(name: str, length: int) -> Numbers:
    return np.full(length, empty_of(name), np.float64 if name in EXACT else np.float32)


def as_number(value: float | None) -> float:
    return np.nan if value is None else value


# -- thinning --------------------------------------------------------------------------------


def with_sums(columns: Columns) -> Columns:
    """Rows that stand for themselves alone."""
    if NUM in columns or "iter" not in columns:
        return columns
    result = {**columns, NUM: np.ones(len(columns["iter"]), np.float32)}
    for name in (*filter(columns.__contains__, SUMMED), *filter(is_phase, columns)):
        result[SUM + name] = np.where(np.isfinite(columns[name]), columns[name], 0.0)
    if "loss" in columns:
        result[NUM_LOSSES] = np.isfinite(columns["loss"]).astype(np.float32)
    return result


def thinned(columns: Columns, most: int) -> Columns:
    """No more rows than so many, the lowest and highest of every stretch of iterations among them,
    and the first and the last of all."""
    count = len(columns["iter"]) if columns else 0
    if count <= most:
        return columns
    columns = with_sums(columns)
    figures = [columns[name] for name in FIGURES if name in columns and is_varied(columns[name])]
    num_stretches = max(1, (most - 2) // (2 * max(1, len(figures))))
    rows = _chosen(columns, figures, num_stretches)
    if 0 < len(rows) < most // 2:  # many are the extremes of several figures: there is room
        more = _chosen(columns, figures, int(0.9 * num_stretches * most / len(rows)))
        rows = more if len(more) <= most else rows
    return _gathered(columns, rows)


def is_varied(column: Numbers) -> bool:
    known = column[np.isfinite(column)]
    return len(known) > 0 and bool(known.min() < known.max())


def _chosen(columns: Columns, figures: list[Numbers], num_stretches: int) -> npt.NDArray[np.intp]:
    """The rows that stay: of every stretch the extremes, or just one where nothing varies."""
    before = np.cumsum(columns[NUM], dtype=np.float64)
    stretch = np.minimum((before - 1) * num_stretches // before[-1], num_stretches - 1)
    starts = np.flatnonzero(np.diff(stretch, prepend=-1.0))
    kept = np.zeros(len(before), bool)
    kept[[0, -1]] = True
    for column in figures or [columns["iter"]]:
        kept[_extremes(column, starts)] = True
    return np.flatnonzero(kept)


def _extremes(column: Numbers, starts: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """The first row with the lowest number and the first with the highest, of each stretch."""
    lengths = np.diff(starts, append=len(column))
    which = np.repeat(np.arange(len(starts)), lengths)
    found = []
    for function, worst in ((np.minimum, np.inf), (np.maximum, -np.inf)):
        values = np.where(np.isfinite(column), column, worst)
        best = np.repeat(function.reduceat(values, starts), lengths)
        rows = np.flatnonzero((values == best) & np.isfinite(values))
        found.append(rows[np.flatnonzero(np.diff(which[rows], prepend=-1))])
    return np.concatenate(found)


def _gathered(columns: Columns, rows: npt.NDArray[np.intp]) -> Columns:
    """These rows, standing for those between them as well."""
    starts = np.concatenate([[0], rows[:-1] + 1])
    return {
        name: np.add.reduceat(column.astype(np.float64), starts).astype(column.dtype)
        if is_sum(name)
        else column[rows]
        for name, column in columns.items()
    }


def num_hidden(columns: Iterable[Columns]) -> int:
    """How many iterations these rows stand for beside their own."""
    return sum(int(rows[NUM].sum()) - len(rows[NUM]) for rows in columns if NUM in rows)
