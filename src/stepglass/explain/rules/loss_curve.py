"""The shape of a loss curve: its trend, the smoothed curve, and where it diverged."""

import math

import numpy as np

from stepglass.explain.study import Part
from stepglass.logs.table import Column, medians


def slope(x: Column, y: Column) -> tuple[float, float]:
    """The least-squares slope and its t value."""
    x = x - x.mean()
    spread = float(x @ x)
    if spread == 0 or len(x) < 3:
        return 0.0, 0.0
    m = float(x @ (y - y.mean()) / spread)
    residual = y - y.mean() - m * x
    se = math.sqrt(float(residual @ residual) / (len(x) - 2) / spread)
    return m, (m / se if se > 0 else math.copysign(math.inf, m) if m else 0.0)


def smoothed(losses: Column, width: int = 9) -> Column:
    """The running median, which ignores a single outlier."""
    if len(losses) < width:
        return losses
    windows = np.lib.stride_tricks.sliding_window_view(losses, width)
    middle = medians(windows)
    half = width // 2
    return np.concatenate([np.full(half, middle[0]), middle, np.full(half, middle[-1])])


def diverged_at(part: Part) -> int | None:
    """The row from which the smoothed loss stays far above its best."""
    iters, losses, _ = part.losses
    sigma = part.loss_sigma
    if len(losses) < 30 or sigma is None:
        return None
    smooth = smoothed(losses)
    best = np.minimum.accumulate(smooth)
    is_high = smooth > best + max(0.3, 6 * sigma / 3)
    if not is_high[-1]:
        return None
    low = np.flatnonzero(~is_high)
    start = int(low[-1]) + 1 if len(low) else 0
    is_long = iters[-1] - iters[start] >= 100 and len(iters) - start >= 5
    return start if is_long else None
