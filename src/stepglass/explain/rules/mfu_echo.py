"""A slow iteration lowers the MFU printed after it, because that is a moving average."""

import numpy as np

from stepglass.explain.finding import Finding
from stepglass.explain.study import Part


def find_mfu_echo(part: Part) -> list[Finding]:
    if not part.format.averages_mfu or not part.mfu.is_replayed or part.mfu.clean is None:
        return []
    table = part.segment.table
    lines, mfu, before = table.column("line"), table.column("mfu"), table.column("prev_mfu")
    slow = [s for s in part.timing.spikes if s.cause != "warmup+eval"]
    rows = np.flatnonzero(np.isin(lines, [s.line for s in slow]) & (mfu < 0.97 * before))
    if not len(rows):
        return []
    worst = int(rows[np.argmin(mfu[rows] / before[rows])])
    return [
        Finding(
            "mfu-echo",
            "established",
            "note",
            {
                "iter": int(table.column("iter")[worst]),
                "before_mfu": float(before[worst]),
                "printed_mfu": float(mfu[worst]),
                "clean_mfu": part.mfu.clean,
                "replayed": part.mfu.num_replayed,
                "error_points": part.mfu.largest_error,
            },
            [int(lines[row]) for row in rows],
            [int(table.column("iter")[row]) for row in rows],
        )
    ]
