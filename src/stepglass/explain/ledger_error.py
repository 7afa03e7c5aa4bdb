"""How far the rows of a reconstructed ledger may be off, from the scatter of the printed times.

A step inside a boundary is taken to be a normal one, and so is every iteration that is not printed.
The more the printed steps scatter, and the fewer of them there are, the less that is known. Given
is half the width of a 95 % interval.
"""

import math

import numpy as np

from stepglass.explain.iteration_times import normal_near
from stepglass.explain.spent import covered, phase_of_evals, phases_of_excess
from stepglass.explain.timing import Spike, Timing
from stepglass.logs.segment import Segment
from stepglass.logs.table import Column

LEAST_TIMES = 3
BLOCK = 4  # lines; a slow minute of the machine lasts for several


def errors_of(segment: Segment, timing: Timing) -> dict[str, float]:
    """By phase, in milliseconds. Empty if the log has too few times to say."""
    usual = timing.times[timing.ordinary]
    windows = segment.table.column("window")
    if len(usual) < LEAST_TIMES or timing.num_iters is None or np.nanmax(windows, initial=1) > 1:
        return {}
    one, mean = float(usual.std(ddof=1)), _error_of_mean(usual)
    rows = np.flatnonzero(timing.ordinary)
    level = np.full(len(timing.times), float(usual.mean()))
    away = usual - normal_near(timing.times, timing.ordinary, rows, otherwise=level)
    inside = float(away.std(ddof=1))  # the step inside a boundary is compared with those around it
    num_unprinted = max(0, timing.num_iters - covered(segment)[1])
    num_slow = sum(spike.weight for spike in timing.spikes) + timing.num_faint
    variances = {
        "step": (num_unprinted * mean) ** 2 + num_unprinted * one**2 + num_slow * inside**2
    }
    counts = {phase_of_evals(timing): float(timing.num_faint)}
    for spike in timing.spikes:
        for phase in _phases_of(spike, timing):
            counts[phase] = counts.get(phase, 0.0) + spike.weight
    for phase, count in counts.items():
        variances[phase] = count * inside**2
    _add_unprinted_evals(variances, segment, timing)
    quantile = 2 + 5 / len(usual)  # close to Student's t
    return {phase: quantile * math.sqrt(variance) for phase, variance in variances.items()}


def _error_of_mean(usual: Column) -> float:
    """The standard error of the mean, also if neighbours resemble each other."""
    independent = float(usual.std(ddof=1)) / math.sqrt(len(usual))
    num_blocks = len(usual) // BLOCK
    if num_blocks < LEAST_TIMES:
        return independent
    means = usual[: num_blocks * BLOCK].reshape(num_blocks, BLOCK).mean(axis=1)
    return max(independent, float(means.std(ddof=1)) / math.sqrt(num_blocks))


def _phases_of(spike: Spike, timing: Timing) -> set[str]:
    phases = {phase for phase, _ in phases_of_excess(spike.cause, spike.excess_ms, timing)}
    return phases | {"stall"} if spike.stall_ms else phases


def _add_unprinted_evals(variances: dict[str, float], segment: Segment, timing: Timing) -> None:
    """Evaluations whose iteration is not printed are taken to be like those that are."""
    seen = np.array([s.excess_ms for s in timing.spikes if s.cause in ("eval", "eval+checkpoint")])
    num_unseen = segment.num_evals - segment.num_printed_evals
    if len(seen) < 2 or num_unseen <= 0:
        return
    one = float(seen.std(ddof=1))
    phase = phase_of_evals(timing)
    added = num_unseen * one**2 + (num_unseen * one) ** 2 / len(seen)
    variances[phase] = variances.get(phase, 0.0) + added
