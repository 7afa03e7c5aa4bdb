"""The MFU of a run whose device's peak was measured more than once: the last peak holds for all of
it, so that its iterations can be compared.

The trainer divides each iteration by the peak it knew at that moment, and writes no MFU while it
knows none. A run log has what the MFU is made of, so it is computed again.
"""

import numpy as np

from stepglass.explain.resumed import is_resumed
from stepglass.logs.log import Log
from stepglass.logs.segment import Segment
from stepglass.logs.table import Column
from stepglass.measure.event_details import PeakEvent
from stepglass.units import finite

# A process that resumes a run measures the peak again. It is the same device if all of this is.
MACHINE = ("device", "device_type", "dtype", "threads", "replicas")


def last_peak_tflops(log: Log, number: int) -> float | None:
    """The peak that was measured last for the run of a segment. None if the segment's own start
    says it already."""
    if not log.format.is_run_log:
        return None
    segment = holder = log.segments[number]
    for later in range(number + 1, len(log.segments)):
        candidate = log.segments[later]
        if not is_resumed(log, later) or not _is_same_machine(segment, candidate):
            break
        if finite(candidate.facts.get("peak_tflops")):
            holder = candidate
    is_known = holder is segment and not segment.num_events[PeakEvent.event_name]
    peak = finite(holder.facts.get("peak_tflops"))
    return None if is_known or not peak or peak <= 0 else peak


def work_of(segment: Segment, peak_tflops: float) -> float | None:
    """MFU in percent times milliseconds, for one iteration."""
    parts = [finite(segment.facts.get(key)) for key in ("flops_per_token", "tokens_per_iter")]
    flops = float(np.prod([part or 0.0 for part in parts]))
    return 100 * flops / (1e9 * peak_tflops) if flops > 0 else None


def mfu_column(segment: Segment, work: float) -> Column:
    """The MFU of each iteration in percent, NaN if its time is unknown."""
    steps = segment.table.column("step_ms")
    with np.errstate(divide="ignore", invalid="ignore"):
        column: Column = np.where(steps > 0, work / steps, np.nan)
    return column


def _is_same_machine(one: Segment, other: Segment) -> bool:
    return all(one.facts.get(key) == other.facts.get(key) for key in MACHINE)
