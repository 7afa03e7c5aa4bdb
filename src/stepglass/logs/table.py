"""The iterations of a run as columns of numbers, in bounded memory.

Up to `CAPACITY` rows every printed iteration is kept. Beyond that ordinary ones are thinned evenly
(every second, every fourth, ...) and slow ones stay: a spike is what people ask about. Counts and
sums are of all of them. A number that was not printed is NaN.
"""

import math
from typing import Protocol

import numpy as np
import numpy.typing as npt

Column = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp] | slice

# `n` counts printed iterations; `prev_mfu` is what the iteration printed before this one said.
COLUMNS = (
    "n",
    "line",
    "iter",
    "loss",
    "time_ms",
    "mfu",
    "prev_mfu",
    "stamp",
    "lr",
    "grad_norm",
    "tok_s",
    "data_ms",
    "is_update",
    "step_ms",
    "memory_bytes",
)
CAPACITY = 1 << 15
MOST_BLOCKS = 512
SLOW = 1.5  # times the median: never thinned out


class Block(Protocol):
    """Iterations whose times are known; the rest is read of those that are kept."""

    def __len__(self) -> int: ...

    @property
    def times(self) -> Column: ...

    def mfu(self, rows: Rows) -> Column: ...

    def take(self, rows: Rows) -> dict[str, Column]: ...


class Read:
    """A block that is read already."""

    def __init__(self, columns: dict[str, Column]) -> None:
        self._columns = columns
        self.times = columns["time_ms"]

    def __len__(self) -> int:
        return len(self.times)

    def mfu(self, rows: Rows) -> Column:
        return self._columns["mfu"][rows]

    def take(self, rows: Rows) -> dict[str, Column]:
        return {name: values[rows] for name, values in self._columns.items()}


class Table:
    """Grows by rows or by blocks, reads by columns."""

    most_notes = 8_000  # evaluations, and checkpoints, that are kept beside it

    def __init__(self) -> None:
        self._blocks: list[dict[str, Column]] = []
        self._pending: list[dict[str, float | None]] = []
        self._columns: dict[str, Column] = {}
        self._size = 0
        self._stride = 1
        self._slow_ms = np.inf
        self._last_mfu = np.nan
        self._count = 0
        self._time_sum_ms = 0.0
        self._num_times = 0

    def __len__(self) -> int:
        """Iterations printed, kept or not."""
        return self._count + len(self._pending)

    @property
    def time_sum_ms(self) -> float:
        """Of all times printed."""
        self._flush()
        return self._time_sum_ms

    @property
    def num_times(self) -> int:
        """How many times were printed."""
        self._flush()
        return self._num_times

    def add(self, values: dict[str, float | None], phases: dict[str, float]) -> None:
        """One iteration. Its phases are summed elsewhere; a table that keeps all may want them."""
        self._pending.append(values)
        if len(self._pending) >= 4096:
            self._flush()

    def add_block(self, block: Block) -> None:
        """Many iterations, in order."""
        self._flush()
        self._append(block)

    def column(self, name: str) -> Column:
        """One column of the rows that were kept."""
        self._flush()
        if name not in self._columns:
            empty = np.empty(0)
            parts = [block.get(name, np.full(len(block["n"]), np.nan)) for block in self._blocks]
            self._columns[name] = np.concatenate([empty, *parts])
        return self._columns[name]

    def _flush(self) -> None:
        if not self._pending:
            return
        rows, self._pending = self._pending, []
        self._append(
            Read({name: np.array([as_float(row.get(name)) for row in rows]) for name in COLUMNS})
        )

    def _append(self, block: Block) -> None:
        self._columns = {}
        time = block.times
        first, self._count = self._count, self._count + len(time)
        is_known = ~np.isnan(time)
        self._time_sum_ms += float(time[is_known].sum())
        self._num_times += int(np.count_nonzero(is_known))
        kept = time > self._slow_ms
        kept[-first % self._stride :: self._stride] = True
        rows = np.flatnonzero(kept)
        before, self._last_mfu = self._last_mfu, float(block.mfu(np.array([len(time) - 1]))[0])
        if not len(rows):
            return
        columns = block.take(rows)
        columns["n"] = (rows + first).astype(np.float64)
        columns["prev_mfu"] = block.mfu(np.maximum(rows - 1, 0))
        columns["prev_mfu"][rows == 0] = before
        self._blocks.append(columns)
        self._size += len(rows)
        if len(self._blocks) > MOST_BLOCKS:
            self._join()
        while self._size > CAPACITY:
            self._thin()

    def _join(self) -> None:
        """A log that is followed comes in many small blocks, and each takes room of its own."""
        names = dict.fromkeys(name for block in self._blocks for name in block)
        whole = {name: self.column(name) for name in names}
        self._blocks, self._columns = [whole], {}

    def _thin(self) -> None:
        times = np.concatenate([block["time_ms"] for block in self._blocks])
        times = times[np.isfinite(times)]
        self._stride *= 2
        self._slow_ms = SLOW * median(times) if len(times) else np.inf
        self._blocks = [self._thinned(block) for block in self._blocks]
        self._size = sum(len(block["n"]) for block in self._blocks)
        if self._size > CAPACITY - CAPACITY // 4:  # slow ones are the rule here
            self._blocks = [{k: v[::2] for k, v in block.items()} for block in self._blocks]
            self._size = sum(len(block["n"]) for block in self._blocks)

    def _thinned(self, block: dict[str, Column]) -> dict[str, Column]:
        rows = np.flatnonzero((block["n"] % self._stride == 0) | (block["time_ms"] > self._slow_ms))
        return {name: values[rows] for name, values in block.items()}


def median(values: npt.ArrayLike) -> float:
    """NumPy's own loads masked arrays first, which takes longer than any log has medians."""
    ordered = np.sort(np.asarray(values, np.float64))
    if not len(ordered) or np.isnan(ordered[-1]):  # it is sorted to the end
        return math.nan
    return float(ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def medians(rows: Column) -> Column:
    """Of each row."""
    ordered = np.sort(rows, axis=1)
    width = rows.shape[1]
    return (ordered[:, (width - 1) // 2] + ordered[:, width // 2]) / 2


def as_float(value: float | None) -> float:
    return np.nan if value is None else float(value)
