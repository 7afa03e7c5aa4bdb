"""The iterations of a run for drawing: all of them up to a limit. Beyond it they are thinned, but
the lowest and highest values of each column are always kept.

    table = ChartTable()
    table.drawn.slice(0, 10)["loss"]          # one number per kept row, NaN if unknown
    table.drawn.slice(0, 10)["phase:eval"]    # milliseconds of the row spent on evaluation
    table.drawn.between(100, 200)             # the rows of lines 101 to 200 of the log

`explain` and the page keep different rows: `explain` needs rows at equal distances in 64 bits, and
the page draws the lowest and highest values, for which 32 bits are enough.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from stepglass.logs.table import RowBlock, Table, halve_largest
from stepglass.report.columns import (
    DRAWN,
    NUM,
    PHASE,
    Columns,
    Numbers,
    empty_of,
    is_phase,
    new_column,
)
from stepglass.report.thinning import thinned, with_sums

MOST_PHASES = 32  # our logs have nine; with more than this, the names are not real phases
MOST_WAITING = 4096  # iterations not yet converted to columns
FIRST_CAPACITY = 1024
ALL = slice(None)


class DrawnRows:
    """Columns of numbers with one row per iteration. Beyond `most_rows`, they are thinned
    (`report/thinning.py`)."""

    def __init__(self, most_rows: int) -> None:
        self._most_rows = most_rows
        self._num_rows = 0
        self._has_sums = False
        self._kept: Columns = {}
        self._waiting: list[tuple[dict[str, float | None], dict[str, float]]] = []

    def __len__(self) -> int:
        self._flush()
        return self._num_rows

    def add(self, values: dict[str, float | None], phases: dict[str, float]) -> None:
        """Add one iteration."""
        self._waiting.append((values, phases))
        if len(self._waiting) >= MOST_WAITING:
            self._flush()

    def add_block(self, block: RowBlock) -> None:
        """Add many iterations, in order."""
        self._flush()
        columns: Columns = dict(block.take(ALL))
        for name, column in getattr(block, "phases", {}).items():
            columns[PHASE + name] = column
        self._append(columns, len(block))

    def slice(self, start: int, end: int) -> Columns:
        """The columns of these rows. They are views and must not be changed."""
        end = min(end, len(self))
        return {name: column[start:end] for name, column in self._kept.items()}

    def between(self, after: int, until: int) -> Columns:
        """The rows of the lines after `after`, up to and including `until`, as views."""
        if not len(self):
            return {}
        lines = self._kept["line"][: self._num_rows]
        start, end = np.searchsorted(lines, [after, until], side="right")
        return self.slice(int(start), int(end))

    def shrink(self, most: int) -> None:
        """Keep at most `most` rows. The arrays keep their size, because they will fill again."""
        before = len(self)
        rows = thinned(self.slice(0, before), most)
        self._num_rows = len(rows["iter"]) if rows else 0
        self._has_sums |= NUM in rows
        for name, column in rows.items():
            if name not in self._kept:
                self._kept[name] = new_column(name, before)
            self._kept[name][: self._num_rows] = column
            self._kept[name][self._num_rows :] = empty_of(name)

    def _flush(self) -> None:
        if not self._waiting:
            return
        rows, self._waiting = self._waiting, []
        columns: Columns = {
            name: np.array([_number(values.get(name)) for values, _ in rows]) for name in DRAWN
        }
        for name in dict.fromkeys(name for _, phases in rows for name in phases):
            columns[PHASE + name] = np.array([phases.get(name, 0.0) for _, phases in rows])
        self._append(columns, len(rows))

    def _append(self, columns: Columns, count: int) -> None:
        if self._num_rows + count > self._most_rows:
            self.shrink(self._most_rows // 2)
        columns = {name: columns[name] for name in self._wanted(columns)}
        if self._has_sums:
            columns = with_sums(columns)
        start, end = self._num_rows, self._num_rows + count
        for name, values in columns.items():
            if name not in self._kept:
                self._kept[name] = new_column(name, FIRST_CAPACITY)
            with np.errstate(over="ignore"):  # too large for float32: becomes infinite
                self._room(name, end)[start:end] = values
        for name in self._kept.keys() - columns.keys():
            self._room(name, end)
        self._num_rows = end
        if end > self._most_rows:  # the block alone was longer than that
            self.shrink(self._most_rows // 2)

    def _wanted(self, names: Iterable[str]) -> list[str]:
        """The names of the columns to keep: those that are drawn, and the first phases."""
        phases = list(filter(is_phase, self._kept))
        new = [name for name in names if is_phase(name) and name not in self._kept]
        known = {*DRAWN, *phases, *new[: max(0, MOST_PHASES - len(phases))]}
        return [name for name in names if name in known]

    def _room(self, name: str, end: int) -> Numbers:
        """The column, enlarged if necessary to at least `end` rows."""
        column = self._kept[name]
        if end > len(column):
            grown = new_column(name, max(end, min(2 * len(column), self._most_rows)))
            grown[: len(column)] = column
            self._kept[name] = column = grown
        return column


def _number(value: float | None) -> float:
    return np.nan if value is None else value


class ChartTable(Table):
    """A table that also keeps rows for drawing, and keeps more evaluations."""

    most_notes = 32_000
    most_rows = 1 << 20

    def __init__(self) -> None:
        super().__init__()
        self.drawn = DrawnRows(self.most_rows)

    def add(self, values: dict[str, float | None], phases: dict[str, float]) -> None:
        super().add(values, phases)
        self.drawn.add(values, phases)

    def add_block(self, block: RowBlock) -> None:
        super().add_block(block)
        self.drawn.add_block(block)

    @classmethod
    def share_room(cls, tables: Sequence[Table]) -> None:
        super().share_room(tables)
        drawn = [table.drawn for table in tables if isinstance(table, ChartTable)]
        halve_largest(drawn, len, DrawnRows.shrink, cls.most_rows)


class LiveChartTable(ChartTable):
    """A smaller table for a live page, whose server can read the log again for zooming in."""

    most_notes = 8_000
    most_rows = 1 << 17
