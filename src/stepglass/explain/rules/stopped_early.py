"""The run ended while the validation loss was still falling."""

import numpy as np

from stepglass.explain.finding import Finding, nice
from stepglass.explain.rules.loss_curve import slope
from stepglass.explain.rules.planned_length import length_of
from stepglass.explain.study import Part


def find_stopped_early(part: Part) -> list[Finding]:
    evals = part.evals
    if not part.has_ended or len(evals) < 5 or part.segment.nan_line is not None:
        return []
    if not part.format.has_nanogpt_settings or not part.is_last:
        return []
    falls_by_design = part.setting("lr_schedule") == "trapezoid"
    if falls_by_design or part.segment.end.get("reason") == "target":
        return []
    recent = evals[-max(4, len(evals) // 4) :]
    x = np.array([float(e.iter) for e in recent])
    y = np.array([e.val or 0.0 for e in recent])
    m, t = slope(x, y)
    last = evals[-1]
    if t > -3 or last is not part.best_eval or last.val is None:
        return []
    gain = -m * 1000
    step = -m * (x[-1] - x[-2])
    if step < max(0.004 * last.val, (part.val_se or 0.0)):
        return []
    if last.train_loss is not None and last.val - last.train_loss > 0.05 * last.val:
        return []
    length = part.max_iters or part.segment.last_iter or 0
    return [
        Finding(
            "stopped-early",
            "supported",
            "advice",
            {
                "last_iter": last.iter,
                "last_loss": last.val,
                "gain_loss": gain,
                "gap_loss": None if last.train_loss is None else last.val - last.train_loss,
            },
            [e.line for e in recent],
            [e.iter for e in recent],
            length_of(part, nice(2 * length)),
        )
    ]
