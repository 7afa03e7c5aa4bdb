"""Where a segment's time went: phases that add up to the wall-clock time.

The wall-clock time is stated in the log, or is the span of its timestamps, or the sum of its
printed times. Time that no line accounts for is `unattributed`. If the time of some evaluations
cannot be known, there is no ledger, because it would be wrong.
"""

from collections.abc import Iterator

import numpy as np

from stepglass.explain.iteration_times import is_by_stamps
from stepglass.explain.timing import Ledger, Timing
from stepglass.logs.log import Log
from stepglass.logs.segment import Segment


def ledger_of(log: Log, segment: Segment, timing: Timing) -> Ledger | None:
    """Phases that add up to the wall-clock time, including the unattributed time."""
    whole = segment.end.get("ledger")
    if isinstance(whole, dict) and isinstance(whole.get("phases"), dict):
        phases = {k: v for k, v in whole["phases"].items() if is_duration(v)}
        return Ledger("run-log", sum(phases.values()), _nonzero(phases))
    if segment.phases:
        return Ledger("run-log", sum(segment.phases.values()), _nonzero(segment.phases))
    phases, estimated_ms, is_whole = _phases(log, segment, timing)
    printed_basis = "estimated" if estimated_ms else "printed"
    known = sum(phases.values())
    wall = _wall(segment)
    if wall is None or wall[1] <= 0:
        return Ledger(printed_basis, known, phases) if known and is_whole else None
    basis, wall_ms = wall
    given = min(max(0.0, known - wall_ms), estimated_ms)
    if known - given > 1.001 * wall_ms:  # the printed times exceed the wall-clock time
        return Ledger(printed_basis, known, phases) if is_whole else None
    if given:  # reduce the time of unprinted iterations, which is only an estimate
        phases["step"] -= given
        known -= given
    phases["unattributed"] = max(0.0, wall_ms - known)
    return Ledger(basis, sum(phases.values()), _nonzero(phases))


def is_duration(ms: object) -> bool:
    return isinstance(ms, int | float) and not isinstance(ms, bool) and 0 <= ms < 1e15


def _nonzero(phases: dict[str, float]) -> dict[str, float]:
    return {name: ms for name, ms in phases.items() if ms > 0}


def _wall(segment: Segment) -> tuple[str, float] | None:
    end_ms = segment.end.get("wall_ms")
    if is_duration(end_ms) and end_ms:
        return "wall-clock", float(end_ms)
    if segment.facts.get("wall_ms"):
        return "wall-clock", float(segment.facts["wall_ms"])
    if segment.first_stamp is not None and segment.last_stamp is not None:
        span = (segment.last_stamp - segment.first_stamp) * 1000 + _before_first_stamp(segment)
        if span > 0:
            return "timestamps", span
    return None


def _phases(log: Log, segment: Segment, timing: Timing) -> tuple[dict[str, float], float, bool]:
    """The phases known from the lines, the estimated part in ms, and whether they are complete."""
    phases: dict[str, float] = {}
    table = segment.table
    if "train_ms" in segment.facts:  # the trainer prints running totals
        val_ms = float(segment.facts.get("val_ms") or 0.0)
        return _nonzero({"step": float(segment.facts["train_ms"]), "eval": val_ms}), 0.0, True
    estimated_ms, is_whole = 0.0, True
    if timing.normal_ms is not None and timing.num_iters is not None and segment.has_iter_numbers:
        if table.num_times:
            excess = sum(s.weight * s.excess_ms for s in timing.spikes)
            estimated_ms = max(0, timing.num_iters - table.num_times) * timing.normal_ms
            phases["step"] = max(0.0, table.time_sum_ms - excess) + estimated_ms
        else:
            steps = np.diff(table.column("iter"), prepend=np.nan)
            excess = sum(s.excess_ms for s in timing.spikes)
            phases["step"] = max(0.0, float(np.nansum(timing.times * steps)) - excess)
        _charge_spikes(phases, timing)
    elif table.num_times and log.format.time_holds_eval and segment.evals:
        # The times include steps and evaluations, which cannot be separated.
        phases["unattributed"] = table.time_sum_ms
    elif table.num_times:
        phases["step"] = table.time_sum_ms
    data = table.column("data_ms")
    if np.isfinite(data).any() and timing.num_iters:
        phases["data"] = float(np.nanmean(data)) * max(timing.num_iters, 1)
    if is_by_stamps(segment):
        pass  # the times from timestamps, charged above, include everything
    elif not log.format.time_holds_eval:
        if segment.evals_ms:
            phases["eval"] = phases.get("eval", 0.0) + segment.evals_ms
        if segment.saves_ms:
            phases["checkpoint"] = phases.get("checkpoint", 0.0) + segment.saves_ms
    else:
        is_whole = _charge_unprinted_evals(phases, segment, timing)
    return _nonzero(phases), estimated_ms, is_whole


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
        is_alone = timing.eval_ms is not None or not timing.has_saves
        yield "eval" if is_alone else "eval+checkpoint", excess_ms
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
