"""Gradient clipping shortens nearly every update."""

import numpy as np

from stepglass.explain.finding import Finding
from stepglass.explain.study import Part
from stepglass.logs.table import median

SETTINGS = ("grad_clip", "clip_grad", "max_grad_norm", "gradient_clip_val", "clip_grad_norm")
LEAST_ROWS = 20
MOST_OF_THE_TIME = 0.8


def find_gradient_clipping(part: Part) -> list[Finding]:
    name = next((n for n in SETTINGS if part.number_setting(n)), None)
    norms, iters = part.column("grad_norm"), part.column("iter")
    known = np.flatnonzero(np.isfinite(norms))
    if name is None or len(known) < LEAST_ROWS:
        return []
    clip = part.number_setting(name) or 0.0
    is_above = norms[known] > 1.001 * clip
    share = float(is_above.mean())
    if share < MOST_OF_THE_TIME:
        return []
    half = known[len(known) // 2 :]
    if float((norms[half] > 1.001 * clip).mean()) < MOST_OF_THE_TIME:
        return []  # large only at the start
    row = int(half[-1])
    return [
        Finding(
            "gradient-clipping",
            "established",
            "note",
            {
                "setting": name,
                "clip": clip,
                "clipped_share": share,
                "norm": median(norms[half]),
                "count": len(known),
            },
            [*part.line_of_setting(name), int(part.column("line")[row])],
            [int(iters[row])],
        )
    ]
