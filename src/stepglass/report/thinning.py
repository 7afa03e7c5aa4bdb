"""Reduces the number of rows to draw, but keeps the lowest and highest value of each column.

The run is divided into stretches of equal length. In each stretch, the rows with the lowest or
highest value of a column are kept. They are real iterations, so a spike is never lost. A kept row
also represents the rows that were dropped before it: `num` is how many it represents, including
itself, and a column `sum:...` has the sum of their values.
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from stepglass.report.columns import (
    FIGURES,
    NUM,
    NUM_LOSSES,
    SUM,
    SUMMED,
    Columns,
    Numbers,
    is_phase,
    is_sum,
)


def with_sums(columns: Columns) -> Columns:
    """Add `num` and sums to rows that represent only themselves."""
    if NUM in columns or "iter" not in columns:
        return columns
    result = {**columns, NUM: np.ones(len(columns["iter"]), np.float32)}
    for name in (*filter(columns.__contains__, SUMMED), *filter(is_phase, columns)):
        result[SUM + name] = np.where(np.isfinite(columns[name]), columns[name], 0.0)
    if "loss" in columns:
        result[NUM_LOSSES] = np.isfinite(columns["loss"]).astype(np.float32)
    return result


def thinned(columns: Columns, most: int) -> Columns:
    """At most `most` rows, including the lowest and highest of every stretch, and the first and
    last row of all."""
    count = len(columns["iter"]) if columns else 0
    if count <= most:
        return columns
    columns = with_sums(columns)
    figures = [columns[name] for name in FIGURES if name in columns and is_varied(columns[name])]
    num_stretches = max(1, (most - 2) // (2 * max(1, len(figures))))
    rows = _chosen(columns, figures, num_stretches)
    if 0 < len(rows) < most // 2:  # many rows are extremes of several columns: take more
        more = _chosen(columns, figures, int(0.9 * num_stretches * most / len(rows)))
        rows = more if len(more) <= most else rows
    return _gathered(columns, rows)


def is_varied(column: Numbers) -> bool:
    known = column[np.isfinite(column)]
    return len(known) > 0 and bool(known.min() < known.max())


def _chosen(columns: Columns, figures: list[Numbers], num_stretches: int) -> npt.NDArray[np.intp]:
    """The rows to keep: the extremes of every stretch, or its first and last row if no column
    varies."""
    before = np.cumsum(columns[NUM], dtype=np.float64)
    stretch = np.minimum((before - 1) * num_stretches // before[-1], num_stretches - 1)
    starts = np.flatnonzero(np.diff(stretch, prepend=-1.0))
    kept = np.zeros(len(before), bool)
    kept[[0, -1]] = True
    for column in figures or [columns["iter"]]:
        kept[_extremes(column, starts)] = True
    return np.flatnonzero(kept)


def _extremes(column: Numbers, starts: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """In each stretch, the first row with the lowest value and the first with the highest."""
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
    """These rows, with sums over the dropped rows before each."""
    starts = np.concatenate([[0], rows[:-1] + 1])
    return {
        name: np.add.reduceat(column.astype(np.float64), starts).astype(column.dtype)
        if is_sum(name)
        else column[rows]
        for name, column in columns.items()
    }


def num_dropped(columns: Iterable[Columns]) -> int:
    """How many dropped iterations these rows represent."""
    return sum(int(rows[NUM].sum()) - len(rows[NUM]) for rows in columns if NUM in rows)
