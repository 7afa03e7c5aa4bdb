"""Single losses far above their neighbours."""

import numpy as np

from stepglass.explain.finding import Finding
from stepglass.explain.rules.loss_curve import diverged_at, smoothed
from stepglass.explain.study import Part


def find_loss_spike(part: Part) -> list[Finding]:
    iters, losses, lines = part.losses
    if len(losses) < 64 or diverged_at(part) is not None:
        return []
    if len(part.segment.table) > len(part.column("n")):
        return []  # the table is thinned, so single points may be missing
    width = 33
    smooth = smoothed(losses, width)
    away = losses - smooth
    sigma = 1.4826 * smoothed(np.abs(away), 129 if len(losses) >= 129 else 33)
    is_high = away > np.maximum(6 * sigma, 0.1)
    is_high[: max(8, width // 2)] = False  # the loss still falls quickly here
    rows = np.flatnonzero(is_high)
    if not len(rows) or len(rows) > 0.02 * len(losses) + 3:
        return []
    worst = int(rows[np.argmax(away[rows])])
    return [
        Finding(
            "loss-spike",
            "supported",
            "note",
            {
                "count": len(rows),
                "iter": int(iters[worst]),
                "loss": float(losses[worst]),
                "around_loss": float(smooth[worst]),
                "z": float(away[worst] / max(sigma[worst], 1e-9)),
            },
            [int(lines[row]) for row in rows],
            [int(iters[row]) for row in rows],
        )
    ]
