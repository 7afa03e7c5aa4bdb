"""The differences between evaluations are not larger than random noise."""

import numpy as np

from stepglass.explain.finding import Change, Finding, nice
from stepglass.explain.rules.eval_scatter import TWO_ERRORS
from stepglass.explain.study import Part


def find_eval_noise(part: Part) -> list[Finding]:
    se, evals = part.val_se, part.evals
    if se is None or len(evals) < 5 or part.format.evaluates_same_windows:
        return []
    recent = evals[-6:]
    changes = np.diff([e.val or 0.0 for e in recent])
    least = TWO_ERRORS * se
    turns = int(np.sum(np.sign(changes[1:]) != np.sign(changes[:-1])))
    if float(np.max(np.abs(changes))) >= least or turns < 2:
        return []
    needed = None
    if part.loss_sigma is not None and part.format.evaluates_random_batches:
        needed = nice((part.loss_sigma / 0.01) ** 2)
    now = part.number_setting("eval_iters")
    change: Change = {}
    if needed and now and needed > now:
        change = {"eval_iters": needed}
    return [
        Finding(
            "eval-noise",
            "established",
            "note",
            {
                "se_loss": se,
                "least_loss": least,
                "largest_loss": float(np.max(np.abs(changes))),
                "eval_iters": now,
                "count": len(changes),
            },
            [e.line for e in recent],
            [e.iter for e in recent],
            change,
            variant="more" if change else "plain",
        )
    ]
