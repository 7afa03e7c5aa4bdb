"""Unexplained slow iterations: which lines belong together, are they important, are they regular?

A stall is one or more neighbouring lines that are slow for no reason that the log shows. What is
slow at the start is the start-up; an iteration with more tokens than the others is not a stall.
"""

from typing import NamedTuple

import numpy as np

from stepglass.explain.rules.slow_stretch import SlowStretch, slow_stretch
from stepglass.explain.rules.warm_up import start_up_spikes
from stepglass.explain.study import Part
from stepglass.explain.timing import Spike
from stepglass.logs.table import Mask, Rows, median

KEPT_SPEED = 0.8  # of the usual tokens per second: the iteration was longer, but not slower


class Stall(NamedTuple):
    """Neighbouring slow lines."""

    spikes: list[Spike]

    @property
    def worst(self) -> Spike:
        return max(self.spikes, key=lambda s: s.stall_ms)

    @property
    def iter(self) -> int:
        return self.spikes[0].iter

    @property
    def stall_ms(self) -> float:
        return sum(s.stall_ms for s in self.spikes)

    @property
    def weight(self) -> float:
        """How many stalls it represents, if others were dropped."""
        return max(s.weight for s in self.spikes)


def stalls_of(part: Part) -> list[Stall]:
    """The stalls of a part, in order."""
    start, stretch = start_up_spikes(part), slow_stretch(part)
    spikes = [s for s in part.timing.spikes_of("unexplained") if s not in start]
    is_larger = _has_more_tokens(part)[rows_at_lines(part, [s.line for s in spikes])].tolist()
    spikes = [
        spike
        for spike, has_more in zip(spikes, is_larger, strict=True)
        if not has_more and not _is_within(stretch, spike)
    ]
    printed = part.column("n")[rows_at_lines(part, [s.line for s in spikes])]
    stalls: list[Stall] = []
    for index, spike in enumerate(spikes):
        if index and printed[index] - printed[index - 1] <= 1:
            stalls[-1].spikes.append(spike)
        else:
            stalls.append(Stall([spike]))
    return stalls


def rows_at_lines(part: Part, lines: list[int]) -> Rows:
    """The rows of the table with these line numbers."""
    return np.searchsorted(part.column("line"), np.array(lines, np.float64))


def _has_more_tokens(part: Part) -> Mask:
    """Marks the lines at which the device kept its speed in tokens per second. If such a line is
    slow, its batch had more tokens."""
    rates = part.column("tok_s")
    known = np.isfinite(rates)
    if not known.any():
        return known
    mask: Mask = known & (np.nan_to_num(rates) >= KEPT_SPEED * median(rates[known]))
    return mask


def are_after_boundaries(part: Part, stalls: list[Stall]) -> bool:
    """Is the line after an evaluation or a checkpoint slow as a rule, and are the stalls these
    lines?"""
    after = _rows_after_boundaries(part)
    rows = rows_at_lines(part, [stall.spikes[0].line for stall in stalls])
    if not after.any() or after.mean() > 0.5:  # every other line is one, so it means nothing
        return False
    is_usual = after[rows].sum() >= 0.6 * after.sum()
    return bool(is_usual and after[rows].mean() >= 0.75)


def _rows_after_boundaries(part: Part) -> Mask:
    """Marks the lines that follow an evaluation or a checkpoint. If a line's time includes the
    evaluation, these are the lines after that line."""
    segment, lines = part.segment, part.column("line")
    noted = [e.line for e in segment.evals] + [s.line for s in segment.saves]
    rows = np.diff(np.searchsorted(np.sort(noted), lines), prepend=0) > 0
    if part.format.time_holds_eval:
        rows |= np.isin(lines, [s.line for s in part.timing.spikes_of("eval")])
        rows = np.concatenate([[False], rows[:-1]])
    rows[:1] = False
    return rows


def _is_within(stretch: SlowStretch | None, spike: Spike) -> bool:
    return stretch is not None and stretch.first_line <= spike.line <= stretch.last_line


def total_of(stalls: list[Stall]) -> float:
    return sum(s.weight * s.stall_ms for stall in stalls for s in stall.spikes)


def number_of_stalls(stalls: list[Stall]) -> int:
    return round(sum(stall.weight for stall in stalls))


def is_worth_reporting(part: Part, total_ms: float) -> bool:
    """Did they take at least one second (or as long as 20 ordinary iterations) in total, and at
    least half a percent of the known time?"""
    is_long = total_ms >= 1000 or total_ms >= 20 * (part.timing.normal_ms or 0.0)
    return is_long and not is_below(part, total_ms, 0.005)


def is_below(part: Part, total_ms: float, share: float) -> bool:
    """Is it less than this share of the time that the log accounts for?"""
    ledger = part.timing.ledger
    return ledger is not None and total_ms < share * ledger.total_ms


def regular_spacing(stalls: list[Stall]) -> int | None:
    """The number of iterations between stalls, if it is regular."""
    if len(stalls) < 5:
        return None
    gaps = np.diff([s.iter for s in stalls])
    middle = median(gaps)
    if middle < 2 or float(np.mean(np.abs(gaps - middle) <= 0.2 * middle)) < 0.75:
        return None
    return round(middle / median([s.weight for s in stalls]))
