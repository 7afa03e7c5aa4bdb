"""Where a segment's time went: phases that add up to a total, and what that total covers.

The total is stated in the log, or is the span of its timestamps, or what the trainer's own clock
shows, or the sum of the printed times. Time that no line accounts for is `unattributed`; if the log
times no steps at all, it is `rest`. If the time of some evaluations cannot be known, or lines are
missing, there is no ledger, because it would be wrong.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from stepglass.explain.data_waits import mean_wait_ms
from stepglass.explain.iteration_times import (
    has_holes,
    has_process_start,
    is_by_stamps,
    windows_of,
)
from stepglass.explain.timing import Ledger, Timing
from stepglass.explain.unprinted import unprinted_iterations
from stepglass.logs.log import Log
from stepglass.logs.segment import Segment
from stepglass.units import finite

AGREES = 1.001  # the printed times may exceed the total by rounding


class Known(NamedTuple):
    """What the lines of a log say about time, in milliseconds."""

    phases: dict[str, float]
    estimated_ms: float  # the part of `step` that belongs to iterations that are not printed
    is_whole: bool  # nothing between the first and the last iteration is missing
    covers: str

    @property
    def total_ms(self) -> float:
        return sum(self.phases.values())

    def steps_alone(self, excluded: tuple[str, ...]) -> "Known":
        """Training steps alone, for a clock that stops during other phases."""
        others = {"eval", "checkpoint", *excluded}
        phases = {name: ms for name, ms in self.phases.items() if name not in others}
        return self._replace(phases=phases, covers="steps")


class Total(NamedTuple):
    """A total that the log itself states."""

    basis: str
    covers: str
    ms: float


def ledger_of(log: Log, segment: Segment, timing: Timing) -> Ledger | None:
    """The phases of a segment, or None if the log does not say enough about its time."""
    whole = segment.end.get("ledger")
    if isinstance(whole, dict) and isinstance(whole.get("phases"), dict):
        phases = {k: v for k, v in whole["phases"].items() if is_duration(v)}
        return Ledger("run-log", "run", sum(phases.values()), _nonzero(phases))
    if segment.phases:
        recorded = _nonzero(segment.phases)
        return Ledger("run-log", "loop", sum(recorded.values()), recorded)
    known = _known(log, segment, timing)
    total = _stated_total(log, segment)
    if total is None:
        return _sum_of_parts(known)
    if total.covers == "steps":
        known = known.steps_alone(log.format.elapsed_excludes)
    if "step" not in known.phases:
        return _without_steps(known, total)
    surplus = max(0.0, known.total_ms - total.ms)
    given = min(surplus, known.estimated_ms)
    if known.total_ms - given > AGREES * total.ms:
        return _sum_of_parts(known)  # the printed times exceed the total
    phases = dict(known.phases)
    # The time of unprinted iterations is only an estimate; the rest of the surplus is rounding.
    phases["step"] -= min(surplus, phases["step"])
    phases["unattributed"] = max(0.0, total.ms - known.total_ms + surplus)
    is_rounding = phases["unattributed"] < (AGREES - 1) * total.ms
    if is_rounding or total.covers == "steps":  # such a clock runs during steps only
        phases["step"] += phases.pop("unattributed")
    phases = _nonzero(phases)
    return Ledger(total.basis, total.covers, sum(phases.values()), phases)


def _sum_of_parts(known: Known) -> Ledger | None:
    """A ledger of the printed times alone."""
    if not known.is_whole or {"step", "all"}.isdisjoint(known.phases):
        return None
    basis = "estimated" if known.estimated_ms else "printed"
    return Ledger(basis, known.covers, known.total_ms, known.phases)


def _without_steps(known: Known, total: Total) -> Ledger | None:
    """A ledger of a total and timed evaluations, if the log times no steps."""
    if total.covers == "steps":
        return Ledger(total.basis, total.covers, total.ms, {"step": total.ms})
    if not known.phases or "all" in known.phases:
        return Ledger(total.basis, total.covers, total.ms, {"all": total.ms})
    if known.total_ms > AGREES * total.ms:
        return None
    rest = total.ms - known.total_ms
    return Ledger(total.basis, total.covers, total.ms, _nonzero({**known.phases, "rest": rest}))


def is_duration(ms: object) -> bool:
    return isinstance(ms, int | float) and not isinstance(ms, bool) and 0 <= ms < 1e15


def _nonzero(phases: dict[str, float]) -> dict[str, float]:
    return {name: ms for name, ms in phases.items() if ms > 0}


def _stated_total(log: Log, segment: Segment) -> Total | None:
    for stated in (segment.end.get("wall_ms"), segment.facts.get("wall_ms")):
        if is_duration(stated) and stated and states_whole_run(segment):
            return Total("wall-clock", "run", float(stated))
    if segment.first_stamp is not None and segment.last_stamp is not None:
        span = (segment.last_stamp - segment.first_stamp) * 1000 + _before_first_stamp(segment)
        if span > 0 and segment.last_stamp > segment.first_stamp:
            return Total("timestamps", "loop", span)
    return _by_own_clock(log, segment)


def states_whole_run(segment: Segment) -> bool:
    """Is the time at the end that of the whole run? If a run was resumed, some trainers state the
    time since then, and divide the loss since then by all steps: that mean lies below every loss.
    Or the evaluations alone have taken longer."""
    wall_ms, mean = finite(segment.end.get("wall_ms")), finite(segment.end.get("train_loss"))
    if wall_ms and segment.evals_ms > AGREES * wall_ms:
        return False
    losses = segment.table.column("loss")
    losses = losses[np.isfinite(losses)]
    if mean is None or len(losses) < 2:
        return True
    return mean >= 0.9 * float(losses.min()) or float(losses.min()) <= 0


def _by_own_clock(log: Log, segment: Segment) -> Total | None:
    """The time that the trainer's own clock shows. If the log is an excerpt, the time between its
    first and its last line."""
    first, last = segment.first_elapsed, segment.last_elapsed
    if first is None or last is None:
        return None
    is_from_start = has_process_start(segment, is_first=True)
    ms = last.ms if is_from_start else last.ms - first.ms
    covers = "steps" if "eval" in log.format.elapsed_excludes else "loop"
    return Total("clock", covers, ms) if ms > 0 else None


def _known(log: Log, segment: Segment, timing: Timing) -> Known:
    """What the printed times say."""
    if "train_ms" in segment.facts:  # the trainer prints running totals
        val_ms = float(segment.facts.get("val_ms") or 0.0)
        phases = {"step": float(segment.facts["train_ms"]), "eval": val_ms}
        return Known(_nonzero(phases), 0.0, is_whole=True, covers="timed" if val_ms else "steps")
    phases, estimated_ms = _steps(log, segment, timing)
    _add_data_waits(phases, log, segment, timing)
    is_whole = not has_holes(segment)
    covers = "loop"
    if is_by_stamps(segment):
        pass  # the times from timestamps include everything
    elif log.format.times_everything:
        if segment.evals and "step" in phases:
            phases["all"] = phases.pop("step")  # it includes evaluations that nobody timed
    elif log.format.time_holds_eval:
        is_whole &= _charge_unprinted_evals(phases, segment, timing)
    else:
        covers = "timed" if segment.evals_ms else "steps"
        for name, ms in (("eval", segment.evals_ms), ("checkpoint", segment.saves_ms)):
            if ms:
                phases[name] = phases.get(name, 0.0) + ms
    return Known(_nonzero(phases), estimated_ms, is_whole, covers)


def _steps(log: Log, segment: Segment, timing: Timing) -> tuple[dict[str, float], float]:
    """The phases inside the printed times, and the time estimated for unprinted iterations."""
    table = segment.table
    if not table.num_times and not is_by_stamps(segment):
        return {}, 0.0
    sum_ms, num_iters = covered(segment)
    if timing.normal_ms is None or timing.num_iters is None or not segment.has_iter_numbers:
        # If the times include evaluations, they cannot be separated.
        is_mixed = log.format.time_holds_eval and segment.evals
        return {"all" if is_mixed else "step": sum_ms}, 0.0
    phases: dict[str, float] = {}
    estimated_ms = 0.0
    if table.num_times:
        excess = sum(s.weight * s.excess_ms for s in timing.spikes) + timing.faint_ms
        count = max(0, _num_iters(segment, timing) - num_iters)
        estimated_ms = unprinted_iterations(timing, count, num_iters).total_ms
        phases["step"] = max(0.0, sum_ms - excess) + estimated_ms
    else:
        steps = np.diff(table.column("iter"), prepend=np.nan)
        excess = sum(s.excess_ms for s in timing.spikes) + timing.faint_ms
        phases["step"] = max(0.0, float(np.nansum(timing.times * steps)) - excess)
    _charge_spikes(phases, timing)
    return phases, estimated_ms


def covered(segment: Segment) -> tuple[float, int]:
    """The sum of the printed times and the number of iterations that they are about."""
    table = segment.table
    times, window = table.column("time_ms"), windows_of(segment)
    sum_ms, num_iters = table.time_sum_ms, table.num_times
    if len(window) and np.isfinite(times[0]) and not np.isfinite(table.column("window")[0]):
        sum_ms += float((window[0] - 1) * times[0])  # the table counts it as one iteration
        num_iters += round(window[0] - 1)
    return sum_ms, num_iters


def _num_iters(segment: Segment, timing: Timing) -> int:
    """The iterations that a ledger is about: from the first that the first line's mean includes. A
    clock that runs since the start has also seen those before the first line."""
    windows, times = windows_of(segment), segment.table.column("time_ms")
    has_mean = len(windows) > 0 and bool(np.isfinite(times[0]))
    number = (timing.num_iters or 0) + (round(windows[0]) - 1 if has_mean else 0)
    last = segment.last_elapsed
    if last is None or not has_process_start(segment, is_first=True):
        return number
    return max(number, last.iter)


def _add_data_waits(phases: dict[str, float], log: Log, segment: Segment, timing: Timing) -> None:
    # The wait of a slow line is part of its extra time, which has a cause of its own.
    mean_ms = mean_wait_ms(segment, {spike.line for spike in timing.spikes})
    if mean_ms is None or not timing.num_iters:
        return
    waits = mean_ms * max(_num_iters(segment, timing), 1)
    if not log.format.time_holds_data:
        phases["data"] = waits
    elif waits < phases.get("step", 0.0):
        phases["data"] = waits
        phases["step"] -= waits


def _before_first_stamp(segment: Segment) -> float:
    """The part of the first printed iteration that was before the first timestamp."""
    stamps, times = segment.table.column("stamp"), segment.table.column("time_ms")
    rows = np.flatnonzero(np.isfinite(stamps) & np.isfinite(times))
    if not len(rows) or segment.first_stamp is None:
        return 0.0
    since_ms = (stamps[rows[0]] - segment.first_stamp) * 1000
    return float(max(0.0, times[rows[0]] - since_ms)) if rows[0] == 0 else 0.0


def _charge_spikes(phases: dict[str, float], timing: Timing) -> None:
    def charge(name: str, ms: float) -> None:
        phases[name] = phases.get(name, 0.0) + ms

    excess: dict[str, float] = {}
    for spike in timing.spikes:
        explained_ms = spike.weight * (spike.excess_ms - spike.stall_ms)
        excess[spike.cause] = excess.get(spike.cause, 0.0) + explained_ms
        if spike.stall_ms:
            charge("stall", spike.weight * spike.stall_ms)
    for cause, left in excess.items():
        for name, ms in phases_of_excess(cause, left, timing):
            charge(name, ms)
    if timing.faint_ms:
        charge(phase_of_evals(timing), timing.faint_ms)


def phase_of_evals(timing: Timing) -> str:
    """The row for evaluations: with checkpoints, if the two cannot be told apart."""
    return "eval" if timing.eval_ms is not None or not timing.has_saves else "eval+checkpoint"


def phases_of_excess(cause: str, excess_ms: float, timing: Timing) -> Iterator[tuple[str, float]]:
    """The phases of an excess, as far as they can be separated."""
    causes = set(cause.split("+"))
    if "warmup" in causes:
        if timing.warmup_ms is None:
            yield "warmup+eval" if "eval" in causes else "warmup", excess_ms
            return
        is_with_eval = "eval" in causes
        share = max(0.0, excess_ms - (timing.eval_ms or 0.0)) if is_with_eval else excess_ms
        yield "warmup", share
        excess_ms -= share
    if {"eval", "checkpoint"} <= causes:
        if timing.eval_ms is None or timing.save_ms is None:
            yield "eval+checkpoint", excess_ms
        else:
            part = timing.eval_ms / max(timing.eval_ms + timing.save_ms, 1e-9)
            yield "eval", excess_ms * part
            yield "checkpoint", excess_ms * (1 - part)
    elif "eval" in causes:
        yield phase_of_evals(timing), excess_ms
    elif "checkpoint" in causes:
        yield "checkpoint", excess_ms


def _charge_unprinted_evals(phases: dict[str, float], segment: Segment, timing: Timing) -> bool:
    """Add the evaluations whose iteration is not printed. False if their time is unknown."""
    iters = segment.table.column("iter")
    missing = [e for e in segment.evals if e.iter > 0]
    missing = [
        e
        for e, is_printed in zip(missing, np.isin([e.iter for e in missing], iters), strict=True)
        if not is_printed
    ]
    if segment.first_iter is not None and segment.last_iter is not None:
        missing = [e for e in missing if segment.first_iter <= e.iter <= segment.last_iter]
    count, scale = len(missing), 1.0
    if segment.table.is_thinned or len(segment.evals) < segment.num_evals:
        # A printed iteration may have been dropped later, so use the counts made while reading.
        count = max(0, segment.num_evals - segment.num_printed_evals)
        scale = count / max(len(missing), 1)
    if not count:
        return True
    if timing.eval_ms is not None:
        phases["eval"] = phases.get("eval", 0.0) + timing.eval_ms * count
        saves = scale * sum(e.save_line is not None for e in missing)
        if saves and timing.save_ms is not None:
            phases["checkpoint"] = phases.get("checkpoint", 0.0) + timing.save_ms * saves
        return not saves or timing.save_ms is not None
    if timing.boundary_ms is not None:
        both = phases.get("eval+checkpoint", 0.0)
        phases["eval+checkpoint"] = both + timing.boundary_ms * count
        return True
    return False
