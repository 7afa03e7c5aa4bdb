"""The loss rose far above its best and stayed there."""

import numpy as np

from stepglass.explain.finding import Finding
from stepglass.explain.rules.calmer_settings import calmer
from stepglass.explain.rules.loss_curve import diverged_at, smoothed
from stepglass.explain.study import Part


def find_divergence(part: Part) -> list[Finding]:
    start = diverged_at(part)
    if start is None:
        return []
    iters, losses, lines = part.losses
    smooth = smoothed(losses)
    best = int(np.argmin(smooth[: start + 1]))
    change = calmer(part)
    return [
        Finding(
            "divergence",
            "established",
            "problem",
            {
                "iter": int(iters[start]),
                "best_iter": int(iters[best]),
                "best_loss": float(smooth[best]),
                "last_loss": float(smooth[-1]),
                "rate": part.learning_rate_at(int(iters[start])),
            },
            [int(lines[best]), int(lines[start]), int(lines[-1])],
            [int(iters[best]), int(iters[start]), int(iters[-1])],
            change,
            variant="rate" if part.learning_rate_at(int(iters[start])) else "plain",
            cost_ms=part.time_since_ms(int(iters[start])),
        )
    ]
