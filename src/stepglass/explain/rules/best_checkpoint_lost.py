"""A later checkpoint of a worse model replaced the best."""

from stepglass.explain.finding import Finding, Status
from stepglass.explain.rules.eval_scatter import TWO_ERRORS, scatter_since
from stepglass.explain.study import Part
from stepglass.logs.segment import Eval


def find_best_checkpoint_lost(part: Part) -> list[Finding]:
    best = part.best_eval
    if not part.format.has_one_checkpoint or best is None:
        return []
    if best.val is None or best.save_line is None:
        return []
    later = [e for e in part.evals if e.line > best.line and e.save_line is not None]
    if not later or later[-1].val is None:
        return []
    kept = later[-1]
    assert kept.val is not None
    worse = kept.val - best.val
    if worse <= max(TWO_ERRORS * (part.val_se or 0.0), 0.01 * abs(best.val)):
        return []
    return [
        Finding(
            "best-checkpoint-lost",
            _sure_of_loss(part, best, worse),
            "problem",
            {
                "best_iter": best.iter,
                "best_loss": best.val,
                "kept_iter": kept.iter,
                "kept_loss": kept.val,
                "worse_loss": worse,
            },
            [best.line, best.save_line, kept.line, kept.save_line or kept.line],
            [best.iter, kept.iter],
            {"always_save_checkpoint": False},
            cost_ms=part.time_since_ms(best.iter),
        )
    ]


def _sure_of_loss(part: Part, best: Eval, worse: float) -> Status:
    """That the file was overwritten is in the log. That its model is worse may be chance."""
    scatter = scatter_since(part, best)
    is_beyond = scatter is not None and worse > scatter.least_rise(len(part.evals))
    return "established" if is_beyond else "supported"
