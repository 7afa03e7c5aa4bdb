"""Ordinary iterations get slower during the run and stay slow."""

import math

import numpy as np

from stepglass.explain.finding import Finding
from stepglass.explain.study import Part
from stepglass.logs.table import median


def find_slowdown(part: Part) -> list[Finding]:

    if part.format.slows_down_by_plan:
        return []
    times, iters = part.timing.times, part.column("iter")
    chosen = np.flatnonzero(part.timing.ordinary & np.isfinite(times))
    if part.segment.nan_iter is not None:
        chosen = chosen[iters[chosen] < part.segment.nan_iter]
    throttled = [e for e in part.segment.events if e.name == "throttle"]
    if len(chosen) < 60:
        return []
    parts = np.array_split(chosen, 10)
    medians = np.array([median(times[p]) for p in parts])
    noise = (part.timing.sigma_ms or 0.0) / math.sqrt(len(parts[0]))
    early, late = float(medians[:3].max()), float(medians[-3:].min())
    first, last = median(medians[:3]), median(medians[-3:])
    if late <= early or last < 1.05 * first or last - first < 6 * noise:
        return []
    jump = int(np.argmax(np.diff(medians)))
    is_step = (medians[jump + 1] - medians[jump]) > 0.6 * (last - first)
    cost = max(0.0, float((times[chosen] - first).sum()))
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
                "iter": int(iters[parts[jump + 1][0]]),
            },
            [int(part.column("line")[parts[jump + 1][0]]), int(part.column("line")[chosen[-1]])]
            + [e.line for e in throttled],
            [int(iters[parts[jump + 1][0]]), int(iters[chosen[-1]])],
            variant="throttle" if throttled else "step" if is_step else "drift",
            cost_ms=cost * scale,
        )
    ]
