"""Weight updates that were skipped because gradients overflowed."""

import numpy as np

from stepglass.explain.finding import Finding
from stepglass.explain.rules.gradient_norms import at_the_end
from stepglass.explain.study import Part

EVENTS = ("overflow", "skipped-update")
START = 100  # iterations in which the loss scale is still being found
MANY = 0.02  # as a share of the iterations
LEAST = 5


def find_skipped_updates(part: Part) -> list[Finding]:
    skipped, iters = part.column("num_skipped"), part.column("iter")
    is_skipped = np.isfinite(skipped) & (skipped > 0)
    events = [e for e in part.segment.events if e.name in EVENTS and e.iter is not None]
    late = [e for e in events if (e.iter or 0) - (part.segment.first_iter or 0) >= START]
    is_late = is_skipped & (iters - (part.segment.first_iter or 0) >= START)
    count = int(skipped[is_late].sum()) or len(late)
    num_iters = (part.segment.last_iter or 0) - (part.segment.first_iter or 0) + 1
    in_a_row = at_the_end(is_skipped)
    is_stuck = in_a_row >= LEAST
    if is_stuck:
        count = int(skipped[is_skipped].sum())
    elif count < LEAST or count < MANY * num_iters:
        return []
    rows = np.flatnonzero(is_skipped if is_stuck else is_late)
    lines = [int(part.column("line")[row]) for row in rows] or [e.line for e in late]
    return [
        Finding(
            "skipped-updates",
            "established",
            "problem" if is_stuck else "advice",
            {
                "count": count,
                "skipped_share": count / max(num_iters, 1),
                "iter": int(iters[len(iters) - in_a_row]) if is_stuck else None,
            },
            lines,
            [int(iters[row]) for row in rows] or [e.iter or 0 for e in late],
            variant="stuck" if is_stuck else "often",
        )
    ]
