"""What an iteration, an evaluation and a checkpoint took, from what a log prints.

nanoGPT's `time` holds whatever happened since the last iteration ended. What an ordinary iteration
takes is the median of those away from every boundary; the rest of a slow one is its excess, and
the lines before it say what that was: an evaluation, a checkpoint, the first iteration's warm-up.
An evaluation and a checkpoint in one excess are told apart by timestamps, or by boundaries that
have the one without the other; where neither is there, they stay together.

All times are milliseconds. What is not known is None.
"""

import itertools
import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stepglass.logs.log import Log
from stepglass.logs.segment import Eval, Segment
from stepglass.logs.table import Column, median, medians

SLOW = 1.5  # times the normal iteration
SIGMAS = 8.0
NEIGHBOURS = 64
ROUND = (5000, 2500, 2000, 1000, 500, 250, 200, 100)
WARM_UP_ITERS = 10
FEW = 4
COARSE = 0.005  # of an evaluation: boundaries with and without a checkpoint say more
MUCH_SLOWER = 3.0  # than other boundaries: more than an evaluation happened there

CAUSES = {
    flags: "+".join(itertools.compress(("warmup", "eval", "checkpoint"), flags)) or "unexplained"
    for flags in itertools.product((False, True), repeat=3)
}

Mask = npt.NDArray[np.bool_]


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
        """Some slow iteration held a checkpoint. Asked once the spikes are known."""
        return any("checkpoint" in spike.cause for spike in self.spikes)

    def spikes_of(self, cause: str) -> list[Spike]:
        return [spike for spike in self.spikes if cause in spike.cause]


def number_of(spikes: list[Spike]) -> int:
    """How many slow iterations there were."""
    return round(sum(spike.weight for spike in spikes))


def reconstruct(
    log: Log, segment: Segment, is_first: bool = True, normal_ms: float | None = None
) -> Timing:
    """What the segment's times say. `normal_ms` is for one that hardly has ordinary iterations."""
    timing = Timing()
    timing.times = times_of(segment)
    iters = segment.table.column("iter")
    timing.eval_interval = eval_interval(segment)
    if segment.last_iter is not None and segment.first_iter is not None:
        timing.num_iters = segment.last_iter - segment.first_iter + 1
    has_time = np.isfinite(timing.times) & (timing.times > 0)
    holds_eval = log.time_holds_eval and not np.isfinite(segment.table.column("step_ms")).any()
    at_eval = np.zeros(len(iters), bool)
    at_save = np.zeros(len(iters), bool)
    if holds_eval:
        at_eval = np.isin(iters, np.array(segment.eval_iters))
        at_save = np.isin(iters, np.array(segment.save_iters))
    windows = np.ones(len(iters))
    if is_by_stamps(segment):  # a row is what happened since the one before
        holds_eval = True
        at_eval = _rows_after(segment, [e.line for e in segment.evals])
        at_save = _rows_after(segment, [s.line for s in segment.saves])
        windows[1:] = np.diff(iters)
    starts = begins_here(segment, is_first)
    if holds_eval and starts and segment.first_iter == 0:
        at_eval |= iters == 0  # nanoGPT evaluates at 0, printed or not
    first = np.zeros(len(iters), bool)
    if starts and len(first):
        first[0] = True
    known = segment.table.column("explained") == 1
    at_boundary = at_eval | (at_save & is_by_stamps(segment))
    ordinary = has_time & ~at_boundary & ~first & ~known & _still_learns(segment, iters)
    if holds_eval and log.time_holds_eval:
        inferred = _inferred_evals(timing, log, iters, ordinary, normal_ms)
        timing.has_inferred_evals = bool(inferred.any())
        at_eval, at_boundary = at_eval | inferred, at_boundary | inferred
        ordinary &= ~inferred
    timing.ordinary = ordinary
    if ordinary.any():
        values = timing.times[ordinary]
        timing.normal_ms = typical(values)
        near = values[values < 2 * SLOW * timing.normal_ms]  # of few lines one may be a stall
        timing.sigma_ms = 1.4826 * median(np.abs(near - timing.normal_ms))
        local = _local_normal(timing.times, ordinary)
    elif normal_ms is not None and has_time.any():
        timing.normal_ms, timing.sigma_ms = normal_ms, 0.0
        local = np.full(len(timing.times), normal_ms)
    else:
        _read_printed(timing, segment)
        return timing
    excess = (timing.times - local) * windows
    floor = SIGMAS * timing.sigma_ms
    is_slow = has_time & (timing.times >= SLOW * local) & (excess > floor)
    at_start = _warm_up_rows(iters, is_slow & ~at_boundary, first, starts)
    stall = is_slow & ~at_boundary & ~at_start & ~known & ~_slow_updates(segment, timing.times)
    timing.ordinary = ordinary & ~stall & ~at_start
    chosen = is_slow & (at_boundary | stall | at_start)
    rows = np.flatnonzero(chosen)
    lines = segment.table.column("line")
    weights = segment.table.column("weight")
    figures = (iters, lines, timing.times, excess, at_start, at_eval, at_save, weights)
    for iteration, line, time_ms, excess_ms, is_start, is_eval, is_save, weight in zip(
        *(column[rows].tolist() for column in figures), strict=True
    ):
        cause = CAUSES[is_start, is_eval, is_save]
        stall_ms = excess_ms if cause == "unexplained" else 0.0
        spike = Spike(int(iteration), int(line), time_ms, excess_ms, cause, stall_ms, weight)
        timing.spikes.append(spike)
    _find_stalls_at_boundaries(timing)
    _split(timing, segment)
    _read_printed(timing, segment)
    timing.stamped_ms = _stamped_ms(segment, timing, iters)
    return timing


