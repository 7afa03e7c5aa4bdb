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
    """Phases that add up to `total_ms`, and which part of the run they cover.

    `covers` is `run` (the whole process), `loop` (everything from the first printed iteration to
    the last), `timed` (steps and evaluations, but not what happened between them) or `steps`
    (training steps alone).
    """

    basis: str  # run-log, timestamps, wall-clock, clock, printed, estimated
    covers: str
    total_ms: float
    phases: dict[str, float]
    errors: dict[str, float] = field(default_factory=dict)  # how far phases may be off, if known

    @property
    def wall_ms(self) -> float | None:
        """The wall-clock time, if that is what the phases add up to."""
        return self.total_ms if self.covers in ("run", "loop") else None

    def share(self, *names: str) -> float | None:
        """The share of these phases. None if they are part of a sum that is not complete."""
        if self.covers == "steps" or self.total_ms <= 0:
            return None
        return sum(self.phases.get(name, 0.0) for name in names) / self.total_ms


@dataclass
class Timing:
    """The time analysis of one segment."""

    normal_ms: float | None = None
    sigma_ms: float | None = None
    spikes: list[Spike] = field(default_factory=list)
    eval_ms: float | None = None  # a typical evaluation alone
    save_ms: float | None = None  # a typical checkpoint alone
    boundary_ms: float | None = None  # a typical excess at a boundary, for any cause
    faint_ms: float = 0.0  # the excess of all boundaries that do not stand out of the noise
    num_faint: int = 0
    warmup_ms: float | None = None
    split_by: str | None = None  # timestamps, contrast, printed
    eval_interval: int | None = None
    has_inferred_evals: bool = False  # some evaluations are known only from slow times
    ordinary: Mask = field(default_factory=lambda: np.zeros(0, bool))
    times: Column = field(default_factory=lambda: np.zeros(0))
    stamped_ms: float | None = None  # an ordinary iteration, from timestamps
    mean_ms: float | None = None  # per iteration by the trainer's clock, with all that it includes
    lone_mean_ms: float | None = None  # per iteration, if no line is without start-up or evaluation
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
