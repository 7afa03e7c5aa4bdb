"""Draws a curve in one line of text. Each bin shows its extreme, so no spike is lost."""

import numpy as np

from stepglass.logs.table import Column, median

BARS = "▁▂▃▄▅▆▇█"


def sparkline(values: Column, width: int = 60, log: bool = False) -> str:
    """
    >>> sparkline(np.array([1.0, 2.0, 3.0, 8.0, 1.0]), width=5)
    '▁▂▃█▁'
    """
    values = values[np.isfinite(values)]
    if log:
        values = np.log(values[values > 0])
    if not len(values):
        return ""
    bins = np.array_split(values, min(width, len(values)))
    middle = median(values)
    heights = np.array([b[np.argmax(np.abs(b - middle))] for b in bins])
    low, high = float(heights.min()), float(heights.max())
    if high <= low:
        return BARS[0] * len(heights)
    levels = np.round((heights - low) / (high - low) * (len(BARS) - 1)).astype(int)
    return "".join(BARS[level] for level in levels)
