"""Ordinary iterations get slower during the run and stay slow."""

import math

import numpy as np

from stepglass.explain.finding import Finding
from stepglass.explain.rules.slow_stretch import (
    has_kept_its_rate,
    running_medians,
    time_noise,
    time_scatter,
)
from stepglass.explain.study import Part
from stepglass.logs.table import Column, Rows, median

MANY_LINES = 60
FEW_LINES = 12
LEAST_RISE = 1.05  # times the first speed
LEAST_RISE_OF_FEW = 1.1  # with few lines, chance plays a larger part
SIGMAS = 4.0
LASTING = 2  # groups after a sudden rise, at least


def find_slowdown(part: Part) -> list[Finding]:
    if part.format.slows_down_by_plan:
        return []
    times, iters, lines = part.timing.times, part.column("iter"), part.column("line")
    chosen = np.flatnonzero(part.timing.ordinary & np.isfinite(times))
    if part.segment.nan_iter is not None:
        chosen = chosen[iters[chosen] < part.segment.nan_iter]
    if len(chosen) < FEW_LINES:
        return []
    groups = np.array_split(chosen, 10 if len(chosen) >= MANY_LINES else 6)
    if not _is_slower(times, groups):
        return []
    third = max(1, len(groups) // 3)
    early, late = np.concatenate(groups[:third]), np.concatenate(groups[-third:])
    if has_kept_its_rate(part, early, late):
        return []
    if len(chosen) < MANY_LINES:
        groups, medians = np.array_split(chosen, len(chosen)), running_medians(times[chosen])
    else:
        medians = np.array([median(times[group]) for group in groups])
    first, last = median(times[early]), median(times[late])
    jump = int(np.argmax(np.diff(medians)))
    is_step = (medians[jump + 1] - medians[jump]) > 0.6 * (last - first)
    is_step &= jump + 1 <= len(groups) - LASTING  # what has only just come has not stayed yet
    throttled = [e for e in part.segment.events if e.name == "throttle"]
    start = groups[jump + 1][0] if is_step else late[0]
    scale = (part.timing.num_iters or len(chosen)) / len(chosen)
    return [
        Finding(
            "slowdown",
            "established" if throttled else "supported",
            "advice",
            {
                "first_ms": first,
                "last_ms": last,
                "rise_percent": 100 * (last / first - 1),
                "iter": int(iters[start]),
            },
            [int(lines[start]), int(lines[chosen[-1]])] + [e.line for e in throttled],
            [int(iters[start]), int(iters[chosen[-1]])],
            variant="throttle" if throttled else "step" if is_step else "drift",
            cost_ms=max(0.0, float((times[chosen] - first).sum())) * scale,
        )
    ]


def _is_slower(times: Column, groups: list[Rows]) -> bool:
    """Is the last third of the run slower than the first, beyond the noise?

    With many lines, the medians of groups are compared. With few lines, every line of the last
    third must be slower than every line of the first.
    """
    third = max(1, len(groups) // 3)
    first, last = times[np.concatenate(groups[:third])], times[np.concatenate(groups[-third:])]
    chosen = np.concatenate(groups)
    rise = median(last) - median(first)
    # A run may also wander without a cause. Then the thirds themselves scatter.
    scatter = max(time_noise(times[chosen]), time_scatter(first), time_scatter(last))
    if len(chosen) >= MANY_LINES:
        early, late = (
            [median(times[group]) for group in some] for some in (groups[:third], groups[-third:])
        )
        is_beyond = rise >= SIGMAS * scatter / math.sqrt(len(groups[0])) and rise >= 2 * scatter
        return is_beyond and min(late) > max(early) and rise >= (LEAST_RISE - 1) * median(first)
    is_beyond = rise >= SIGMAS * scatter and rise >= (LEAST_RISE_OF_FEW - 1) * median(first)
    return is_beyond and bool(last.min() > first.max())
