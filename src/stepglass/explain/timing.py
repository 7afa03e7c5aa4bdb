"""The time analysis of a segment: the ordinary iteration, slow iterations, and a ledger.

All times are in milliseconds. Unknown values are None.
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
    stall_ms: float = 0.0  # the unexplained part of the excess
    weight: float = 1.0  # how many slow iterations it represents, if others were dropped


@dataclass
class Ledger:
    """Phases that add up to `wall_ms`."""

    basis: str  # run-log, timestamps, wall-clock, printed, estimated
    wall_ms: float
    phases: dict[str, float]


@dataclass
class Timing:
    """The time analysis of one segment."""

    normal_ms: float | None = None
    sigma_ms: float | None = None
    spikes: list[Spike] = field(default_factory=list)
    eval_ms: float | None = None  # a typical evaluation alone
    save_ms: float | None = None  # a typical checkpoint alone
    boundary_ms: float | None = None  # a typical excess at a boundary, for any cause
    warmup_ms: float | None = None
    split_by: str | None = None  # timestamps, contrast, printed
    eval_interval: int | None = None
    has_inferred_evals: bool = False  # some evaluations are known only from slow times
    ordinary: Mask = field(default_factory=lambda: np.zeros(0, bool))
    times: Column = field(default_factory=lambda: np.zeros(0))
    stamped_ms: float | None = None  # an ordinary iteration, from timestamps
    num_iters: int | None = None  # iterations from the first printed to the last
    ledger: Ledger | None = None

    @cached_property
    def has_saves(self) -> bool:
        """Does a slow iteration include a checkpoint? Valid only when all spikes are known."""
        return any("checkpoint" in spike.cause for spike in self.spikes)

    def spikes_of(self, cause: str) -> list[Spike]:
        return [spike for spike in self.spikes if cause in spike.cause]


def number_of(spikes: list[Spike]) -> int:
    """How many slow iterations there were."""
    return round(sum(spike.weight for spike in spikes))
