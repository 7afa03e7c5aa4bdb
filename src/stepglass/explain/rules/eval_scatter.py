"""How much two evaluations can differ by chance."""

from stepglass.explain.study import Part

TWO_ERRORS = 2.83  # 2 * sqrt(2): two standard errors of the difference of two evaluations
LEAST_RISE = 0.02


def least_change(part: Part, value: float) -> float:
    """The smallest difference between two evaluations that is more than noise."""
    return max(TWO_ERRORS * (part.val_se or 0.0), LEAST_RISE * abs(value))
