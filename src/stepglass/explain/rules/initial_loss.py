"""The first loss is not that of an untrained model with this vocabulary size."""

import math

from stepglass.explain.finding import Finding
from stepglass.explain.study import Part


def find_initial_loss(part: Part) -> list[Finding]:
    vocab = part.fact("vocab_size") or part.number_setting("vocab_size")
    if not vocab or vocab < 2 or not part.starts_from_scratch or part.segment.first_iter != 0:
        return []
    first_eval = next((e for e in part.segment.evals if e.iter == 0), None)
    iters, losses, lines = part.losses
    if first_eval is not None and first_eval.val_loss is not None:
        seen, line = first_eval.val_loss, first_eval.line
    elif len(iters) and iters[0] == 0:
        seen, line = float(losses[0]), int(lines[0])
    else:
        return []
    expected = math.log(vocab)
    if not math.isfinite(seen) or abs(seen / expected - 1) <= 0.05:
        return []
    return [
        Finding(
            "initial-loss",
            "established",
            "advice",
            {"seen_loss": seen, "expected_loss": expected, "vocab": int(vocab)},
            [line, *part.line_of_fact("vocab_size")],
            [0],
            variant="low" if seen < expected else "high",
        )
    ]
