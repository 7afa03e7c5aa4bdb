"""Training waits for batches."""

import numpy as np

from stepglass.explain.finding import Finding
from stepglass.explain.study import Part
from stepglass.logs.table import median

DATA_BUDGET = 0.05


def find_data_bound(part: Part) -> list[Finding]:
    if part.timing.ledger is None:
        return []
    data = part.phase_ms("data")
    shares = part.column("data_ms")
    if np.isfinite(shares).any():  # the log prints the wait and the time of a step
        later = part.column("iter") > (part.segment.first_iter or 0)  # the first also opens files
        waits, times = shares[later], part.timing.times[later]
        if not len(waits):
            return []
        data = float(np.nansum(waits))
        work = data + float(np.nansum(times))
    else:
        work = part.phase_ms("data", "forward_backward", "optimizer", "step")
    if not work or data / work <= DATA_BUDGET:
        return []
    known = shares[np.isfinite(shares)]
    return [
        Finding(
            "data-bound",
            "established",
            "advice",
            {
                "data_share": data / work,
                "total_ms": data,
                "median_ms": median(known) if len(known) else None,
                "worst_ms": float(np.max(known)) if len(known) else None,
            },
            [part.segment.first_line or 1, part.segment.last_line or 1],
            variant="plain" if len(known) else "phases",
            cost_ms=data,
        )
    ]
