"""The times of a segment's rows (printed, or from timestamps) and the intervals between rows."""

import numpy as np

from stepglass.logs.segment import Segment
from stepglass.logs.table import Column, Mask, Rows, median, medians

SLOW = 1.5  # times the normal iteration
COARSE_S = 10.0  # whole seconds are too coarse for lines that are closer together
FEW = 4  # up to this many times, the median may be misleading
NEAR = 5  # ordinary rows on each side of a row


def times_of(segment: Segment) -> Column:
    """The time of each iteration: printed, or computed from timestamps."""
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
    return _evened_out(between, stamps, iters)


def _evened_out(between: Column, stamps: Column, iters: Column) -> Column:
    """The times, or their mean if the timestamps are too coarse to tell the lines apart."""
    known = np.flatnonzero(np.isfinite(stamps))
    shows_seconds = len(known) > 1 and bool((stamps[known] % 1 == 0).all())
    if not shows_seconds or median(np.diff(stamps[known])) >= COARSE_S:
        return between
    first, last = known[0], known[-1]
    if iters[last] <= iters[first] or stamps[last] - stamps[first] < COARSE_S:
        return np.full(len(between), np.nan)
    mean = (stamps[last] - stamps[first]) * 1000 / (iters[last] - iters[first])
    return np.where(np.isfinite(between), mean, np.nan)


def is_by_stamps(segment: Segment) -> bool:
    """Are the times computed from timestamps, because none are printed?"""
    table = segment.table
    return not table.num_times and bool(np.isfinite(table.column("stamp")).any())


def windows_of(segment: Segment) -> Column:
    """How many iterations the time of each row is the mean of. The first row of an excerpt does not
    say, so it gets what the others have, but not more iterations than there were."""
    windows = segment.table.column("window")
    if not len(windows) or not np.isfinite(windows).any():
        return np.ones(len(windows))
    known = windows[np.isfinite(windows)]
    result: Column = np.where(np.isfinite(windows), windows, 1.0)
    if not np.isfinite(windows[0]) and segment.first_iter:
        result[0] = min(median(known), float(segment.first_iter))
    return result


def has_holes(segment: Segment) -> bool:
    """Are lines missing, as in an excerpt that was cut together? Then nobody knows how long the
    iterations between took."""
    gaps = np.sort(np.diff(segment.table.column("iter")))
    if len(gaps) < 4 or segment.table.is_thinned:
        return False
    usual = float(gaps[int(0.9 * (len(gaps) - 1))])
    return float(gaps[-1]) > 5 * max(usual, 1.0)


def typical(values: Column, weights: Column) -> float:
    """The median iteration; a value is the mean of as many as its weight. If there are only a few
    very different times, the lower of the two middle ones, because people often paste just the slow
    lines of a log."""
    order = np.argsort(values, kind="stable")
    # Lines may be missing before a row: it must not count for all that it leaves out.
    sums = np.cumsum(np.minimum(weights, 2 * median(weights))[order])
    half = sums[-1] / 2
    low = float(values[order[np.searchsorted(sums, half * (1 - 1e-9))]])
    high = float(values[order[np.searchsorted(sums, half * (1 + 1e-9))]])
    return low if len(values) <= FEW and high > SLOW * low else (low + high) / 2


def normal_near(times: Column, ordinary: Mask, rows: Rows, otherwise: Column) -> Column:
    """The time of an ordinary iteration at each of these rows, from the few around it: on a machine
    that is busy at times, the step inside a boundary is as slow as its neighbours. If the log has
    only a few rows, `otherwise` is used."""
    chosen = np.flatnonzero(ordinary)
    if len(chosen) < 2 * NEAR:
        return otherwise[rows]
    first = np.clip(np.searchsorted(chosen, rows) - NEAR, 0, len(chosen) - 2 * NEAR)
    return medians(times[chosen[first[:, None] + np.arange(2 * NEAR)]])


def rows_after(segment: Segment, noted: list[int]) -> Mask:
    """Marks the first row after each of these lines."""
    lines = segment.table.column("line")
    rows = np.zeros(len(lines), bool)
    found = np.searchsorted(lines, np.array(noted, np.float64))
    rows[found[found < len(lines)]] = True
    return rows


def has_process_start(segment: Segment, is_first: bool) -> bool:
    """Does the segment contain the start of its process? Not if an excerpt starts in the middle."""
    if segment.first_iter is None:
        return False
    if segment.first_iter <= 1 or "init_from" in segment.facts:
        return True
    if np.isfinite(segment.table.column("window")).any():
        return bool(windows_of(segment)[0] >= segment.first_iter)  # a mean since the start
    return not is_first


def eval_interval(segment: Segment) -> int | None:
    """Iterations between two evaluations: the setting, or the most frequent distance."""
    setting = segment.setting("eval_interval")
    if isinstance(setting, int) and not isinstance(setting, bool) and setting > 0:
        return setting
    steps = segment.eval_steps
    if not steps:
        return None
    return max(steps, key=lambda step: (steps[step], -step))


def log_interval(iters: Column) -> int | None:
    """The most frequent distance between two printed iterations."""
    steps = np.diff(iters)
    steps = np.sort(steps[steps > 0])
    if not len(steps):
        return None
    firsts = np.flatnonzero(np.diff(steps, prepend=0))
    counts = np.diff(firsts, append=len(steps))
    return int(steps[firsts[counts.argmax()]])
