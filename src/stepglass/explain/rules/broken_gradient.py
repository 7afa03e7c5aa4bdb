"""Gradient norms that are NaN or exactly zero: the weights no longer learn."""

import numpy as np

from stepglass.explain.finding import Finding
from stepglass.explain.rules.gradient_norms import at_the_end, bad_norms
from stepglass.explain.rules.loss_curve import slope
from stepglass.explain.study import Part

LEAST_ROWS = 3
ZERO_ROWS = 5
LEAST_LOSS = 0.1
CLEARLY_FALLS = -4.0  # t value of the slope


def find_broken_gradient(part: Part) -> list[Finding]:
    if part.segment.nan_line is not None:
        return []  # another rule reports that
    return (
        _zero_norms(part) if part.format.hides_nan_loss else _nan_norms(part) or _zero_norms(part)
    )


def _nan_norms(part: Part) -> list[Finding]:
    is_bad = bad_norms(part)
    num = at_the_end(is_bad)
    has_loss = np.isfinite(part.column("loss"))
    is_said_elsewhere = has_loss.any() and not has_loss[-1]  # the loss has vanished with it
    if num < LEAST_ROWS or is_said_elsewhere:
        return []
    return [_finding(part, num, "nan" if has_loss.any() else "nan-no-loss")]


def _zero_norms(part: Part) -> list[Finding]:
    """A tiny norm is printed as 0 too, but only where the loss has nearly reached 0."""
    num, losses = at_the_end(part.column("grad_norm") == 0), part.losses[1]
    if part.is_policy_loss:
        return []  # where all answers earn the same, there is nothing to learn from them
    if num < ZERO_ROWS or not len(losses) or losses[-1] < LEAST_LOSS:
        return []
    tail = losses[-num:]
    if slope(np.arange(len(tail), dtype=float), tail)[1] < CLEARLY_FALLS:
        return []  # it learns, so the printed norm is wrong
    return [_finding(part, num, "zero")]


def _finding(part: Part, num: int, variant: str) -> Finding:
    iters, lines = part.column("iter"), part.column("line")
    row = len(iters) - num
    return Finding(
        "broken-gradient",
        "established",
        "problem",
        {"iter": int(iters[row]), "line": int(lines[row]), "count": num},
        [int(lines[row]), int(lines[-1])],
        [int(iters[row]), int(iters[-1])],
        variant=variant,
        cost_ms=part.time_since_ms(int(iters[row])),
    )
