"""Computes the times of iterations, evaluations and checkpoints from the printed times.

nanoGPT's `time` includes everything since the end of the previous iteration. The time of an
ordinary iteration is the median over iterations without an evaluation or checkpoint. The extra time
of a slow iteration is called its excess. The lines before it show the cause: an evaluation, a
checkpoint, or the warm-up of the first iteration.
"""

import itertools
from dataclasses import dataclass

import numpy as np

from stepglass.explain.boundary_split import (
    find_stalls_at_boundaries,
    read_printed,
    split_boundaries,
)
from stepglass.explain.data_waits import rows_that_wait
from stepglass.explain.inferred_evals import inferred_evals
from stepglass.explain.iteration_times import (
    SLOW,
    eval_interval,
    has_process_start,
    is_by_stamps,
    normal_near,
    rows_after,
    times_of,
    typical,
    windows_of,
)
from stepglass.explain.timing import Spike, Timing
from stepglass.logs.log import Log
from stepglass.logs.segment import Segment
from stepglass.logs.table import Column, Mask, median, medians

SIGMAS = 8.0
NEIGHBOURS = 64
WARM_UP_ITERS = 10

CAUSES = {
    flags: "+".join(itertools.compress(("warmup", "eval", "checkpoint"), flags)) or "unexplained"
    for flags in itertools.product((False, True), repeat=3)
}


@dataclass
class RowKinds:
    """Masks over the rows of a segment's table: what each row includes."""

    has_time: Mask
    at_eval: Mask
    at_save: Mask
    at_boundary: Mask  # the row's time includes an evaluation or checkpoint
    is_first: Mask  # the first row of the process
    is_explained: Mask  # the line before says why it is slow
    ordinary: Mask
    iters_each: Column  # how many iterations a row's time is averaged over


def reconstruct(
    log: Log, segment: Segment, is_first: bool = True, normal_ms: float | None = None
) -> Timing:
    """Analyse the times of a segment. `normal_ms` is used if it has no ordinary iterations."""
    timing = Timing(times=times_of(segment), eval_interval=eval_interval(segment))
    if segment.last_iter is not None and segment.first_iter is not None:
        timing.num_iters = segment.last_iter - segment.first_iter + 1
    timing.mean_ms = _mean_by_clock(segment)
    # Timestamps show only what happened after the first line, so never the start of a process.
    starts = has_process_start(segment, is_first) and not is_by_stamps(segment)
    kinds = _row_kinds(log, segment, timing.times, starts)
    if _holds_evals(log, segment) and log.format.time_holds_eval:
        _add_inferred_evals(timing, log, segment, kinds, normal_ms)
    timing.ordinary = kinds.ordinary
    local = _find_normal(timing, kinds, normal_ms)
    if local is None:
        means = kinds.has_time & ((kinds.iters_each > 1) | (log.format.counts == "epochs"))
        if means.any():
            weights = kinds.iters_each[means]
            timing.lone_mean_ms = float(np.average(timing.times[means], weights=weights))
        read_printed(timing, segment)
        return timing
    if log.format.slows_down_by_plan:
        local = np.maximum(local, _slower_neighbours(timing.times, kinds))
    _find_spikes(timing, segment, kinds, local, starts)
    find_stalls_at_boundaries(timing)
    split_boundaries(timing, segment)
    read_printed(timing, segment)
    timing.stamped_ms = _stamped_ms(segment, timing, segment.table.column("iter"))
    return timing


def _mean_by_clock(segment: Segment) -> float | None:
    """The mean time per iteration, by the trainer's own clock."""
    first, last = segment.first_elapsed, segment.last_elapsed
    if first is None or last is None or last.iter <= first.iter:
        return None
    return (last.ms - first.ms) / (last.iter - first.iter) or None


def _holds_evals(log: Log, segment: Segment) -> bool:
    """Do the rows' times include evaluations? Differences of timestamps include everything."""
    has_step_times = bool(np.isfinite(segment.table.column("step_ms")).any())
    return is_by_stamps(segment) or (log.format.time_holds_eval and not has_step_times)


