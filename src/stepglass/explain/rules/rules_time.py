"""Rules about time: boundaries, echoes, warm-up, stalls, drift, and what evaluation costs."""

import math

import numpy as np

from stepglass.explain.finding import MOST_CITED, Change, Finding, nice
from stepglass.explain.study import Part
from stepglass.explain.timing import Spike, number_of
from stepglass.logs.table import median

EVAL_BUDGET = 0.05
SAVE_BUDGET = 0.01
NANOGPT_INTERVAL = (
    2000  # its default: where a log does not show the interval, go no lower than that
)
MTBF_S = 24 * 3600.0  # assumed time between failures of a desktop
AN_HOUR_MS = 3.6e6


def spike_lines(part: Part, spikes: list[Spike]) -> list[int]:
    """The iterations' lines and those of the evaluations and checkpoints before them."""
    spikes = spikes[:MOST_CITED]
    iters = {spike.iter for spike in spikes}
    lines = [spike.line for spike in spikes]
    for evaluation in part.segment.evals:
        if evaluation.iter in iters:
            lines.append(evaluation.line)
            if evaluation.save_line is not None:
                lines.append(evaluation.save_line)
    return lines


def wanted_interval(part: Part) -> int | None:
    """An eval_interval that keeps evaluation, with the checkpoint tied to it, within 5 %."""
    cost, normal = part.timing.boundary_ms or part.timing.eval_ms, part.timing.normal_ms
    if not cost or not normal:
        return None
    return nice(cost / normal * (1 - EVAL_BUDGET) / EVAL_BUDGET)


def eval_share(part: Part) -> float | None:
    """Of the wall clock, once the run is under way."""
    timing = part.timing
    cost = timing.eval_ms if timing.eval_ms is not None else timing.boundary_ms
    boundary = max(cost or 0.0, timing.boundary_ms or 0.0)
    is_auto = part.setting("eval_interval") == "auto"  # its last interval is a shorter one
    if cost and timing.normal_ms and timing.eval_interval and not is_auto:
        return cost / (boundary + timing.eval_interval * timing.normal_ms)
    evals = part.phase_ms("eval", "eval+checkpoint")
    if evals and part.wall_ms and len(part.segment.evals) >= 3:
        return evals / part.wall_ms
    return None


def eval_inside_iteration(part: Part) -> list[Finding]:
    spikes = [s for s in part.timing.spikes_of("eval") if "warmup" not in s.cause]
    spikes = [s for s in spikes if not s.stall_ms] or spikes
    if part.log.format != "nanogpt" or not spikes or not part.timing.normal_ms:
        return []
    largest = max(spikes, key=lambda s: s.excess_ms)
    wanted, now = wanted_interval(part), part.timing.eval_interval
    share = eval_share(part)
    is_costly = share is not None and share > EVAL_BUDGET
    change: Change = {}
    fits = part.max_iters is None or (wanted or 0) <= part.max_iters / 1.5
    is_more = (wanted or 0) > (now or NANOGPT_INTERVAL)
    if wanted and fits and is_more and (is_costly or share is None):
        change = {"eval_interval": wanted}
    saves = [s for s in spikes if "checkpoint" in s.cause]
    return [
        Finding(
            "eval-inside-iteration",
            "supported" if part.timing.has_inferred_evals else "established",
            "note",
            {
                "count": number_of(spikes),
                "iter": largest.iter,
                "time_ms": largest.time_ms,
                "normal_ms": part.timing.normal_ms,
                "excess_ms": largest.excess_ms,
                "times": largest.time_ms / part.timing.normal_ms,
                "eval_ms": part.timing.eval_ms,
                "save_ms": part.timing.save_ms,
                "saves": number_of(saves),
            },
            spike_lines(part, spikes),
            [s.iter for s in spikes],
            change,
            variant=(
                "split"
                if part.timing.eval_ms is not None and part.timing.save_ms is not None and saves
                else "together"
                if saves
                else "eval"
            ),
        )
    ]


