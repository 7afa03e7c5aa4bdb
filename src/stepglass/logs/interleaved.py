"""Runs that write one log at the same time: their lines alternate.

    step 00021/00502 (4.18%) | loss: 7.9
    step 00000/00620 (0.00%) | loss: 10.4    <- another run begins
    step 00022/00502 (4.38%) | loss: 7.8     <- the first one goes on

Only the printed length tells them apart: without it, such a line looks like a jump.
"""

from stepglass.logs.reader import Record
from stepglass.logs.segment import Segment

MOST_AT_ONCE = 16


def run_that_goes_on(record: Record, segments: list[Segment]) -> Segment | None:
    """The earlier run that a step belongs to. None if it belongs to the latest one or a new one."""
    length, iteration = record.get("max_iters"), record.get("iter")
    if length is None or iteration is None or "global_iter" in record:
        return None
    if length == segments[-1].setting("max_iters"):
        return None
    for segment in segments[-2 : -2 - MOST_AT_ONCE : -1]:
        last = segment.last_iter
        if segment.setting("max_iters") == length and last is not None and last <= iteration:
            return segment
    return None


def nearest_run(iteration: int, segments: list[Segment]) -> Segment:
    """The run that an evaluation belongs to: the one whose latest step is just before it."""

    def distance(segment: Segment) -> tuple[bool, int]:
        last = segment.last_iter or 0
        return iteration < last, abs(iteration - last)

    return min(reversed(segments[-MOST_AT_ONCE:]), key=distance)