def _still_learns(segment: Segment, iters: Column) -> Mask:
    """Once the loss is no number, updates may be skipped, and an iteration is no ordinary one."""
    before: Mask = np.ones(len(iters), bool)
    if segment.nan_iter is not None:
        before = iters < segment.nan_iter
    return before if before.sum() >= 2 else np.ones(len(iters), bool)


def typical(values: Column) -> float:
    """The median. Where few lines lie far apart, the faster ones: slow ones are what is pasted."""
    few = np.sort(values)
    low, high = float(few[(len(few) - 1) // 2]), float(few[len(few) // 2])
    return low if len(few) <= FEW and high > SLOW * low else (low + high) / 2


def times_of(segment: Segment) -> Column:
    """Each iteration's time: printed, or from the timestamps around it."""
    table = segment.table
    steps_alone = table.column("step_ms")
    if np.isfinite(steps_alone).any():
        return steps_alone
    times = table.column("time_ms")
    if np.isfinite(times).any() or len(times) < 2:
        return times
    stamps, iters = table.column("stamp"), table.column("iter")
    between = np.full(len(times), np.nan)
    steps = iters[1:] - iters[:-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        between[1:] = np.where(steps > 0, (stamps[1:] - stamps[:-1]) * 1000 / steps, np.nan)
    return between


def is_by_stamps(segment: Segment) -> bool:
    """No time is printed: it comes from the timestamps."""
    table = segment.table
    return not table.num_times and bool(np.isfinite(table.column("stamp")).any())


def _rows_after(segment: Segment, noted: list[int]) -> Mask:
    """The rows right after these lines."""
    lines = segment.table.column("line")
    rows = np.zeros(len(lines), bool)
    found = np.searchsorted(lines, np.array(noted, np.float64))
    rows[found[found < len(lines)]] = True
    return rows


def begins_here(segment: Segment, is_first: bool) -> bool:
    """Is the segment's first line the first of a process? Not if a paste begins in the middle."""
    if segment.first_iter is None:
        return False
    if segment.first_iter <= 1 or "init_from" in segment.facts:
        return True
    return not is_first


def eval_interval(segment: Segment) -> int | None:
    """Iterations between two evaluations: as set, or as seen."""
    setting = segment.setting("eval_interval")
    if isinstance(setting, int) and not isinstance(setting, bool) and setting > 0:
        return setting
    steps = segment.eval_steps
    if not steps:
        return None
    return max(steps, key=lambda step: (steps[step], -step))


def log_interval(iters: Column) -> int | None:
    """Iterations between two printed ones, the usual."""
    steps = np.diff(iters)
    steps = np.sort(steps[steps > 0])
    if not len(steps):
        return None
    firsts = np.flatnonzero(np.diff(steps, prepend=0))
    counts = np.diff(firsts, append=len(steps))
    return int(steps[firsts[counts.argmax()]])


def _inferred_evals(
    timing: Timing, log: Log, iters: Column, ordinary: Mask, reference: float | None
) -> Mask:
    """Boundaries whose evaluation was cut from the paste."""
    none = np.zeros(len(iters), bool)
    if not ordinary.any():
        return none
    normal = reference or typical(timing.times[ordinary])
    slow = ordinary & (timing.times >= SLOW * normal) & (iters > 0)
    if not slow.any():
        return none
    inferred: Mask
    if timing.eval_interval:
        inferred = slow & (iters % timing.eval_interval == 0)
    elif any(segment.eval_iters for segment in log.segments):
        seen = np.concatenate([np.array(segment.eval_iters) for segment in log.segments])
        inferred = slow & np.isin(iters, seen)
    else:
        inferred = slow & _on_a_grid(iters, slow, ordinary)
    return inferred


def _on_a_grid(iters: Column, slow: Mask, ordinary: Mask) -> Mask:
    """Slow iterations at multiples of one round number, and none of its multiples ordinary."""
    none = np.zeros(len(iters), bool)
    step = log_interval(iters[ordinary]) or 1
    grid = math.gcd(*(int(i) for i in iters[slow]))
    if slow.sum() == 1:
        grid = next((r for r in ROUND if grid % r == 0), 0)
    if grid < 2 * step or not grid:
        return none
    on_grid = ordinary & (iters % grid == 0) & (iters > 0)
    is_grid = bool((on_grid == (slow & ordinary)).all()) and bool((ordinary & ~slow).any())
    return slow if is_grid else none


def _local_normal(times: Column, ordinary: Mask) -> Column:
    """What an ordinary iteration took thereabouts: a run may slow down over hours."""
    rows = np.flatnonzero(ordinary)
    if len(rows) <= 2 * NEIGHBOURS:
        return np.full(len(times), typical(times[rows]))
    whole = len(rows) // NEIGHBOURS * NEIGHBOURS  # the last few share their neighbours' figure
    parts = rows[:whole].reshape(-1, NEIGHBOURS)
    middles = medians(times[parts])
    starts = parts[:, 0]
    which = np.maximum(np.searchsorted(starts, np.arange(len(times)), side="right") - 1, 0)
    return middles[which]


def _warm_up_rows(iters: Column, slow: Mask, first: Mask, starts: bool) -> Mask:
    """The first iteration, and those right after it that are slow as well."""
    rows = first.copy()
    if starts and len(iters):
        for row in range(1, len(iters)):
            if not slow[row] or iters[row] - iters[0] > WARM_UP_ITERS or not rows[row - 1]:
                break
            rows[row] = True
    return rows


def _slow_updates(segment: Segment, times: Column) -> Mask:
    """litgpt prints micro-batches: those with an update take longer, and that is no stall."""
    is_update = segment.table.column("is_update") == 1
    if not is_update.any() or is_update.all():
        return np.zeros(len(times), bool)
    usual = float(np.nanmedian(times[is_update]))
    mask: Mask = is_update & (times < SLOW * usual)
    return mask


def _find_stalls_at_boundaries(timing: Timing) -> None:
    """A boundary far slower than the others held more than its evaluation."""
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


def _split(timing: Timing, segment: Segment) -> None:
    """What of the boundaries' excess was evaluation, and what checkpoint."""
    plain = [s for s in timing.spikes if s.cause == "eval"]
    saved = [s for s in timing.spikes if s.cause == "eval+checkpoint"]
    both = plain + saved
    if both:
        timing.boundary_ms = median([s.excess_ms for s in both])
    by_stamps = _by_timestamps(timing, segment, saved)
    has_contrast = bool(plain) and bool(saved)
    if by_stamps is not None and not (has_contrast and by_stamps.is_coarse):
        timing.split_by = "timestamps"
        timing.eval_ms, timing.save_ms = by_stamps.eval_ms, by_stamps.save_ms
    elif plain:
        timing.split_by = "contrast"
        timing.eval_ms = median([s.excess_ms for s in plain])
        if saved:
            with_save = median([s.excess_ms for s in saved])
            timing.save_ms = max(0.0, with_save - timing.eval_ms)
    first = [s for s in timing.spikes if s.cause.startswith("warmup")]
    if first:
        evaluations = [s for s in first if "eval" in s.cause]
        total = sum(s.excess_ms for s in first)
        if not evaluations:
            timing.warmup_ms = total
        elif timing.eval_ms is not None:
            timing.warmup_ms = max(0.0, total - timing.eval_ms)


class Split(NamedTuple):
    """An evaluation and a checkpoint, on average."""

    eval_ms: float
    save_ms: float
    is_coarse: bool  # the stamps are good for the first digits only


def _by_timestamps(timing: Timing, segment: Segment, spikes: list[Spike]) -> Split | None:
    """Evaluation and checkpoint, from the times their lines were printed.

    Two views of the evaluation, each as good as the clock's resolution: up to its line, and all
    that was not after it. None if the checkpoint is lost in that resolution.
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


def _read_printed(timing: Timing, segment: Segment) -> None:
    """Trainers that print what an evaluation or a checkpoint took."""
    printed = [e.time_ms for e in segment.evals if e.time_ms is not None]
    if printed:
        timing.eval_ms, timing.split_by = median(printed), "printed"
    saves = [s.time_ms for s in segment.saves if s.time_ms is not None]
    if saves:
        timing.save_ms = median(saves)


def _stamped_ms(segment: Segment, timing: Timing, iters: Column) -> float | None:
    """An ordinary iteration by the wall clock, where nothing but ordinary ones lie between."""
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
    passed = np.searchsorted(noted, lines)  # how many were before each row
    rates = []
    spans = []
    for a, b in itertools.pairwise(known):
        if b == a + 1 and iters[b] > iters[a] and passed[a] == passed[b]:
            rates.append((stamps[b] - stamps[a]) * 1000 / (iters[b] - iters[a]))
            spans.append(stamps[b] - stamps[a])
    # A clock that shows seconds says little about a few of them.
    return float(np.mean(rates)) if len(rates) >= 4 and sum(spans) >= 10 else None


def printed_evals(segment: Segment) -> list[Eval]:
    """Evaluations with a finite figure."""
    return [e for e in segment.evals if e.val is not None and math.isfinite(e.val)]
