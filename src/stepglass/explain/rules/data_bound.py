"""Training waits for batches."""

import numpy as np

from stepglass.explain.finding import Finding
from stepglass.explain.iteration_times import windows_of
from stepglass.explain.study import Part
from stepglass.logs.table import median

DATA_BUDGET = 0.05
LEAST_MS = 3.0  # many logs round to a millisecond


def find_data_bound(part: Part) -> list[Finding]:
    waits = part.column("data_ms")
    if np.isfinite(waits).any():
        return _by_printed_waits(part)
    data = part.phase_ms("data")
    work = part.phase_ms("data", "forward_backward", "optimizer", "step")
    if not data or data / work <= DATA_BUDGET:
        return []
    return [_finding(part, data / work, "phases", total_ms=data)]


def _by_printed_waits(part: Part) -> list[Finding]:
    """The log prints, for the same iterations, the wait and the time of a step. Both are compared
    iteration by iteration, because their sums may leave out the iterations that are not printed."""
    waits, times = part.column("data_ms"), part.timing.times
    if len(times) != len(waits):
        return []
    later = part.column("iter") > (part.segment.first_iter or 0)  # the first also opens files
    slow = np.isin(part.column("line"), [spike.line for spike in part.timing.spikes])
    known = later & ~slow & np.isfinite(waits) & np.isfinite(times) & (times > 0)
    if not known.any():
        return []
    windows = windows_of(part.segment)[known]
    wait = float((waits[known] * windows).sum())
    work = float((times[known] * windows).sum()) + (0.0 if part.format.time_holds_data else wait)
    share = wait / work
    if share <= DATA_BUDGET or median(waits[known]) < LEAST_MS:
        return []
    wait_ms, worst_ms = median(waits[known]), float(waits[known].max())
    return [_finding(part, share, "plain", median_ms=wait_ms, worst_ms=worst_ms)]


def _finding(part: Part, share: float, variant: str, **numbers: float) -> Finding:
    work = part.phase_ms("data", "forward_backward", "optimizer", "step")
    return Finding(
        "data-bound",
        "established",
        "advice",
        {"data_share": share, "total_ms": None, "median_ms": None, "worst_ms": None, **numbers},
        [part.segment.first_line or 1, part.segment.last_line or 1],
        variant=variant,
        cost_ms=share * work,
    )
