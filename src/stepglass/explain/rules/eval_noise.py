"""The differences between evaluations are not larger than random noise."""

import numpy as np

from stepglass.explain.finding import Change, Finding, nice
from stepglass.explain.rules.eval_scatter import TWO_ERRORS
from stepglass.explain.study import Part

WANTED_ERROR = 0.01  # of an evaluation, as a loss


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
    now = part.number_setting("eval_iters")
    change = _more_batches(part, now)
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


def _more_batches(part: Part, now: float | None) -> Change:
    """As many batches as make evaluations certain, if an evaluation then takes no longer than the
    training between two of them: it has two losses to compute, but no backward pass."""
    if part.loss_sigma is None or not now or not part.format.evaluates_random_batches:
        return {}
    needed = nice((part.loss_sigma / WANTED_ERROR) ** 2)
    interval = part.timing.eval_interval or part.segment.last_iter or 0
    return {"eval_iters": needed} if now < needed <= interval else {}
