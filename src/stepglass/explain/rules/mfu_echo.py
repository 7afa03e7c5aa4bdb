"""A slow iteration lowers the MFU printed after it, because that is a moving average."""

import numpy as np
import numpy.typing as npt

from stepglass.explain.finding import Finding
from stepglass.explain.iteration_times import SLOW
from stepglass.explain.study import Part
from stepglass.logs.table import median

FEW = 3  # rows; fewer do not show a speed
SAME = 1.05  # times the other speed


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
            variant="plain" if _keeps_its_speed(part, rows) else "changed",
        )
    ]


def _keeps_its_speed(part: Part, rows: npt.NDArray[np.intp]) -> bool:
    """Do the iterations before, between and after these rows take equally long?"""
    times, normal_ms = part.timing.times, part.timing.normal_ms or 0.0
    usual = [piece[piece < SLOW * normal_ms] for piece in np.split(times, rows)]
    speeds = [median(piece) for piece in usual if len(piece) >= FEW]
    return not speeds or max(speeds) <= SAME * min(speeds)
