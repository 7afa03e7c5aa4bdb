"""The iterations of a run as columns of numbers, in bounded memory.

Up to `CAPACITY` rows, every printed iteration is kept. Beyond that, ordinary iterations are thinned
evenly (every second, every fourth, ...). Slow ones are kept, because people ask about spikes. If
there are too many slow ones, every second one is dropped, and `weight` says how many each remaining
one represents. Counts and sums include all iterations. A value that was not printed is NaN.
"""

import math
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

Column = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]  # numbers of rows
RowChoice = npt.NDArray[np.intp] | slice
Item = TypeVar("Item")

# `n` counts printed iterations. `prev_mfu` is the MFU of the iteration printed before this one.
# `weight` is how many slow iterations a slow row represents. `explained` is 1 if the line before
# says why the iteration is slow. `window` is how many iterations `time_ms` is the mean of.
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
    "weight",
    "explained",
    "window",
    "num_skipped",
)
CAPACITY = 1 << 15
ALL_SEGMENTS = 4  # all segments of a log together keep at most this many times CAPACITY
MOST_BLOCKS = 512
FIRST_ROWS = 16  # slow rows among these are the warm-up: they represent only themselves
SLOW = 1.5  # times the median: such rows are kept when ordinary ones are thinned


class RowBlock(Protocol):
    """Iterations whose times are known. Other values are decoded only for rows that are kept."""

    def __len__(self) -> int: ...

    @property
    def times(self) -> Column: ...

    @property
    def windows(self) -> Column | float: ...

    def mfu(self, rows: RowChoice) -> Column: ...

    def take(self, rows: RowChoice) -> dict[str, Column]: ...


class ReadBlock:
    """A block whose columns are already decoded."""

    def __init__(self, columns: dict[str, Column]) -> None:
        self._columns = columns
        self.times = columns["time_ms"]
        windows = columns.get("window")
        self.windows: Column | float = (
            1.0 if windows is None else np.where(np.isfinite(windows), windows, 1.0)
        )

    def __len__(self) -> int:
        return len(self.times)

    def mfu(self, rows: RowChoice) -> Column:
        return self._columns["mfu"][rows]

    def take(self, rows: RowChoice) -> dict[str, Column]:
        return {name: values[rows] for name, values in self._columns.items()}


class Table:
    """Stores rows or blocks of rows and returns columns."""

    most_notes = 8_000  # evaluations, and as many checkpoints, that a segment keeps

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
        """The number of printed iterations, kept or not."""
        return self._count + len(self._pending)

    @property
    def time_sum_ms(self) -> float:
        """The sum of all printed times. A mean counts for every iteration of its window."""
        self._flush()
        return self._time_sum_ms

    @property
    def num_times(self) -> int:
        """The number of iterations with a printed time, or within the window of one."""
        self._flush()
        return self._num_times

    @staticmethod
    def capacity() -> int:
        """The largest number of rows to keep."""
        return CAPACITY

    @property
    def num_kept(self) -> int:
        """The number of rows that `column` returns."""
        self._flush()
        return self._size

    @property
    def is_thinned(self) -> bool:
        """Were some iterations dropped?"""
        return self.num_kept < len(self)

    @classmethod
    def share_room(cls, tables: Sequence["Table"]) -> None:
        """Thin the longest tables, so that memory does not grow with the number of runs."""
        halve_largest(tables, lambda t: t.num_kept, Table.shrink, ALL_SEGMENTS * CAPACITY)

    def shrink(self, most: int) -> None:
        """Keep at most `most` rows."""
        self._flush()
        while self._size > max(most, 2 * FIRST_ROWS):
            self._thin(most)

    def add(self, values: dict[str, float | None], phases: dict[str, float]) -> None:
        """Add one iteration. This class ignores the phases; subclasses may store them."""
        self._pending.append(values)
        if len(self._pending) >= 4096:
            self._flush()

    def add_block(self, block: RowBlock) -> None:
        """Add many iterations, in order."""
        self._flush()
        self._append(block)

    def column(self, name: str) -> Column:
        """One column of the kept rows."""
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
            ReadBlock(
                {name: np.array([as_float(row.get(name)) for row in rows]) for name in COLUMNS}
            )
        )

    def _append(self, block: RowBlock) -> None:
        self._columns = {}
        time = block.times
        first, self._count = self._count, self._count + len(time)
        is_known = ~np.isnan(time)
        windows = np.broadcast_to(block.windows, time.shape)[is_known]
        self._time_sum_ms += float((time[is_known] * windows).sum())
        self._num_times += int(windows.sum())
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
        columns["weight"] = np.ones(len(rows))
        self._blocks.append(columns)
        self._size += len(rows)
        if len(self._blocks) > MOST_BLOCKS:
            self._join()
        while self._size > self.capacity():
            self._thin(self.capacity())

    def _join(self) -> None:
        """Join all blocks into one: the many small blocks of a followed log waste memory."""
        names = dict.fromkeys(name for block in self._blocks for name in block)
        whole = {name: self.column(name) for name in names}
        self._blocks, self._columns = [whole], {}

    def _thin(self, most: int) -> None:
        self._join()
        [rows] = self._blocks
        is_even = rows["n"] % self._stride == 0  # the other rows were kept because they are slow
        times = rows["time_ms"][is_even & np.isfinite(rows["time_ms"])]
        self._stride *= 2
        self._slow_ms = SLOW * median(times) if len(times) else np.inf
        is_slow = rows["time_ms"] > self._slow_ms
        kept = is_slow | (rows["n"] % self._stride == 0)
        is_slow &= rows["n"] >= FIRST_ROWS
        num_kept, num_slow = np.count_nonzero(kept), np.count_nonzero(is_slow)
        if num_kept > most - most // 4 and num_slow > num_kept // 2:  # most rows are slow
            kept[np.flatnonzero(is_slow)[1::2]] = False
            # The estimated total time of slow iterations must stay the same after thinning.
            weight, stay = rows["weight"], is_slow & kept
            weight[stay] *= weight[is_slow].sum() / weight[stay].sum()
        self._blocks = [{name: values[kept] for name, values in rows.items()}]
        self._columns = {}
        self._size = int(np.count_nonzero(kept))


def halve_largest(
    items: Sequence[Item],
    size: Callable[[Item], int],
    shrink: Callable[[Item, int], None],
    most: int,
) -> None:
    """Halve the largest item until the total size is at most `most`."""
    sizes = [size(item) for item in items]
    while sum(sizes) > most:
        largest = max(range(len(items)), key=sizes.__getitem__)
        shrink(items[largest], sizes[largest] // 2)
        now = size(items[largest])
        if now >= sizes[largest]:
            return  # it cannot shrink further
        sizes[largest] = now


def median(values: npt.ArrayLike) -> float:
    """The median. np.median first imports masked arrays, which takes longer than this function."""
    ordered = np.sort(np.asarray(values, np.float64))
    if not len(ordered) or np.isnan(ordered[-1]):  # NaN is sorted to the end
        return math.nan
    return float(ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def medians(rows: Column) -> Column:
    """The median of each row."""
    ordered = np.sort(rows, axis=1)
    width = rows.shape[1]
    return (ordered[:, (width - 1) // 2] + ordered[:, width // 2]) / 2


def as_float(value: float | None) -> float:
    return np.nan if value is None else float(value)
