"""Unexplained slow iterations: are they important, and are they regular?"""

import numpy as np

from stepglass.explain.study import Part
from stepglass.explain.timing import Spike
from stepglass.logs.table import median


def is_worth_reporting(part: Part, total_ms: float) -> bool:
    """Did they take at least one second (or as long as 20 ordinary iterations) in total, and at
    least half a percent of the run?"""
    is_long = total_ms >= 1000 or total_ms >= 20 * (part.timing.normal_ms or 0.0)
    return is_long and not (part.wall_ms and total_ms < 0.005 * part.wall_ms)


def regular_spacing(stalls: list[Spike]) -> int | None:
    """The number of iterations between stalls, if it is regular."""
    if len(stalls) < 5:
        return None
    gaps = np.diff([s.iter for s in stalls])
    middle = median(gaps)
    if middle < 2 or float(np.mean(np.abs(gaps - middle) <= 0.2 * middle)) < 0.75:
        return None
    return round(middle / median([s.weight for s in stalls]))