def _row_kinds(log: Log, segment: Segment, times: Column, starts: bool) -> RowKinds:
    iters = segment.table.column("iter")
    num_rows, by_stamps = len(iters), is_by_stamps(segment)
    at_eval, at_save = np.zeros(num_rows, bool), np.zeros(num_rows, bool)
    iters_each = windows_of(segment)
    if by_stamps:  # a row's time includes everything since the previous row
        at_eval = rows_after(segment, [e.line for e in segment.evals])
        at_save = rows_after(segment, [s.line for s in segment.saves])
        iters_each = np.diff(iters, prepend=iters[:1] - 1)
    elif _holds_evals(log, segment):
        at_eval = np.isin(iters, np.array(segment.eval_iters))
        at_save = np.isin(iters, np.array(segment.save_iters))
    if _holds_evals(log, segment) and starts and segment.first_iter == 0:
        at_eval |= iters == 0  # nanoGPT evaluates at iteration 0 even if no line says so
    is_first = np.zeros(num_rows, bool)
    is_first[:1] = starts
    has_time = np.isfinite(times) & (times > 0)
    is_explained = segment.table.column("explained") == 1
    at_boundary = at_eval | (at_save & by_stamps)
    ordinary = has_time & ~at_boundary & ~is_first & ~is_explained & _before_nan(segment, iters)
    return RowKinds(
        has_time, at_eval, at_save, at_boundary, is_first, is_explained, ordinary, iters_each
    )


def _add_inferred_evals(
    timing: Timing, log: Log, segment: Segment, kinds: RowKinds, normal_ms: float | None
) -> None:
    iters = segment.table.column("iter")
    inferred = inferred_evals(timing, log, iters, kinds.ordinary, normal_ms)
    timing.has_inferred_evals = bool(inferred.any())
    kinds.at_eval = kinds.at_eval | inferred
    kinds.at_boundary = kinds.at_boundary | inferred
    kinds.ordinary = kinds.ordinary & ~inferred


def _find_normal(timing: Timing, kinds: RowKinds, normal_ms: float | None) -> Column | None:
    """Set the normal time. Return the local normal time of each row, or None if unknown."""
    if kinds.ordinary.any():
        values = timing.times[kinds.ordinary]
        timing.normal_ms = typical(values, kinds.iters_each[kinds.ordinary])
        near = values[values < 2 * SLOW * timing.normal_ms]  # leave out stalls
        timing.sigma_ms = 1.4826 * median(np.abs(near - timing.normal_ms))
        return _local_normal(timing.times, kinds)
    if normal_ms is not None and kinds.has_time.any():
        timing.normal_ms, timing.sigma_ms = normal_ms, 0.0
        return np.full(len(timing.times), normal_ms)
    return None


def _find_spikes(
    timing: Timing, segment: Segment, kinds: RowKinds, local: Column, starts: bool
) -> None:
    """Find the slow rows, each with its excess and its cause."""
    table = segment.table
    iters = table.column("iter")
    excess = (timing.times - local) * kinds.iters_each
    floor = SIGMAS * (timing.sigma_ms or 0.0)
    is_slow = kinds.has_time & (timing.times >= SLOW * local) & (excess > floor)
    is_waiting = is_slow & ~kinds.at_boundary & rows_that_wait(segment, timing.times, local)
    # Where the evaluation falls between two steps, the wait for the next batch includes it.
    is_late = is_waiting & rows_after(segment, [e.line for e in segment.evals])
    kinds.at_eval, kinds.at_boundary = kinds.at_eval | is_late, kinds.at_boundary | is_late
    is_off_boundary = is_slow & ~kinds.at_boundary
    at_start = _warm_up_rows(iters, is_off_boundary, kinds.is_first, starts)
    stall = is_off_boundary & ~at_start & ~kinds.is_explained & ~is_waiting
    stall &= ~_slow_updates(segment, timing.times)
    timing.ordinary = kinds.ordinary & ~stall & ~at_start & ~is_late
    rows = np.flatnonzero(is_slow & (kinds.at_boundary | stall | at_start))
    boundaries = np.flatnonzero(kinds.at_boundary & kinds.has_time)
    near = normal_near(timing.times, timing.ordinary, boundaries, otherwise=local)
    excess[boundaries] = (timing.times[boundaries] - near) * kinds.iters_each[boundaries]
    faint = boundaries[~is_slow[boundaries]]
    timing.num_faint, timing.faint_ms = len(faint), max(0.0, float(excess[faint].sum()))
    figures = (iters, table.column("line"), timing.times, excess, table.column("weight"))
    causes = (at_start, kinds.at_eval, kinds.at_save)
    for iteration, line, time_ms, excess_ms, weight, *flags in zip(
        *(column[rows].tolist() for column in (*figures, *causes)), strict=True
    ):
        is_warmup, is_eval, is_save = flags
        cause = CAUSES[is_warmup, is_eval, is_save]
        stall_ms = excess_ms if cause == "unexplained" else 0.0
        spike = Spike(int(iteration), int(line), time_ms, excess_ms, cause, stall_ms, weight)
        timing.spikes.append(spike)


