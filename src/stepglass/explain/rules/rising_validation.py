"""Has the validation loss risen while the training loss fell, and how sure is that?"""

import numpy as np

from stepglass.explain.finding import Status
from stepglass.explain.rules.eval_scatter import (
    KNOWN,
    least_change,
    likely_rise_since,
    scatter_since,
)
from stepglass.explain.rules.loss_curve import slope
from stepglass.explain.study import Part
from stepglass.logs.segment import Eval

AGREEING = 3  # evaluations that must agree before anything is proven: one bad one is only one
CLEAR_RISE = 0.05  # as a share of the lowest loss
PLAIN_RISE = 0.2
FALLS = -4.0  # t value of the training loss's slope
BLOCKS = 8


def evals_after_best(part: Part) -> list[Eval]:
    best = part.best_eval
    return [e for e in part.evals if best is not None and e.line > best.line]


def sure_of_rise(part: Part) -> Status | None:
    """How sure it is that the validation loss has risen while the training loss fell. None if it
    has not, or if that may be chance."""
    best, after = part.best_eval, evals_after_best(part)
    if best is None or best.val is None or not after:
        return None
    trend = training_trend(part, best)
    if trend is None or trend >= 0:
        return None
    values = np.array([e.val or 0.0 for e in after]) - best.val
    scatter = scatter_since(part, best)
    likely = likely_rise_since(part, best)
    if len(after) < AGREEING:
        if float(values[-1]) <= max(CLEAR_RISE * abs(best.val), likely) or float(values[0]) <= 0:
            return None
        return "supported" if len(after) == 2 else "hypothesis"
    num_last = max(AGREEING, len(values) // 3)
    last = values[-num_last:]
    agreeing = last[1:] if len(after) == AGREEING else last  # it may only just have turned
    if float(agreeing.min()) <= least_change(part, best.val):
        return None
    if scatter is None:
        return "supported"
    is_climbing = bool((np.diff(values[-AGREEING - 1 :]) > -scatter.sigma / 2).all())
    if float(last.mean()) > scatter.least_rise(len(part.evals), num_last):
        is_far = float(last.min()) > 2 * scatter.sigma or is_climbing
        is_known = scatter.freedom < KNOWN or len(after) > 2 * AGREEING or is_climbing
        return "established" if is_far and is_known and trend <= FALLS else "supported"
    is_plain = len(after) <= 2 * AGREEING and bool((np.diff(values[-AGREEING:]) > 0).all())
    if is_plain and trend <= FALLS and float(last[-1]) > PLAIN_RISE * abs(best.val):
        return "established"  # too few to measure their noise, but no noise does that
    is_likely = is_climbing and float(last[-1]) > max(CLEAR_RISE * abs(best.val), likely)
    if len(after) > 2 * AGREEING:  # enough for a trend of their own
        is_likely |= slope(np.array([float(e.iter) for e in after]), values)[1] > -FALLS
    return "supported" if is_likely or float(last.mean()) > likely else None


def training_trend(part: Part, best: Eval) -> float | None:
    """The t value of the training loss's slope since the best evaluation: below 0 if it falls."""
    since = [e for e in part.evals if e.line >= best.line and e.train_loss is not None]
    if len(since) > AGREEING:
        x = np.array([float(e.iter) for e in since])
        return slope(x, np.array([e.train_loss or 0.0 for e in since]))[1]
    iters, losses, _ = part.losses
    is_since = iters >= best.iter
    if int(is_since.sum()) >= AGREEING:
        # Single losses resemble their neighbours. Means of blocks of them hardly do.
        blocks = np.array_split(np.flatnonzero(is_since), min(BLOCKS, int(is_since.sum())))
        x = np.array([float(iters[block].mean()) for block in blocks])
        return slope(x, np.array([float(losses[block].mean()) for block in blocks]))[1]
    if len(since) < 2:
        return None
    return -1.0 if (since[-1].train_loss or 0.0) < 0.98 * (since[0].train_loss or 0.0) else 0.0
