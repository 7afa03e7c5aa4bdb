"""What a log says about waiting for data: rows that are slow because of it, and the sum of it."""

import numpy as np

from stepglass.explain.iteration_times import typical, windows_of
from stepglass.logs.segment import Segment
from stepglass.logs.table import Column, Mask

EXPLAINS = 0.8  # of the extra time


def rows_that_wait(segment: Segment, times: Column, usual_ms: Column) -> Mask:
    """Marks the slow rows whose printed wait for data explains their extra time."""
    waits = segment.table.column("data_ms")
    known = np.isfinite(waits)
    if not known.any() or len(times) != len(waits):
        return np.zeros(len(times), bool)
    extra = np.nan_to_num(times - usual_ms)
    more = np.nan_to_num(waits - typical(waits[known], windows_of(segment)[known]))
    mask: Mask = known & (extra > 0) & (more >= EXPLAINS * extra)
    return mask


def mean_wait_ms(segment: Segment, left_out: set[int]) -> float | None:
    """The mean wait per iteration, without the lines `left_out`, whose extra time has a cause of
    its own. None if the log prints no waits."""
    waits, windows = segment.table.column("data_ms"), windows_of(segment)
    lines = segment.table.column("line")
    rows = np.isfinite(waits) & ~np.isin(lines, list(left_out))
    if not rows.any():
        return None
    return float((waits[rows] * windows[rows]).sum() / windows[rows].sum())
