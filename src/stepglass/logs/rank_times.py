"""The event `ranks` of a run log: how long each of several processes has computed and waited."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from stepglass.logs.table import Column
from stepglass.measure.event_details import RanksEvent

MOST_RANKS = 1024


@dataclass(frozen=True, slots=True, eq=False)
class RankTimes:
    """Milliseconds of an update, by rank; those of an evaluation are NaN if they are not known."""

    compute_ms: Column
    wait_ms: Column
    eval_ms: Column
    communication_ms: float
    updates: int  # how many the times are a mean of


def read_rank_times(detail: dict[str, Any]) -> RankTimes | None:
    """None if the detail has not one time for each process.

    >>> read_rank_times({"compute_ms": [40, 60], "wait_ms": [22, 2]}).communication_ms
    2.0
    """
    said = RanksEvent.from_dict(detail)
    compute, wait, scored = map(_times, (said.compute_ms, said.wait_ms, said.eval_ms))
    if compute is None or wait is None or not 2 <= len(compute) == len(wait) <= MOST_RANKS:
        return None
    if scored is None or len(scored) != len(compute):
        scored = np.full(len(compute), np.nan)
    # Without it: the process that is ready last in every update waits for nothing else.
    communication = _times([said.communication_ms])
    shortest = float(wait.min())
    return RankTimes(
        compute,
        wait,
        scored,
        shortest if communication is None else min(float(communication[0]), shortest),
        said.updates if type(said.updates) is int and said.updates > 0 else 1,
    )


def _times(found: object) -> Column | None:
    """A list of durations, or None if it is not one."""
    if not isinstance(found, list) or not all(type(ms) in (int, float) for ms in found):
        return None
    times = np.array(found, np.float64)
    return times if bool(((times >= 0) & (times < 1e10)).all()) else None
