"""The times of a segment's rows: printed, or from timestamps, and how far apart the rows are."""

import numpy as np

from stepglass.logs.segment import Segment
from stepglass.logs.table import Column, Mask

SLOW = 1.5  # times the normal iteration
FEW = 4  # times that may be far apart


def times_of(segment: Segment) -> Column:
    """Each iteration's time: printed, or from the timestamps around it."""
    table = segment.table
    steps_alone = table.column("step_ms")
    if np.isfinite(steps_alone).any():
        return steps_alone
    times = table.column("time_ms")
    if np.isfinite(times).any() or len(times) < 2:
        return times
    stamps, iters = table.column("stamp"), table.column("iter")
    between = np.full(len(times), np.nan)
    steps = iters[1:] - iters[:-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        between[1:] = np.where(steps > 0, (stamps[1:] - stamps[:-1]) * 1000 / steps, np.nan)
    return between


def is_by_stamps(segment: Segment) -> bool:
    """No time is printed: it comes from the timestamps."""
    table = segment.table
    return not table.num_times and bool(np.isfinite(table.column("stamp")).any())


def typical(values: Column) -> float:
    """The median. Of few times that lie far apart, the lower ones: people paste slow lines."""
    few = np.sort(values)
    low, high = float(few[(len(few) - 1) // 2]), float(few[len(few) // 2])
    return low if len(few) <= FEW and high > SLOW * low else (low + high) / 2


def rows_after(segment: Segment, noted: list[int]) -> Mask:
    """The rows right after these lines."""
    lines = segment.table.column("line")
    rows = np.zeros(len(lines), bool)
    found = np.searchsorted(lines, np.array(noted, np.float64))
    rows[found[found < len(lines)]] = True
    return rows


def begins_here(segment: Segment, is_first: bool) -> bool:
    """Is the segment's first line the first of a process? Not if a paste begins in the middle."""
    if segment.first_iter is None:
        return False
    if segment.first_iter <= 1 or "init_from" in segment.facts:
        return True
    return not is_first


def eval_interval(segment: Segment) -> int | None:
    """Iterations between two evaluations: as set, or as seen."""
    setting = segment.setting("eval_interval")
    if isinstance(setting, int) and not isinstance(setting, bool) and setting > 0:
        return setting
    steps = segment.eval_steps
    if not steps:
        return None
    return max(steps, key=lambda step: (steps[step], -step))


def log_interval(iters: Column) -> int | None:
    """The usual number of iterations between two printed ones."""
    steps = np.diff(iters)
    steps = np.sort(steps[steps > 0])
    if not len(steps):
        return None
    firsts = np.flatnonzero(np.diff(steps, prepend=0))
    counts = np.diff(firsts, append=len(steps))
    return int(steps[firsts[counts.argmax()]])
