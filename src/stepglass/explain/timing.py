"""What is known about a segment's time: an ordinary iteration, the slow ones, and a ledger.

All times are milliseconds. What is not known is None.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from stepglass.logs.table import Column, Mask


class Spike(NamedTuple):
    """An iteration that took much longer than its neighbours."""

    iter: int
    line: int
    time_ms: float
    excess_ms: float
    cause: str  # warmup, eval, checkpoint, unexplained; joined with +
    stall_ms: float = 0.0  # of the excess, what nothing explains
    weight: float = 1.0  # how many it stands for, where a log has more than can be kept


@dataclass
class Ledger:
    """Phases that add up to `wall_ms`."""

    basis: str  # run-log, timestamps, wall-clock, printed, estimated
    wall_ms: float
    phases: dict[str, float]


@dataclass
class Timing:
    """What was found out about one segment."""

    normal_ms: float | None = None
    sigma_ms: float | None = None
    spikes: list[Spike] = field(default_factory=list)
    eval_ms: float | None = None  # a typical evaluation alone
    save_ms: float | None = None  # a typical checkpoint alone
    boundary_ms: float | None = None  # a typical excess at a boundary, whatever is in it
    warmup_ms: float | None = None
    split_by: str | None = None  # timestamps, contrast, printed
    eval_interval: int | None = None
    has_inferred_evals: bool = False  # no evaluation was printed where the time says there was one
    ordinary: Mask = field(default_factory=lambda: np.zeros(0, bool))
    times: Column = field(default_factory=lambda: np.zeros(0))
    stamped_ms: float | None = None  # an ordinary iteration by the timestamps
    num_iters: int | None = None  # iterations from the first printed to the last
    ledger: Ledger | None = None

    @cached_property
    def has_saves(self) -> bool:
        """Does a slow iteration include a checkpoint? Valid once all spikes are known."""
        return any("checkpoint" in spike.cause for spike in self.spikes)

    def spikes_of(self, cause: str) -> list[Spike]:
        return [spike for spike in self.spikes if cause in spike.cause]


def number_of(spikes: list[Spike]) -> int:
    """How many slow iterations there were."""
    return round(sum(spike.weight for spike in spikes))
