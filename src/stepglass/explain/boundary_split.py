"""Splits the extra time at a boundary into evaluation, checkpoint, warm-up and stall.

A boundary is an iteration with an evaluation or a checkpoint. The two can be separated by
timestamps, or by comparing boundaries with and without a checkpoint. If the log has neither, they
are reported together.
"""

import math
from typing import NamedTuple

import numpy as np

from stepglass.explain.timing import Spike, Timing
from stepglass.logs.segment import Segment
from stepglass.logs.table import median

# If the timestamps' resolution is a larger share of an evaluation than this, a comparison of
# boundaries with and without a checkpoint is more exact.
COARSE = 0.005
LEAST_OF_EACH = 3  # boundaries with and without a checkpoint, for a comparison of the two
LARGEST_ERROR = 0.1  # of a checkpoint: if evaluations scatter more, the two are not separated
LEAST_FIT = 0.8  # iteration 0 also evaluates: it cannot take much less than an evaluation
MUCH_SLOWER = 3.0  # times the median boundary: it also includes a stall


def find_stalls_at_boundaries(timing: Timing) -> None:
    """Mark boundaries that are far slower than the others, because they include a stall."""
    usual = [s.excess_ms for s in timing.spikes if s.cause in ("eval", "eval+checkpoint")]
    if len(usual) < 3:
        return
    middle = median(usual)
    for index, spike in enumerate(timing.spikes):
        is_boundary = spike.cause in ("eval", "eval+checkpoint")
        if is_boundary and spike.excess_ms > MUCH_SLOWER * middle:
            timing.spikes[index] = spike._replace(
                cause=spike.cause + "+unexplained", stall_ms=spike.excess_ms - middle
            )


def split_boundaries(timing: Timing, segment: Segment) -> None:
    """Split the extra time of the boundaries into evaluation and checkpoint."""
    plain = [s for s in timing.spikes if s.cause == "eval"]
    saved = [s for s in timing.spikes if s.cause == "eval+checkpoint"]
    both = plain + saved
    if both:
        timing.boundary_ms = median([s.excess_ms for s in both])
    by_stamps = _by_timestamps(timing, segment, saved)
    has_contrast = min(len(plain), len(saved)) >= LEAST_OF_EACH
    if by_stamps is not None and not (has_contrast and by_stamps.is_coarse):
        timing.split_by = "timestamps"
        timing.eval_ms, timing.save_ms = by_stamps.eval_ms, by_stamps.save_ms
    elif plain and (has_contrast or not saved):
        timing.split_by = "contrast"
        timing.eval_ms = median([s.excess_ms for s in plain])
        if saved:
            with_save = median([s.excess_ms for s in saved])
            timing.save_ms = max(0.0, with_save - timing.eval_ms)
            if _error_of(plain, saved) > LARGEST_ERROR * timing.save_ms:
                timing.save_ms = None  # the scatter of evaluations hides it
    first = [s for s in timing.spikes if s.cause.startswith("warmup")]
    if _contradicts(timing, first):
        timing.split_by = timing.eval_ms = timing.save_ms = None
    if first:
        evaluations = [s for s in first if "eval" in s.cause]
        total = sum(s.excess_ms for s in first)
        if not evaluations:
            timing.warmup_ms = total
        elif timing.eval_ms is not None:
            timing.warmup_ms = max(0.0, total - timing.eval_ms)


def _error_of(plain: list[Spike], saved: list[Spike]) -> float:
    """The standard error of the difference between two groups of slow iterations."""
    variance = 0.0
    for spikes in (plain, saved):
        values = np.array([s.excess_ms for s in spikes])
        spread = 1.4826 * median(np.abs(values - median(values)))
        variance += spread**2 / len(values)
    return math.sqrt(variance)


def _contradicts(timing: Timing, first: list[Spike]) -> bool:
    """Did iteration 0, which also evaluates, take less time than one evaluation?"""
    if timing.save_ms is None or timing.eval_ms is None:
        return False
    at_zero = [s.excess_ms for s in first if s.iter == 0 and s.cause == "warmup+eval"]
    return bool(at_zero) and at_zero[0] < LEAST_FIT * timing.eval_ms


class Split(NamedTuple):
    """The mean times of an evaluation and a checkpoint."""

    eval_ms: float
    save_ms: float
    is_coarse: bool  # the timestamps have a low resolution


def _by_timestamps(timing: Timing, segment: Segment, spikes: list[Spike]) -> Split | None:
    """Times of evaluation and checkpoint, from the timestamps of their lines.

    There are two estimates of the evaluation, each as exact as the timestamps: the time before its
    line, and the total without the time after its line. None if the evaluation or the checkpoint
    is too short for the resolution of the timestamps.
    """
    table, normal = segment.table, timing.normal_ms or 0.0
    stamps, iters = table.column("stamp"), table.column("iter")
    evaluations = {e.iter: e for e in segment.evals if e.stamp is not None}
    if not evaluations or not np.isfinite(stamps).any():
        return None
    rows = {int(line): row for row, line in enumerate(table.column("line"))}
    evals_ms, saves_ms = [], []
    for spike in spikes:
        row, evaluation = rows[spike.line], evaluations.get(spike.iter)
        if evaluation is None or evaluation.stamp is None or not np.isfinite(stamps[row]):
            continue
        views = [spike.excess_ms - ((stamps[row] - evaluation.stamp) * 1000 - normal)]
        if row and np.isfinite(stamps[row - 1]):
            between = iters[row] - iters[row - 1] - 1
            views.append((evaluation.stamp - stamps[row - 1]) * 1000 - between * normal)
        evals_ms.append(float(np.mean(views)))
        saves_ms.append(spike.excess_ms - evals_ms[-1])
    if not evals_ms:
        return None
    shows_seconds = bool((stamps[np.isfinite(stamps)] % 1 == 0).all())
    resolution_ms = 1000.0 if shows_seconds else 1.0
    eval_ms, save_ms = float(np.mean(evals_ms)), float(np.mean(saves_ms))
    if min(eval_ms, save_ms) < 2 * resolution_ms / math.sqrt(len(evals_ms)):
        return None
    return Split(eval_ms, save_ms, is_coarse=resolution_ms > COARSE * eval_ms)


def read_printed(timing: Timing, segment: Segment) -> None:
    """Take the times of evaluations and checkpoints from a log that prints them."""
    printed = [e.time_ms for e in segment.evals if e.time_ms is not None]
    if printed:
        timing.eval_ms, timing.split_by = median(printed), "printed"
    saves = [s.time_ms for s in segment.saves if s.time_ms is not None]
    if saves:
        timing.save_ms = median(saves)
