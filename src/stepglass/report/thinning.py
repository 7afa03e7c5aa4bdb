"""Fewer rows to draw, and never without the lowest and highest of each figure.

The run is divided into stretches of equal length, and of each those rows stay that have the lowest
or the highest value of some column: they are real iterations, and a spike is never lost. A row then
also stands for those that were dropped before it: `num` is how many it stands for, itself among
them, and a column `sum:...` adds up what they had.
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
    """Rows with sums that are of themselves alone."""
    if NUM in columns or "iter" not in columns:
        return columns
    result = {**columns, NUM: np.ones(len(columns["iter"]), np.float32)}
    for name in (*filter(columns.__contains__, SUMMED), *filter(is_phase, columns)):
        result[SUM + name] = np.where(np.isfinite(columns[name]), columns[name], 0.0)
    if "loss" in columns:
        result[NUM_LOSSES] = np.isfinite(columns["loss"]).astype(np.float32)
    return result


def thinned(columns: Columns, most: int) -> Columns:
    """At most `most` rows, the lowest and highest of every stretch of iterations among them, and
    the first and the last of all."""
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
    """The rows that stay: the extremes of every stretch, or one row where nothing varies."""
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
    """These rows, with the sums of those between them."""
    starts = np.concatenate([[0], rows[:-1] + 1])
    return {
        name: np.add.reduceat(column.astype(np.float64), starts).astype(column.dtype)
        if is_sum(name)
        else column[rows]
        for name, column in columns.items()
    }


def num_dropped(columns: Iterable[Columns]) -> int:
    """How many iterations were dropped that these rows stand for."""
    return sum(int(rows[NUM].sum()) - len(rows[NUM]) for rows in columns if NUM in rows)