def _before_nan(segment: Segment, iters: Column) -> Mask:
    """Marks the rows before the loss became NaN. After that, updates may be skipped, so iterations
    take less time."""
    before: Mask = np.ones(len(iters), bool)
    if segment.nan_iter is not None:
        before = iters < segment.nan_iter
    return before if before.sum() >= 2 else np.ones(len(iters), bool)


def _slower_neighbours(times: Column, kinds: RowKinds) -> Column:
    """The slower of the ordinary rows before and after each row that is a mean of many iterations.
    A slower stage of a planned run goes on in the next row; a stall does not."""
    is_mean = kinds.ordinary & (kinds.iters_each > 1)
    known = np.where(is_mean, times, -np.inf)
    before, after = np.append(-np.inf, known[:-1]), np.append(known[1:], -np.inf)
    return np.where(is_mean, np.maximum(before, after), -np.inf)


def _local_normal(times: Column, kinds: RowKinds) -> Column:
    """The time of ordinary iterations near each row, because a run may slow down over hours."""
    rows = np.flatnonzero(kinds.ordinary)
    if len(rows) <= 2 * NEIGHBOURS:
        return np.full(len(times), typical(times[rows], kinds.iters_each[rows]))
    whole = len(rows) // NEIGHBOURS * NEIGHBOURS  # the last few rows use the block before them
    parts = rows[:whole].reshape(-1, NEIGHBOURS)
    middles = medians(times[parts])
    starts = parts[:, 0]
    which = np.maximum(np.searchsorted(starts, np.arange(len(times)), side="right") - 1, 0)
    return middles[which]


def _warm_up_rows(iters: Column, slow: Mask, first: Mask, starts: bool) -> Mask:
    """Marks the first iteration, and those directly after it that are also slow."""
    rows = first.copy()
    if starts and len(iters):
        for row in range(1, len(iters)):
            if not slow[row] or iters[row] - iters[0] > WARM_UP_ITERS or not rows[row - 1]:
                break
            rows[row] = True
    return rows


def _slow_updates(segment: Segment, times: Column) -> Mask:
    """Marks micro-batches with an update. They take longer than the others, but are no stalls."""
    is_update = segment.table.column("is_update") == 1
    if not is_update.any() or is_update.all():
        return np.zeros(len(times), bool)
    usual = float(np.nanmedian(times[is_update]))
    mask: Mask = is_update & (times < SLOW * usual)
    return mask


def _stamped_ms(segment: Segment, timing: Timing, iters: Column) -> float | None:
    """The time of an ordinary iteration, from the timestamps of adjacent rows with no evaluation,
    checkpoint or event between them."""
    stamps = segment.table.column("stamp")
    known = np.flatnonzero(np.isfinite(stamps) & timing.ordinary)
    if len(known) < 5 or not np.isfinite(segment.table.column("time_ms")).any():
        return None
    lines = segment.table.column("line")
    noted = np.sort(
        [e.line for e in segment.evals]
        + [s.line for s in segment.saves]
        + [e.line for e in segment.events]
    )
    passed = np.searchsorted(noted, lines)  # how many of these lines precede each row
    rates = []
    spans = []
    for a, b in itertools.pairwise(known):
        if b == a + 1 and iters[b] > iters[a] and passed[a] == passed[b]:
            rates.append((stamps[b] - stamps[a]) * 1000 / (iters[b] - iters[a]))
            spans.append(stamps[b] - stamps[a])
    # Timestamps in whole seconds are too coarse for a span of a few seconds.
    return float(np.mean(rates)) if len(rates) >= 4 and sum(spans) >= 10 else None
