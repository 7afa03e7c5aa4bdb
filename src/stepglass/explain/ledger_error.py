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
from stepglass.explain.unprinted import LEAST_TIMES, unprinted_iterations
from stepglass.logs.segment import Segment

MUCH = 0.1  # of a usual evaluation


def errors_of(segment: Segment, timing: Timing) -> dict[str, float]:
    """By phase, in milliseconds. Empty if the log has too few times to say."""
    usual = timing.times[timing.ordinary]
    windows = segment.table.column("window")
    if len(usual) < LEAST_TIMES or timing.num_iters is None or np.nanmax(windows, initial=1) > 1:
        return {}
    rows = np.flatnonzero(timing.ordinary)
    level = np.full(len(timing.times), float(usual.mean()))
    away = usual - normal_near(timing.times, timing.ordinary, rows, otherwise=level)
    num_printed = covered(segment)[1]
    others = unprinted_iterations(timing, max(0, timing.num_iters - num_printed), num_printed)
    # The step inside a slow iteration is compared with those around it. One with an evaluation may
    # be a stall as well.
    of_stall = float(away.var(ddof=1))
    of_boundary = of_stall + others.stall_variance
    evals = phase_of_evals(timing)
    variances = {
        "step": (others.num_iters * others.mean_error_ms) ** 2
        + others.num_iters * others.scatter_ms**2
        + timing.num_faint * of_boundary,
        evals: timing.num_faint * of_boundary,
    }
    for spike in timing.spikes:
        variance = of_stall if spike.cause == "unexplained" else of_boundary
        for phase in ("step", *_phases_of(spike, timing)):
            variances[phase] = variances.get(phase, 0.0) + spike.weight * variance
    _add_unprinted_evals(variances, segment, timing)
    quantile = 2 + 5 / len(usual)  # close to Student's t
    errors = {phase: quantile * math.sqrt(variance) for phase, variance in variances.items()}
    errors["step"] += others.doubt_ms
    in_evals = _in_slow_evals(timing)
    for phase in ("step", evals):
        errors[phase] = errors.get(phase, 0.0) + in_evals
    return errors


def _in_slow_evals(timing: Timing) -> float:
    """Evaluations compute the same every time. If one takes much longer than the others, a stall
    may be in it; then the difference is no evaluation."""
    seen = np.array([s.excess_ms for s in timing.spikes if s.cause in ("eval", "eval+checkpoint")])
    if len(seen) < LEAST_TIMES:
        return 0.0
    beyond = seen - np.median(seen)
    return float(beyond[beyond > MUCH * np.median(seen)].sum())


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