def mfu_echo(part: Part) -> list[Finding]:
    if part.log.format != "nanogpt" or not part.mfu.is_replayed or part.mfu.clean is None:
        return []
    table = part.segment.table
    lines, mfu, before = table.column("line"), table.column("mfu"), table.column("prev_mfu")
    slow = [s for s in part.timing.spikes if s.cause != "warmup+eval"]
    rows = np.flatnonzero(np.isin(lines, [s.line for s in slow]) & (mfu < 0.97 * before))
    if not len(rows):
        return []
    worst = int(rows[np.argmin(mfu[rows] / before[rows])])
    return [
        Finding(
            "mfu-echo",
            "established",
            "note",
            {
                "iter": int(table.column("iter")[worst]),
                "before_mfu": float(before[worst]),
                "printed_mfu": float(mfu[worst]),
                "clean_mfu": part.mfu.clean,
                "replayed": part.mfu.num_replayed,
                "error_points": part.mfu.largest_error,
            },
            [int(lines[row]) for row in rows],
            [int(table.column("iter")[row]) for row in rows],
        )
    ]


def warm_up(part: Part) -> list[Finding]:
    spikes = part.timing.spikes_of("warmup")
    if not spikes or part.timing.normal_ms is None:
        return []
    first = spikes[0]
    warmup_ms = part.timing.warmup_ms
    if warmup_ms is not None:  # of this line alone: the next ones may be slow as well
        evaluation = part.timing.eval_ms or 0.0 if "eval" in first.cause else 0.0
        warmup_ms = max(0.0, first.excess_ms - evaluation)
    if warmup_ms is not None and warmup_ms < 0.5 * part.timing.normal_ms:
        variant = "eval"  # all of it is the evaluation
    elif "eval" in first.cause:
        variant = "both" if warmup_ms is not None else "together"
    else:
        variant = "plain"
    change: Change = {}
    is_compiled = part.setting("compile") is True and part.has_ended
    if is_compiled and warmup_ms and part.wall_ms and warmup_ms > 0.5 * part.wall_ms:
        change = {"compile": False}
    return [
        Finding(
            "warm-up",
            "established" if variant != "together" else "supported",
            "advice" if change else "note",
            {
                "iter": first.iter,
                "time_ms": first.time_ms,
                "normal_ms": part.timing.normal_ms,
                "warmup_ms": warmup_ms,
                "eval_ms": part.timing.eval_ms,
            },
            spike_lines(part, spikes),
            [s.iter for s in spikes],
            change,
            variant,
            cost_ms=warmup_ms or 0.0,
        )
    ]


def periodic_stall(part: Part) -> list[Finding]:
    stalls = part.timing.spikes_of("unexplained")
    spacing = regular_spacing(stalls)
    heights = [s.stall_ms for s in stalls]
    total = sum(s.weight * s.stall_ms for s in stalls)
    if spacing is None or not is_worth_a_word(part, total):
        return []
    collected = [e for e in part.segment.events if e.name == "gc"]
    return [
        Finding(
            "periodic-stall",
            "supported" if collected else "hypothesis",
            "advice" if part.wall_ms and total > 0.02 * part.wall_ms else "note",
            {
                "count": number_of(stalls),
                "every": spacing,
                "excess_ms": median(heights),
                "total_ms": total,
            },
            [s.line for s in stalls] + [e.line for e in collected],
            [s.iter for s in stalls],
            variant="gc" if collected else "plain",
            cost_ms=total,
        )
    ]


def is_worth_a_word(part: Part, total_ms: float) -> bool:
    """A second in all, and half a percent of the time."""
    is_long = total_ms >= 1000 or total_ms >= 20 * (part.timing.normal_ms or 0.0)
    return is_long and not (part.wall_ms and total_ms < 0.005 * part.wall_ms)


def regular_spacing(stalls: list[Spike]) -> int | None:
    """Iterations between stalls, if they come like clockwork."""
    if len(stalls) < 5:
        return None
    gaps = np.diff([s.iter for s in stalls])
    middle = median(gaps)
    if middle < 2 or float(np.mean(np.abs(gaps - middle) <= 0.2 * middle)) < 0.75:
        return None
    return round(middle / median([s.weight for s in stalls]))


