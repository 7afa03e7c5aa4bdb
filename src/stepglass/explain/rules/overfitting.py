"""The validation loss rises, or is far above the training loss."""

import math

from stepglass.explain.finding import Change, Finding, Number
from stepglass.explain.rules.eval_scatter import least_change
from stepglass.explain.study import Part
from stepglass.logs.segment import Eval
from stepglass.logs.table import median

WIDE_GAP = 0.5  # as a share of the training loss
LEAST_GAP = 0.3
DROPOUT = 0.2


def find_overfitting(part: Part) -> list[Finding]:
    best = part.best_eval
    if best is None or best.val is None:
        return []
    last = part.evals[-1]
    assert last.val is not None
    has_risen = last is not best and last.val - best.val > least_change(part, best.val)
    if has_risen and _train_fell(part, best, last):
        return [_rising(part, best, last)]
    return _wide_gap(part, best, last)


def _rising(part: Part, best: Eval, last: Eval) -> Finding:
    assert best.val is not None
    assert last.val is not None
    rise = last.val - best.val
    change: Change = {}
    if best.iter > 0:
        change["max_iters"] = best.iter
    is_clear = rise > 0.05 * best.val  # more than the noise of evaluations
    return Finding(
        "overfitting",
        "established" if part.val_se is not None or is_clear else "supported",
        "problem",
        {
            "best_iter": best.iter,
            "best_loss": best.val,
            "rise_loss": rise,
            "rise_percent": 100 * rise / best.val if best.val else None,
            **_last_figures(part, last),
        },
        [best.line, last.line],
        [best.iter, last.iter],
        change | _more_dropout(part),
        variant="rising" if last.train_loss is not None else "no-train",
        cost_ms=part.time_since_ms(best.iter),
    )


def _wide_gap(part: Part, best: Eval, last: Eval) -> list[Finding]:
    """The validation loss has not risen, but the training loss is far below it."""
    if not last.train_loss or last.val is None:
        return []
    num_before = sum(e.line < best.line for e in part.evals)
    if len(part.evals) > 2 and num_before > 0.7 * (len(part.evals) - 1):
        return []  # the validation loss still improves
    gap = last.val - last.train_loss
    if gap < LEAST_GAP or gap < WIDE_GAP * last.train_loss:
        return []
    return [
        Finding(
            "overfitting",
            "supported",
            "problem",
            {
                **_last_figures(part, last),
                "gap_percent": 100 * gap / last.train_loss,
                "perplexity_times": math.exp(min(gap, 20.0)),
            },
            [last.line],
            [last.iter],
            _more_dropout(part),
            variant="gap",
        )
    ]


def _last_figures(part: Part, last: Eval) -> dict[str, Number]:
    assert last.val is not None
    return {
        "last_iter": last.iter,
        "last_loss": last.val,
        "train_loss": last.train_loss,
        "gap_loss": None if last.train_loss is None else last.val - last.train_loss,
        "epochs": _epochs_seen(part),
    }


def _more_dropout(part: Part) -> Change:
    dropout = part.number_setting("dropout")
    return {"dropout": DROPOUT} if dropout is None or dropout < DROPOUT else {}


def _epochs_seen(part: Part) -> float | None:
    tokens, per_iter, last = part.train_tokens, part.tokens_per_iter, part.segment.last_iter
    return last * per_iter / tokens if tokens and per_iter and last else None


def _train_fell(part: Part, best: Eval, last: Eval) -> bool:
    """Did the training loss fall from the best evaluation to the last?"""
    if best.train_loss is not None and last.train_loss is not None:
        return last.train_loss < best.train_loss
    iters, losses, _ = part.losses
    early = losses[(iters > 0.8 * best.iter) & (iters <= max(best.iter, 1))]
    late = losses[iters > best.iter + 0.8 * (last.iter - best.iter)]
    return bool(len(early) and len(late) and median(late) < median(early))
