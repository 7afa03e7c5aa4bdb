"""Time that passed between two printed iterations, while none of the printed times shows it."""

import numpy as np

from stepglass.explain.finding import Change, Finding
from stepglass.explain.study import Part

LEAST_MS = 5000.0  # timestamps may show whole seconds
LEAST_ITERS = 20
MANY_TIMES = 3.0  # the time between the lines, in times of what ordinary iterations take


def find_hidden_stall(part: Part) -> list[Finding]:
    table, normal_ms = part.segment.table, part.timing.normal_ms
    stamps, times = table.column("stamp"), table.column("time_ms")
    if normal_ms is None or len(stamps) < 5 or not np.isfinite(stamps).any() or table.is_thinned:
        return []
    iters, lines = table.column("iter"), table.column("line")
    steps, passed_ms = np.diff(iters), np.diff(stamps) * 1000
    # The printed line's own time is known; the others are taken to be ordinary.
    expected_ms = (steps - 1) * normal_ms + times[1:]
    hidden_ms = passed_ms - expected_ms
    segment = part.segment
    noted = [e.line for e in segment.evals] + [s.line for s in segment.saves]
    noted += [e.line for e in segment.events]
    is_quiet = np.diff(np.searchsorted(np.sort(noted), lines)) == 0
    clock_ms = part.timing.stamped_ms or normal_ms
    is_slow_clock = clock_ms > 1.5 * normal_ms  # the printed times are wrong: `contradiction`
    least_ms = max(LEAST_MS, LEAST_ITERS * normal_ms)
    with np.errstate(invalid="ignore"):
        is_hidden = (steps > 1) & is_quiet & (hidden_ms > least_ms)
        is_hidden &= passed_ms > MANY_TIMES * expected_ms
    rows = np.flatnonzero(is_hidden)
    if not len(rows) or is_slow_clock or np.isfinite(table.column("window")).any():
        return []
    worst = int(rows[np.argmax(hidden_ms[rows])])
    change: Change = {"log_interval": 1} if part.format.has_nanogpt_settings else {}
    return [
        Finding(
            "hidden-stall",
            "established",
            "note",
            {
                "count": len(rows),
                "first_iter": int(iters[worst]),
                "end_iter": int(iters[worst + 1]),
                "passed_ms": float(passed_ms[worst]),
                "expected_ms": float(expected_ms[worst]),
                "total_ms": float(hidden_ms[rows].sum()),
            },
            [int(lines[r]) for row in rows for r in (row, row + 1)],
            [int(iters[row + 1]) for row in rows],
            change,
            cost_ms=float(hidden_ms[rows].sum()),
        )
    ]
