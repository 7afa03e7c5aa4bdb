"""The loss rose far above its best, for good or for a while."""

import numpy as np

from stepglass.explain.finding import Change, Finding
from stepglass.explain.rules.calmer_settings import calmer
from stepglass.explain.rules.loss_curve import rise_of, smoothed
from stepglass.explain.study import Part


def find_divergence(part: Part) -> list[Finding]:
    rise = rise_of(part)
    if rise is None or part.segment.nan_line is not None:
        return []
    iters, losses, lines = part.losses
    first, last = rise.start, rise.end - 1
    back = min(rise.end, len(iters) - 1)
    rate = part.learning_rate_at(int(iters[first]))
    variant = "exploded" if rise.is_explosion and rise.is_final else "up"
    change: Change = calmer(part) if rise.is_final else {}
    return [
        Finding(
            "divergence",
            "established" if rise.is_sure else "supported",
            "problem" if rise.is_final else "note",
            {
                "iter": int(iters[first]),
                "best_iter": int(iters[rise.best]),
                "best_loss": float(losses[rise.best]),
                "last_loss": float(losses[-1]),
                "high_loss": float(np.max(smoothed(losses, 3)[first : rise.end])),
                "back_iter": int(iters[back]),
                "knows_rate": "yes" if rate else "no",
                "rate": rate,
            },
            [int(lines[rise.best]), int(lines[first]), int(lines[last])],
            [int(iters[rise.best]), int(iters[first]), int(iters[last])],
            change,
            variant=variant if rise.is_final else "recovered",
            cost_ms=part.time_since_ms(int(iters[first])) if rise.is_final else 0.0,
        )
    ]
