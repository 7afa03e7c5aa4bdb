"""The validation loss no longer changes."""

import numpy as np

from stepglass.explain.finding import Finding
from stepglass.explain.rules.eval_scatter import least_change
from stepglass.explain.rules.loss_curve import diverged_at, slope
from stepglass.explain.study import Part


def find_plateau(part: Part) -> list[Finding]:
    evals = part.evals
    if len(evals) < 12 or part.segment.nan_line is not None:
        return []
    recent = evals[-max(8, len(evals) // 5) :]
    x = np.array([float(e.iter) for e in recent])
    y = np.array([e.val or 0.0 for e in recent])
    m, t = slope(x, y)
    moved = abs(m) * float(x[-1] - x[0])
    best = part.best_eval
    assert best is not None
    assert best.val is not None
    is_rising = y[-1] - best.val > least_change(part, best.val)
    if abs(t) >= 2 or moved > 0.01 * abs(best.val) or is_rising or diverged_at(part) is not None:
        return []
    rate, peak = part.learning_rate_at(recent[-1].iter), part.number_setting("learning_rate")
    low = part.number_setting("min_lr")
    is_floor = rate is not None and low is not None and rate <= 1.2 * low
    is_peak = rate is not None and peak is not None and rate >= 0.8 * peak and not is_floor
    return [
        Finding(
            "plateau",
            "supported",
            "advice" if is_peak else "note",
            {
                "count": len(recent),
                "first_iter": recent[0].iter,
                "last_iter": recent[-1].iter,
                "mean_loss": float(y.mean()),
                "moved_loss": moved,
                "rate": rate,
            },
            [recent[0].line, recent[-1].line],
            [recent[0].iter, recent[-1].iter],
            {"learning_rate": float(f"{peak / 2:.3g}")} if is_peak and peak else {},
            variant="peak" if is_peak else "floor" if is_floor else "plain",
        )
    ]