def unexplained_stall(part: Part) -> list[Finding]:
    stalls = part.timing.spikes_of("unexplained")
    if not stalls or not part.timing.normal_ms or regular_spacing(stalls) is not None:
        return []
    stalls = [s for s in stalls if s.stall_ms > part.timing.normal_ms]
    total = sum(s.weight * s.stall_ms for s in stalls)
    if not is_worth_a_word(part, total):
        return []
    worst = max(stalls, key=lambda s: s.stall_ms)
    near = part.timing.eval_interval if worst.cause == "unexplained" else None
    return [
        Finding(
            "unexplained-stall",
            "established",
            "advice" if part.wall_ms and total > 0.02 * part.wall_ms else "note",
            {
                "count": number_of(stalls),
                "iter": worst.iter,
                "time_ms": worst.time_ms,
                "normal_ms": worst.time_ms - worst.stall_ms,
                "excess_ms": worst.stall_ms,
                "total_ms": total,
                "eval_interval": near,
            },
            [s.line for s in stalls],
            [s.iter for s in stalls],
            variant="grid" if near else "plain",
            cost_ms=total,
        )
    ]


def slowdown(part: Part) -> list[Finding]:
    """The ordinary iteration gets slower and stays so."""
    if part.log.format == "modded-nanogpt":
        return []  # its windows and batches grow by plan
    times, iters = part.timing.times, part.column("iter")
    chosen = np.flatnonzero(part.timing.ordinary & np.isfinite(times))
    if part.segment.nan_iter is not None:
        chosen = chosen[iters[chosen] < part.segment.nan_iter]
    throttled = [e for e in part.segment.events if e.name == "throttle"]
    if len(chosen) < 60:
        return []
    parts = np.array_split(chosen, 10)
    medians = np.array([median(times[p]) for p in parts])
    noise = (part.timing.sigma_ms or 0.0) / math.sqrt(len(parts[0]))
    early, late = float(medians[:3].max()), float(medians[-3:].min())
    first, last = median(medians[:3]), median(medians[-3:])
    if late <= early or last < 1.05 * first or last - first < 6 * noise:
        return []
    jump = int(np.argmax(np.diff(medians)))
    is_step = (medians[jump + 1] - medians[jump]) > 0.6 * (last - first)
    cost = max(0.0, float((times[chosen] - first).sum()))
    scale = (part.timing.num_iters or len(chosen)) / len(chosen)
    return [
        Finding(
            "slowdown",
            "established" if throttled else "supported",
            "advice",
            {
                "first_ms": first,
                "last_ms": last,
                "rise_percent": 100 * (last / first - 1),
                "iter": int(iters[parts[jump + 1][0]]),
            },
            [int(part.column("line")[parts[jump + 1][0]]), int(part.column("line")[chosen[-1]])]
            + [e.line for e in throttled],
            [int(iters[parts[jump + 1][0]]), int(iters[chosen[-1]])],
            variant="throttle" if throttled else "step" if is_step else "drift",
            cost_ms=cost * scale,
        )
    ]


