"""The share of a run's time that evaluations take, and the share that they should take."""

from stepglass.explain.finding import nice
from stepglass.explain.study import Part

EVAL_BUDGET = 0.05  # share of the wall-clock time


def wanted_interval(part: Part) -> int | None:
    """An eval_interval that keeps evaluations and their checkpoints within the budget."""
    cost, normal = part.timing.boundary_ms or part.timing.eval_ms, part.timing.normal_ms
    if not cost or not normal:
        return None
    return nice(cost / normal * (1 - EVAL_BUDGET) / EVAL_BUDGET)


def eval_share(part: Part) -> float | None:
    """The evaluations' share of the wall-clock time, without the start of the run."""
    timing = part.timing
    cost = timing.eval_ms if timing.eval_ms is not None else timing.boundary_ms
    boundary = max(cost or 0.0, timing.boundary_ms or 0.0)
    is_auto = part.setting("eval_interval") == "auto"  # the last interval is shorter
    if cost and timing.normal_ms and timing.eval_interval and not is_auto:
        return cost / (boundary + timing.eval_interval * timing.normal_ms)
    evals = part.phase_ms("eval", "eval+checkpoint")
    if evals and part.wall_ms and len(part.segment.evals) >= 3:
        return evals / part.wall_ms
    return None
