"""Slow iterations that no evaluation, checkpoint or start-up explains."""

from stepglass.explain.finding import Finding
from stepglass.explain.iteration_times import log_interval, rows_after
from stepglass.explain.rules.citing import window_at
from stepglass.explain.rules.stall_pattern import (
    Stall,
    are_after_boundaries,
    is_below,
    is_worth_reporting,
    number_of_stalls,
    regular_spacing,
    rows_at_lines,
    stalls_of,
    total_of,
)
from stepglass.explain.study import Part

A_PAUSE_MS = 60_000.0  # so long that the computer may have slept
RARE = 0.5  # of the lines
MORE_MEMORY = 1.02  # times the memory before


def find_unexplained_stall(part: Part) -> list[Finding]:
    stalls, normal_ms = stalls_of(part), part.timing.normal_ms
    if not stalls or not normal_ms or regular_spacing(stalls) is not None:
        return []
    stalls = [s for s in stalls if s.stall_ms > normal_ms]
    total_ms = total_of(stalls)
    if not stalls or not is_worth_reporting(part, total_ms) or are_after_boundaries(part, stalls):
        return []
    longest = max(stalls, key=lambda s: s.stall_ms)
    worst, cause = longest.worst, _cause(part, longest)
    window = window_at(part, worst.line)
    interval = part.timing.eval_interval
    is_off_grid = interval is not None and worst.iter % interval != 0
    is_plain = worst.cause == "unexplained" and window == 1
    step = log_interval(part.column("iter"))
    is_sparse = bool(step and step > 1) and window == 1 and part.format.has_nanogpt_settings
    return [
        Finding(
            "unexplained-stall",
            "supported" if cause in ("boundary", "memory") else "established",
            "note" if is_below(part, total_ms, 0.02) else "advice",
            {
                "count": number_of_stalls(stalls),
                "iter": worst.iter,
                "time_ms": worst.time_ms,
                "normal_ms": max(0.0, worst.time_ms - worst.stall_ms / window),
                "excess_ms": longest.stall_ms,
                "total_ms": total_ms,
                "eval_interval": interval if is_off_grid else None,
                "window": window,
                "num_lines": len(longest.spikes),
                "place": _place(part, longest, is_plain and is_off_grid, window),
                "printed": "some" if is_sparse else "all",
            },
            [s.line for stall in stalls for s in stall.spikes],
            [stall.worst.iter for stall in stalls],
            variant=cause,
            cost_ms=total_ms,
        )
    ]


def _place(part: Part, stall: Stall, is_off_grid: bool, window: int) -> str:
    """What the line's time is about: `window` iterations, `several` lines, or one iteration, which
    may be one at which nanoGPT does not evaluate (`between`)."""
    if window > 1:
        return "window"
    if len(stall.spikes) > 1:
        return "several"
    return "between" if is_off_grid and part.format.evaluates_inside_iteration else "one"


def _cause(part: Part, stall: Stall) -> str:
    """What the log shows at the stall: a recompilation, more memory, or just its length."""
    rows = rows_at_lines(part, [s.line for s in stall.spikes])
    first, last = int(rows[0]), int(rows[-1])
    lines = part.column("line")
    before = lines[first - 1] if first else 0
    events = [e for e in part.segment.events if before < e.line <= lines[last]]
    if any(e.name == "recompile" for e in events):
        return "recompile"
    noted = [e.line for e in part.segment.evals] + [s.line for s in part.segment.saves]
    # Where every other line has one before it, it means nothing.
    is_rare = bool(noted) and rows_after(part.segment, noted).mean() <= RARE
    is_next = any(before < line <= lines[last] for line in noted)
    if is_rare and is_next and not part.format.time_holds_eval:
        return "boundary"
    memory = part.column("memory_bytes")
    if first and memory[last] > MORE_MEMORY * memory[first - 1]:
        return "memory"
    return "pause" if stall.stall_ms >= A_PAUSE_MS else "plain"