def eval_too_expensive(part: Part) -> list[Finding]:
    share = eval_share(part)
    if share is None or share <= 1.05 * EVAL_BUDGET:
        return []
    is_own = part.log.format == "stepglass"
    wanted = wanted_interval(part)
    now = part.timing.eval_interval
    num, eval_iters = part.segment.num_evals, part.number_setting("eval_iters")
    fewer = 0
    if eval_iters:
        fewer = nice(eval_iters * EVAL_BUDGET * (1 - share) / (share * (1 - EVAL_BUDGET)))
    change: Change = {}
    if wanted and part.max_iters and wanted > part.max_iters / 1.5:  # it would evaluate once
        if fewer >= 2:
            change = {"eval_iters": fewer}
        elif now is None or part.max_iters / 4 > now:
            change = {"eval_interval": nice(part.max_iters / 4)}
    elif wanted and (now is None or wanted > now):
        change = {"eval_interval": wanted}
    spikes = [s for s in part.timing.spikes_of("eval")]
    together = part.timing.eval_ms is None
    total = part.phase_ms("eval", "eval+checkpoint")
    if share - EVAL_BUDGET < 0.01:
        level = "note"
    else:
        level = "advice"
    return [
        Finding(
            "eval-too-expensive",
            "supported" if part.timing.has_inferred_evals else "established",
            level,  # type: ignore[arg-type]
            {
                "eval_share": share,
                "count": num,
                "each_ms": part.timing.eval_ms if not together else part.timing.boundary_ms,
                "normal_ms": part.timing.normal_ms,
                "interval": now,
                "wanted": wanted,
                "fewer_iters": max(1, fewer) if fewer else None,
                "total_ms": total or None,
            },
            spike_lines(part, spikes) or [e.line for e in part.segment.evals],
            [e.iter for e in part.segment.evals],
            change,
            variant="together" if together and not is_own else "plain",
            cost_ms=max(total - EVAL_BUDGET * (part.wall_ms or 0.0), 0.0) or total,
        )
    ]


def checkpoint_interval(part: Part) -> list[Finding]:
    save_ms, wall = part.timing.save_ms, part.wall_ms
    total = part.phase_ms("checkpoint")
    if not wall:
        return []
    if part.log.format == "stepglass" and part.segment.saves:
        save_ms = total / part.segment.num_saves  # waiting for the writer counts in
    if save_ms and total > SAVE_BUDGET * wall and len(part.segment.saves) >= 2:
        wanted_s = math.sqrt(2 * save_ms / 1000 * MTBF_S)
        change: Change = {}
        if part.log.format == "nanogpt":
            saves_all = part.setting("always_save_checkpoint") is not False
            evals = [e for e in part.segment.evals if e.iter > 0]
            if saves_all and len(evals) >= 2 and all(e.save_line for e in evals):
                change = {"always_save_checkpoint": False}
            elif part.timing.normal_ms:
                change = {"eval_interval": nice(save_ms / part.timing.normal_ms * 99)}
        return [
            Finding(
                "checkpoint-interval",
                "established" if part.timing.split_by != "contrast" else "supported",
                "advice",
                {
                    "save_ms": save_ms,
                    "count": part.segment.num_saves,
                    "total_ms": total,
                    "save_share": total / wall,
                    "wanted_ms": wanted_s * 1000,
                },
                [s.line for s in part.segment.saves],
                [s.iter for s in part.segment.saves if s.iter is not None],
                change,
                cost_ms=total,
            )
        ]
    prints_saves = part.log.format in ("nanogpt", "stepglass")
    evaluated = any(e.iter > 0 for e in part.segment.evals)
    is_whole = part.segment.first_iter == 0 and evaluated  # an excerpt says nothing about saves
    has_none = prints_saves and is_whole and not part.segment.saves
    if has_none and wall > AN_HOUR_MS and not part.has_ended:
        line = part.segment.last_line
        return [
            Finding(
                "checkpoint-interval",
                "established",
                "advice",
                {"risk_ms": wall},
                [line] if line else [],
                [part.segment.last_iter] if part.segment.last_iter is not None else [],
                variant="none",
                cost_ms=wall,
            )
        ]
    return []


def last_line_is_eval(part: Part) -> list[Finding]:
    if part.log.format != "nanogpt" or not part.is_last or not part.is_finished:
        return []
    spikes = [s for s in part.timing.spikes if s.line == part.segment.last_line]
    if not spikes or "eval" not in spikes[0].cause or part.segment.last_iter == 0:
        return []
    spike = spikes[0]
    return [
        Finding(
            "last-line-is-eval",
            "supported" if part.timing.has_inferred_evals else "established",
            "note",
            {
                "iter": spike.iter,
                "time_ms": spike.time_ms,
                "normal_ms": part.timing.normal_ms,
                "printed_mfu": part.mfu.printed_last,
                "clean_mfu": part.mfu.clean,
            },
            spike_lines(part, [spike]),
            [spike.iter],
            variant="mfu" if part.mfu.clean is not None and part.mfu.printed_last else "plain",
        )
    ]
