"""The validation loss rises, or is far above the training loss."""

import math

from stepglass.explain.finding import Change, Finding, Number, Status
from stepglass.explain.rules.eval_metrics import improvement_since
from stepglass.explain.rules.planned_length import length_of
from stepglass.explain.rules.rising_validation import evals_after_best, sure_of_rise
from stepglass.explain.study import Part
from stepglass.logs.segment import Eval

WIDE_GAP = 0.5  # as a share of the training loss
LEAST_GAP = 0.3
DROPOUT = 0.2
FEW_EVALS = 4


def find_overfitting(part: Part) -> list[Finding]:
    best = part.best_eval
    if best is None or best.val is None or part.segment.nan_line is not None:
        return []
    if part.is_policy_loss:
        return []
    status = sure_of_rise(part)
    if status is None:
        return _wide_gap(part, best, part.evals[-1])
    return [_still_improving(part, best, status) or _rising(part, best, status)]


def _rising(part: Part, best: Eval, status: Status) -> Finding:
    last = part.evals[-1]
    change = length_of(part, best.iter) if best.iter > 0 and status != "hypothesis" else {}
    is_one = len(evals_after_best(part)) == 1
    with_train = "rising" if last.train_loss is not None else "no-train"
    return Finding(
        "overfitting",
        status,
        "advice" if is_one else "problem",
        _figures(part, best),
        [best.line, last.line],
        [best.iter, last.iter],
        change | _more_dropout(part),
        variant="one" if is_one else with_train,
        cost_ms=part.time_since_ms(best.iter),
    )


def _still_improving(part: Part, best: Eval, status: Status) -> Finding | None:
    """The loss rises, but another figure of the same evaluations gets better. The model becomes too
    sure of itself, not worse at its task."""
    after = evals_after_best(part)
    better = improvement_since(best, after)
    if better is None:
        return None
    return Finding(
        "overfitting",
        status,
        "note",
        {
            **_figures(part, best),
            "metric": better.name,
            "before_points": better.before,
            "now_points": better.now,
        },
        [best.line, part.evals[-1].line],
        [best.iter, part.evals[-1].iter],
        variant="metric",
    )


def _figures(part: Part, best: Eval) -> dict[str, Number]:
    last = part.evals[-1]
    assert best.val is not None
    assert last.val is not None
    rise = last.val - best.val
    return {
        "best_iter": best.iter,
        "best_loss": best.val,
        "rise_loss": rise,
        "rise_percent": 100 * rise / best.val if best.val else None,
        **_last_figures(part, last),
    }


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
                "best_iter": best.iter,
                "best_loss": best.val,
                **_last_figures(part, last),
                "gap_percent": 100 * gap / last.train_loss,
                "perplexity_times": math.exp(min(gap, 20.0)),
            },
            [last.line],
            [last.iter],
            _more_dropout(part),
            variant="gap-few" if len(part.evals) < FEW_EVALS else "gap",
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
    """More dropout than the log states. A log without settings may already have it."""
    dropout = part.number_setting("dropout")
    if dropout is None and not part.segment.config_lines:
        return {}
    return {"dropout": DROPOUT} if (dropout or 0.0) < DROPOUT else {}


def _epochs_seen(part: Part) -> float | None:
    tokens, per_iter, last = part.train_tokens, part.tokens_per_iter, part.segment.last_iter
    return last * per_iter / tokens if tokens and per_iter and last else None
