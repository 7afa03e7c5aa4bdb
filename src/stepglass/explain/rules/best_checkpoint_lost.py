"""A later checkpoint of a worse model replaced the best."""

from stepglass.explain.finding import Finding
from stepglass.explain.rules.eval_scatter import TWO_ERRORS
from stepglass.explain.study import Part


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
            "established" if part.val_se is not None or worse > 0.05 * best.val else "supported",
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
