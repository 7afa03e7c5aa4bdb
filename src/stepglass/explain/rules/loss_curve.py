"""The shape of a loss curve: its trend, its noise, and where it rose far above its best."""

import math
from dataclasses import dataclass

import numpy as np

from stepglass.explain.study import Part
from stepglass.logs.table import Column, Mask, median, medians

FEW_ROWS = 100


@dataclass(frozen=True)
class Rise:
    """A stretch of rows whose loss lies far above the best before. `end` is the first row after it,
    or the number of rows if the loss never came back."""

    best: int
    start: int
    end: int
    is_explosion: bool  # above everything before it, the untrained model's loss included
    is_final: bool
    is_sure: bool  # it lasted long enough to be no spike


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


def noise_of(losses: Column) -> float:
    """The standard deviation of a printed loss about lines through long blocks: a loss often
    resembles the one before it, and such noise is seen only from afar."""
    losses = losses[np.diff(losses, prepend=np.nan) != 0]  # a value that stays has no noise
    if len(losses) < FEW_ROWS:
        return 1.4826 * median(np.abs(losses - smoothed(losses, 5))) if len(losses) else 0.0
    width = 129 if len(losses) >= 600 else 33
    blocks = losses[: len(losses) // width * width].reshape(-1, width)
    x = np.linspace(-1, 1, width)
    away = blocks - blocks.mean(axis=1)[:, None]
    away -= (away @ x / (x @ x))[:, None] * x
    typical = np.sort(medians(np.abs(away)))
    return 1.4826 * float(typical[(len(typical) - 1) // 2])  # a jump spoils only its own block


def rise_of(part: Part) -> Rise | None:
    """Where the loss rose far above its best: for good, or else where it stayed up longest."""
    iters, losses, _ = part.losses
    if len(losses) < 6 or part.is_policy_loss:
        return None
    is_few = len(losses) < FEW_ROWS
    smooth = smoothed(losses, 3 if is_few else 9)
    best = np.minimum.accumulate(smooth)
    # A few losses do not show that their noise is slow, so it must be exceeded by more.
    beyond = (8 if is_few else 5) * noise_of(losses)
    least = np.maximum(beyond, np.maximum(0.1 * np.abs(best), 0.05))
    # A median of three shows a sudden rise at the very end.
    is_high = (smooth > best + least) | (smoothed(losses, 3) > best + 2 * least)
    stretch = _stretch_at_end(is_high) or _longest(is_high)
    if stretch is None:
        return None
    start, end = stretch
    low = int(np.argmin(losses[:start]))
    level = median(losses[start:end])
    is_explosion = level > 1.1 * float(np.max(smooth[:start], initial=-math.inf))
    if not is_explosion and level <= _usual_before(smooth, start) + least[start] / 2:
        return None  # it was lower for a while, as on easier data, and is as usual again
    num, num_iters = end - start, int(iters[end - 1] - iters[start])
    is_final = end == len(losses)
    if num < (2 if is_explosion and is_final else 4 if is_few else 5):
        return None
    is_sure = level > float(best[start] + 2 * least[start])  # or else it may be slow noise
    is_sure &= num >= 5 and num_iters >= 50 if is_final else not is_few
    is_sure |= is_explosion and level > 2 * float(np.max(smooth[:start]))
    return Rise(low, start, end, is_explosion, is_final, is_sure)


def _usual_before(smooth: Column, start: int) -> float:
    """The upper quartile of the loss before a row, over the last quarter of what leads to it."""
    before = np.sort(smooth[max(0, start - max(20, start // 4)) : start])
    return float(before[3 * (len(before) - 1) // 4])


def _stretch_at_end(is_high: Mask) -> tuple[int, int] | None:
    low = np.flatnonzero(~is_high)
    start = int(low[-1]) + 1 if len(low) else 0
    return (start, len(is_high)) if 1 <= start < len(is_high) else None


def _longest(is_high: Mask) -> tuple[int, int] | None:
    edges = np.flatnonzero(np.diff(np.concatenate([[0], is_high.astype(int), [0]])))
    stretches = [(int(a), int(b)) for a, b in edges.reshape(-1, 2) if a >= 3]
    return max(stretches, key=lambda ab: ab[1] - ab[0], default=None)


def has_risen(part: Part) -> bool:
    """Is the loss far above its best at the end?"""
    rise = rise_of(part)
    return rise is not None and rise.is_final
