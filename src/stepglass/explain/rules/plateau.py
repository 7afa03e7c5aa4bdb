"""The validation loss no longer changes."""

import numpy as np

from stepglass.explain.finding import Change, Finding, Level
from stepglass.explain.rules.eval_scatter import least_change
from stepglass.explain.rules.loss_curve import has_risen, slope
from stepglass.explain.study import Part
from stepglass.logs.segment import Eval
from stepglass.logs.table import median

LEAST_EVALS = 8
STILL = 0.01  # as a share of the loss


def find_plateau(part: Part) -> list[Finding]:
    evals, best = part.evals, part.best_eval
    if len(evals) < 12 or part.segment.nan_line is not None or best is None or best.val is None:
        return []
    if part.is_policy_loss:
        return []
    recent = evals[-max(LEAST_EVALS, len(evals) // 5) :]
    m, t = _trend(recent)
    moved = abs(m) * (recent[-1].iter - recent[0].iter)
    is_rising = (recent[-1].val or 0.0) - best.val > least_change(part, best.val)
    if abs(t) >= 2 or moved > STILL * abs(best.val) or is_rising or has_risen(part):
        return []
    flat = _from_its_beginning(evals, recent, STILL * abs(best.val))
    began, now = flat[0].iter, flat[-1].iter
    variant = _rate_at(part, began, now)
    peak = part.number_setting("learning_rate")
    change: Change = {}
    if variant == "peak" and peak:
        change = {"learning_rate": float(f"{peak / 2:.3g}")}
    level: Level = "advice" if variant == "peak" else "note"
    return [
        Finding(
            "plateau",
            "supported",
            level,
            {
                "count": len(flat),
                "first_iter": began,
                "last_iter": now,
                "mean_loss": float(np.mean([e.val or 0.0 for e in flat])),
                "moved_loss": abs(_trend(flat)[0]) * (now - began),
                "rate": part.learning_rate_at(began),
            },
            [flat[0].line, flat[-1].line],
            [began, now],
            change,
            variant=variant,
        )
    ]


def _trend(evals: list[Eval]) -> tuple[float, float]:
    return slope(np.array([float(e.iter) for e in evals]), np.array([e.val or 0.0 for e in evals]))


def _from_its_beginning(evals: list[Eval], recent: list[Eval], least: float) -> list[Eval]:
    """The plateau from where it began: backwards until the loss was higher than now."""
    level = median([e.val or 0.0 for e in recent])
    start = len(evals) - len(recent)
    while start > 1:
        # Two in a row, because one evaluation may be high or low by chance.
        before = [e.val or 0.0 for e in evals[start - 2 : start]]
        if sum(before) / 2 > level + least:
            break
        start -= 1
    return evals[start:]


def _rate_at(part: Part, began: int, now: int) -> str:
    """Where the learning rate stood when the plateau began, and where it is now."""
    first, last = part.learning_rate_at(began), part.learning_rate_at(now)
    peak, low = part.number_setting("learning_rate"), part.number_setting("min_lr")
    printed = part.column("lr")
    if peak is None and np.isfinite(printed).any():
        peak = float(np.nanmax(printed))
    if first is None or last is None or not peak:
        return "plain"
    if low is not None and first <= 1.2 * low:
        return "floor"
    if last >= 0.8 * peak:
        return "peak"
    return "through" if last <= 0.5 * first else "known"
