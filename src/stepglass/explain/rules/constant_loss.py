"""The printed loss is the same to the last digit, line after line."""

import math

import numpy as np

from stepglass.explain.finding import Finding
from stepglass.explain.rules.gradient_norms import at_the_end
from stepglass.explain.study import Part
from stepglass.logs.table import Column

LEAST_ROWS = 10
FEW_ZEROS = 3
LEARNING = 0.2  # a loss that is not nearly 0 yet
LEAST_DIGITS = 4  # a loss printed as 0.01 may well repeat


def find_constant_loss(part: Part) -> list[Finding]:
    iters, losses, lines = part.losses
    if part.is_policy_loss or len(losses) < FEW_ZEROS or part.segment.table.is_thinned:
        return []
    num = at_the_end(losses == losses[-1])
    loss = float(losses[-1])
    fell = loss == 0 and num >= FEW_ZEROS and _falls_to_zero(losses, num)
    if not fell and (num < LEAST_ROWS or (loss != 0 and _digits(loss) < LEAST_DIGITS)):
        return []
    row = len(losses) - num
    is_late = part.column("iter") >= iters[row]
    rates, norms = part.column("lr")[is_late], part.column("grad_norm")[is_late]
    if loss == 0:
        variant = "zero"
    elif len(rates) and bool((rates == 0).all()):
        variant = "rate"
    elif bool((norms == 0).all()):
        variant = "norm"
    else:
        variant = "plain"
    return [
        Finding(
            "constant-loss",
            "supported" if num < LEAST_ROWS else "established",
            "problem",
            {
                "count": num,
                "loss": loss,
                "iter": int(iters[row]),
                "last_iter": int(iters[-1]),
                "choices": math.exp(min(loss, 20.0)),
            },
            [int(lines[row]), int(lines[-1])],
            [int(iters[row]), int(iters[-1])],
            variant=variant,
            cost_ms=part.time_since_ms(int(iters[row])),
        )
    ]


def _falls_to_zero(losses: Column, num: int) -> bool:
    """Is the loss 0 at once? One that has been learned goes through small values first."""
    return num < len(losses) and float(losses[-num - 1]) > LEARNING


def _digits(value: float) -> int:
    """Digits that carry meaning.

    >>> _digits(10.8259), _digits(0.01), _digits(2.5)
    (6, 1, 2)
    """
    digits = np.format_float_positional(abs(value), trim="-").replace(".", "").strip("0")
    return len(digits)
