"""The time of an iteration where the log prints a mean, a running clock or a rate."""

from stepglass.logs.plausible import ABSURD, sane
from stepglass.logs.reader import Record
from stepglass.logs.segment import Segment

LEAST_SPAN_S = 20.0  # a bar shows whole seconds: too coarse for a few iterations


def mean_window(record: Record, segment: Segment, iteration: int) -> int | None:
    """The number of iterations that the printed time is a mean over. None if it is one iteration's
    time, or the mean of an unknown number (the first line of an excerpt)."""
    stated = record.get("window")
    if stated is not None:
        return max(1, int(stated))
    if not record.get("is_mean") or segment.last_iter is None:
        return None
    return max(1, iteration - segment.last_iter)


def time_from_progress(
    record: Record, segment: Segment, iteration: int
) -> tuple[float | None, int | None]:
    """The time of an iteration from a progress bar, which shows the elapsed time or a rate, and how
    many iterations it is the mean of, if known."""
    elapsed, rate = record.get("elapsed_s"), record.get("rate_per_s")
    if rate or elapsed is None or not segment.has_iter_numbers:
        return (sane(1000 / rate, ABSURD["time_ms"]) if rate else None), None
    before = segment.progress
    if before is None or elapsed < before[1]:
        segment.progress = (iteration, elapsed)
        return None, None
    if elapsed - before[1] < LEAST_SPAN_S or iteration <= before[0]:
        return None, None
    segment.progress = (iteration, elapsed)
    steps = iteration - before[0]
    return float(1000 * (elapsed - before[1]) / steps), steps
