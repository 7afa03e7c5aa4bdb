"""Finds evaluations without a line of their own, from slow iterations at regular intervals."""

import math

import numpy as np

from stepglass.explain.iteration_times import SLOW, log_interval, typical
from stepglass.explain.timing import Timing
from stepglass.logs.log import Log
from stepglass.logs.table import Column, Mask

ROUND = (5000, 2500, 2000, 1000, 500, 250, 200, 100)  # intervals that people choose


def inferred_evals(
    timing: Timing, log: Log, iters: Column, ordinary: Mask, reference: float | None
) -> Mask:
    """The slow rows at which an evaluation must have happened although no line reports it."""
    none = np.zeros(len(iters), bool)
    if not ordinary.any():
        return none
    normal = reference or typical(timing.times[ordinary], np.ones(int(ordinary.sum())))
    slow = ordinary & (timing.times >= SLOW * normal) & (iters > 0)
    if not slow.any():
        return none
    inferred: Mask
    if timing.eval_interval:
        inferred = slow & (iters % timing.eval_interval == 0)
    elif any(segment.eval_iters for segment in log.segments):
        seen = np.concatenate([np.array(segment.eval_iters) for segment in log.segments])
        inferred = slow & np.isin(iters, seen)
    else:
        inferred = slow & _on_a_grid(iters, slow, ordinary)
    return inferred


def _on_a_grid(iters: Column, slow: Mask, ordinary: Mask) -> Mask:
    """The slow rows, if they are exactly the multiples of one interval."""
    none = np.zeros(len(iters), bool)
    step = log_interval(iters[ordinary]) or 1
    grid = math.gcd(*(int(i) for i in iters[slow]))
    if slow.sum() == 1:
        grid = next((r for r in ROUND if grid % r == 0), 0)
    if grid < 2 * step or not grid:
        return none
    on_grid = ordinary & (iters % grid == 0) & (iters > 0)
    is_grid = bool((on_grid == (slow & ordinary)).all()) and bool((ordinary & ~slow).any())
    return slow if is_grid else none
