"""Iterations are slow for a while in the middle of a run and then normal again."""

from typing import NamedTuple

import numpy as np

from stepglass.explain.finding import Finding
from stepglass.explain.study import Part
from stepglass.logs.table import Column, Mask, Rows, median

LEAST_LINES = 6  # slow lines one after the other, and normal ones before and after them
LEAST_RISE = 1.15  # times the normal iteration
SIGMAS = 4.0
MOST_ELSEWHERE = 0.03  # of the other lines may be slow too
KEPT_RATE = 0.96  # tokens per second, as a fraction of those before
RETURNS = 1.05  # the time after the stretch may be this much longer than before it


class SlowStretch(NamedTuple):
    """The slow lines, from the first to the last."""

    first_line: int
    last_line: int
    first_iter: int
    last_iter: int
    slow_ms: float
    normal_ms: float
    excess_ms: float


def find_slow_stretch(part: Part) -> list[Finding]:
    stretch = slow_stretch(part)
    if stretch is None:
        return []
    noted = [
        e
        for e in part.segment.events
        if e.name == "throttle" and stretch.first_line <= e.line <= stretch.last_line
    ]
    is_long = stretch.excess_ms > 1000
    return [
        Finding(
            "slow-stretch",
            "established",
            "advice" if is_long and stretch.excess_ms > 0.02 * _known_ms(part) else "note",
            {
                "first_iter": stretch.first_iter,
                "end_iter": stretch.last_iter,
                "slow_ms": stretch.slow_ms,
                "normal_ms": stretch.normal_ms,
                "rise_percent": 100 * (stretch.slow_ms / stretch.normal_ms - 1),
                "excess_ms": stretch.excess_ms,
            },
            [stretch.first_line, stretch.last_line, *(e.line for e in noted)],
            [stretch.first_iter, stretch.last_iter],
            variant="throttle" if noted else "plain",
            cost_ms=stretch.excess_ms,
        )
    ]


def slow_stretch(part: Part) -> SlowStretch | None:
    """The longest stretch of slow lines with normal ones on both sides."""
    rows = _comparable_rows(part)
    if len(rows) < 3 * LEAST_LINES:
        return None
    times, iters, lines = part.timing.times[rows], part.column("iter")[rows], part.column("line")
    side = max(LEAST_LINES, len(rows) // 10)
    before, after = median(times[:side]), median(times[-side:])
    normal = max(before, after)
    noise = time_noise(times)
    if normal > RETURNS * min(before, after) + noise:
        return None  # the run did not come back to its first speed
    is_slow = running_medians(times) > max(LEAST_RISE * normal, normal + 3 * noise)
    start, end = _longest_run(is_slow)
    if end - start < LEAST_LINES or start < LEAST_LINES or len(rows) - end < LEAST_LINES:
        return None
    elsewhere = int(is_slow.sum()) - (end - start)
    if elsewhere > MOST_ELSEWHERE * (len(rows) - (end - start)):
        return None  # slow lines are everywhere: this is how the run is
    slow = median(times[start:end])
    outside = np.concatenate([times[:start], times[end:]])
    normal = median(outside)
    is_beyond = slow - normal >= SIGMAS * time_scatter(outside)
    if slow < LEAST_RISE * normal or not is_beyond:
        return None
    if has_kept_its_rate(part, rows[:start], rows[start:end]):
        return None
    num_iters = float(iters[end - 1] - iters[start - 1])
    return SlowStretch(
        int(lines[rows[start]]),
        int(lines[rows[end - 1]]),
        int(iters[start]),
        int(iters[end - 1]),
        slow,
        normal,
        (float(np.mean(times[start:end])) - normal) * num_iters,
    )


def _comparable_rows(part: Part) -> Rows:
    """Rows without an evaluation, checkpoint or start-up. Stalls may be part of the stretch."""
    chosen = part.timing.ordinary & np.isfinite(part.timing.times)
    stalled = [s.line for s in part.timing.spikes_of("unexplained") if s.cause == "unexplained"]
    if len(chosen):
        chosen = chosen | np.isin(part.column("line"), stalled)
    if part.segment.nan_iter is not None:  # updates may be skipped after that
        chosen = chosen & (part.column("iter") < part.segment.nan_iter)
    return np.flatnonzero(chosen)


def time_noise(times: Column) -> float:
    """The standard deviation of a time, from the differences of adjacent ones. So a run that
    becomes slower is not taken for a noisy one."""
    return median(np.abs(np.diff(times))) / 0.954


def time_scatter(times: Column) -> float:
    """The standard deviation of the times about their median. If a run wanders, it is larger than
    the noise."""
    return 1.4826 * median(np.abs(times - median(times)))


def running_medians(times: Column) -> Column:
    """Medians of three adjacent times. A single slow or fast line begins or ends no stretch."""
    inner = np.median(np.stack([times[:-2], times[1:-1], times[2:]]), axis=0)
    return np.concatenate([times[:1], inner, times[-1:]])


def _longest_run(flags: Mask) -> tuple[int, int]:
    """The first and the last position plus one of the longest run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    if not len(edges):
        return 0, 0
    starts, ends = edges[::2], edges[1::2]
    longest = int((ends - starts).argmax())
    return int(starts[longest]), int(ends[longest])


def has_kept_its_rate(part: Part, before: Rows, after: Rows) -> bool:
    """Did the tokens per second stay the same? Then the batches had more tokens."""
    rates = part.column("tok_s")
    early, late = rates[before], rates[after]
    if not np.isfinite(early).any() or not np.isfinite(late).any():
        return False
    return float(np.nanmedian(late)) >= KEPT_RATE * float(np.nanmedian(early))


def _known_ms(part: Part) -> float:
    return part.timing.ledger.total_ms if part.timing.ledger else 0.0
