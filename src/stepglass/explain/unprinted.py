"""The iterations that a log does not print: how many there are, and how long one takes on average.

They are taken to be like the printed ones. If other programs interrupt the printed iterations now
and then, they interrupt the others as well. Stalls at fixed distances are different: they may fall
on printed lines only, because people print and save at round numbers. With one or two stalls nobody
knows; then the ledger says how far it may be off.
"""

import math
from collections import Counter
from typing import NamedTuple

import numpy as np

from stepglass.explain.timing import Spike, Timing
from stepglass.logs.table import Column

OFTEN = 3  # stalls among the printed lines: fewer may be chance
SURE = 5  # stalls at the same distance: fewer may be chance
UNSEEN = 2.0  # where few were seen, so many more were to be expected
LARGE = 10.0  # times a normal iteration: an event of its own, not an interruption
BLOCK = 4  # lines; a slow minute of the machine lasts for several
LEAST_TIMES = 3
MOST = 0.6


class Interruptions(NamedTuple):
    """Stalls as they strike the printed iterations. Times are milliseconds."""

    rate: float = 0.0  # per iteration
    mean_ms: float = 0.0
    mean_square: float = 0.0


class Unprinted(NamedTuple):
    """The iterations that no line prints. Times are milliseconds."""

    num_iters: int
    each_ms: float  # the mean
    scatter_ms: float  # the standard deviation of one
    mean_error_ms: float  # the standard error of `each_ms`
    doubt_ms: float = 0.0  # what all of them may have taken longer, if stalls strike them as well
    stall_variance: float = 0.0  # of one iteration's time, because of stalls

    @property
    def total_ms(self) -> float:
        return self.num_iters * self.each_ms


def unprinted_iterations(timing: Timing, num_iters: int, num_printed: int) -> Unprinted:
    """`num_printed` iterations are printed, `num_iters` are not."""
    usual = timing.times[timing.ordinary]
    if not len(usual):
        return Unprinted(num_iters, timing.normal_ms or 0.0, 0.0, 0.0)
    stalls = timing.spikes_of("unexplained")
    others = sum(spike.weight for spike in timing.spikes) - sum(s.weight for s in stalls)
    num_plain = max(1.0, num_printed - others - timing.num_faint)
    short = [s for s in stalls if s.excess_ms < LARGE * (timing.normal_ms or 0.0)]
    found = _interruptions(short, num_plain)
    apart = (num_iters + num_printed) / max(1, num_printed)
    is_regular = _is_regular(short, apart)
    added, doubt_ms = found, 0.0
    if len(short) < OFTEN or is_regular:
        added = Interruptions()
        if 0 < len(short) < SURE:
            longer = 1 + 1 / len(short)  # the few that were seen may have been the short ones
            doubt_ms = num_iters * (found.rate + UNSEEN / num_plain) * found.mean_ms * longer
    mean_excess = added.rate * added.mean_ms
    variance = _variance(usual) + added.rate * added.mean_square - mean_excess**2
    return Unprinted(
        num_iters,
        each_ms=float(usual.mean()) + mean_excess,
        scatter_ms=math.sqrt(max(0.0, variance)),
        mean_error_ms=max(_error_of_mean(usual), math.sqrt(max(0.0, variance) / num_plain)),
        doubt_ms=doubt_ms,
        stall_variance=found.rate * found.mean_square,
    )


def _interruptions(stalls: list[Spike], num_plain: float) -> Interruptions:
    excess = np.array([stall.excess_ms for stall in stalls])
    weight = np.array([stall.weight for stall in stalls])
    if not len(stalls):
        return Interruptions()
    mean, square = (float(np.average(values, weights=weight)) for values in (excess, excess**2))
    return Interruptions(float(weight.sum()) / num_plain, mean, square)


def _is_regular(stalls: list[Spike], apart: float) -> bool:
    """Are most of them at the same distance from each other? Printed lines are `apart` iterations
    apart; stalls at neighbouring lines are a slow stretch."""
    gaps = Counter(np.diff([stall.iter for stall in stalls]).tolist())
    if not gaps:
        return False
    gap, number = gaps.most_common(1)[0]
    return bool(number >= MOST * sum(gaps.values()) and gap > 1.5 * apart)


def _variance(usual: Column) -> float:
    return float(usual.var(ddof=1)) if len(usual) > 1 else 0.0


def _error_of_mean(usual: Column) -> float:
    """The standard error of the mean, also if neighbours resemble each other."""
    independent = math.sqrt(_variance(usual) / len(usual))
    num_blocks = len(usual) // BLOCK
    if num_blocks < LEAST_TIMES:
        return independent
    means = usual[: num_blocks * BLOCK].reshape(num_blocks, BLOCK).mean(axis=1)
    return max(independent, float(means.std(ddof=1)) / math.sqrt(num_blocks))
