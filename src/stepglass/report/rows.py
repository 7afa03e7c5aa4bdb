"""Every iteration of a run, for drawing: the table of `explain` thins a long log out, this one does
not.

    table = AllRows()
    table.slice(0, len(table))["loss"]      # one number for each printed iteration, NaN if unknown
    table.slice(0, 10)["phase:eval"]        # what of its time was an evaluation, in milliseconds

Numbers are kept in 32 bits, as they will be drawn: a million iterations are 80 MB.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from stepglass.logs.table import Block, Table

Numbers = npt.NDArray[Any]

EXACT = ("iter", "line")
DRAWN = (
    *EXACT,
    "loss",
    "time_ms",
    "step_ms",
    "mfu",
    "lr",
    "grad_norm",
    "tok_s",
    "memory_bytes",
)
PHASE = "phase:"
MOST_PHASES = 32  # ours has nine; whoever names more is not telling where the time went
FIRST_CAPACITY = 1024
ALL = slice(None)


class AllRows(Table):
    """A table that also keeps every row, and every evaluation."""

    most_notes = 1_000_000

    def __init__(self) -> None:
        super().__init__()
        self._num_rows = 0
        self._kept: dict[str, Numbers] = {}
        self._rows: list[tuple[dict[str, float | None], dict[str, float]]] = []

    def add(self, values: dict[str, float | None], phases: dict[str, float]) -> None:
        super().add(values, phases)
        self._rows.append((values, phases))
        if len(self._rows) >= 4096:
            self._keep_rows()

    def add_block(self, block: Block) -> None:
        super().add_block(block)
        self._keep_rows()
        columns: dict[str, Any] = dict(block.take(ALL))
        for name, column in getattr(block, "phases", {}).items():
            columns[PHASE + name] = column
        self._append_rows(columns, len(block))

    def slice(self, start: int, end: int) -> dict[str, Numbers]:
        """The columns of these rows. A view: it must not be changed."""
        self._keep_rows()
        return {name: column[start:end] for name, column in self._kept.items()}

    def num_rows(self) -> int:
        self._keep_rows()
        return self._num_rows

    def _keep_rows(self) -> None:
        if not self._rows:
            return
        rows, self._rows = self._rows, []
        columns: dict[str, Any] = {
            name: np.array([as_number(values.get(name)) for values, _ in rows]) for name in DRAWN
        }
        for name in dict.fromkeys(name for _, phases in rows for name in phases):
            columns[PHASE + name] = np.array([phases.get(name, 0.0) for _, phases in rows])
        self._append_rows(columns, len(rows))

    def _append_rows(self, columns: dict[str, Any], count: int) -> None:
        start, end = self._num_rows, self._num_rows + count
        for name, values in columns.items():
            if self._is_drawn(name):
                if name not in self._kept:
                    self._kept[name] = new_column(name, FIRST_CAPACITY)
                with np.errstate(over="ignore"):  # what no float32 holds is drawn as infinite
                    self._room(name, end)[start:end] = values
        for name in self._kept.keys() - columns.keys():
            self._room(name, end)
        self._num_rows = end

    def _is_drawn(self, name: str) -> bool:
        if not name.startswith(PHASE):
            return name in DRAWN
        return name in self._kept or len(self._kept) < len(DRAWN) + MOST_PHASES

    def _room(self, name: str, end: int) -> Numbers:
        """The column, with space up to `end`."""
        column = self._kept[name]
        if end > len(column):
            grown = new_column(name, max(end, 2 * len(column)))
            grown[: len(column)] = column
            self._kept[name] = column = grown
        return column


def new_column(name: str, length: int) -> Numbers:
    """Nothing known yet; of a phase, no time spent."""
    empty = 0.0 if name.startswith(PHASE) else np.nan
    return np.full(length, empty, np.float64 if name in EXACT else np.float32)


def as_number(value: float | None) -> float:
    return np.nan if value is None else value
