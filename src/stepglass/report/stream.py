"""Makes the messages to a page: rows of numbers, with evaluations, checkpoints and samples.

    {"segment": 0, "after": 17, "count": 512,
     "columns": {"iter": {...}, "loss": {...}, "phase:eval": {...}},
     "evals": [[iter, val, standard error, train, ms, line], ...],
     "saves": [[iter, stall ms, line], ...], "samples": [[line, iter, text], ...]}

A message has the rows of the lines after `after`, and replaces all rows after that line on the
page. A file contains all messages; a live page gets them one by one. Both use the same script. If a
log has no phases, the columns of phases are those that `explain` reconstructed. If there are more
rows than requested, they are thinned (`report/thinning.py`).
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from stepglass.explain.iteration_times import times_of
from stepglass.explain.render.output import rounded
from stepglass.explain.resumed import is_resumed
from stepglass.explain.spent import phases_of_excess
from stepglass.explain.study import Part
from stepglass.explain.timing import Spike, Timing
from stepglass.logs.log import Log
from stepglass.logs.segment import Eval, Event, Save, Segment
from stepglass.report.chart_table import ChartTable, DrawnRows
from stepglass.report.columns import DRAWN, NUM, PHASE, SUM, Columns, Numbers, is_sum
from stepglass.report.thinning import thinned

Pack = Callable[[npt.NDArray[Any]], dict[str, str]]
Message = dict[str, Any]
Noted = TypeVar("Noted", Eval, Save, Event)

LONGEST_SAMPLE = 4000
MOST_SAMPLES = 50  # a page shows no more
LEAST_ROWS = 64  # every segment may have this many rows, even a short one


@dataclass(frozen=True)
class Place:
    """A position in a log: a segment, and the number of lines before the position."""

    segment: int = 0
    line: int = 0


def place_of(log: Log) -> Place:
    """The position after the last line that was read."""
    return Place(len(log.segments) - 1, log.num_lines)


def rows_of(segment: Segment) -> DrawnRows:
    assert isinstance(segment.table, ChartTable), "a log that is drawn keeps its rows"
    return segment.table.drawn


def num_rows(log: Log, start: Place, end: Place) -> int:
    """The number of kept rows between two positions."""
    between = [
        rows_of(segment).between(start.line, end.line)
        for segment in log.segments[start.segment : end.segment + 1]
    ]
    return sum(len(columns.get("iter", ())) for columns in between)


def num_hidden(log: Log) -> int:
    """How many printed iterations were not kept for drawing."""
    return sum(len(segment.table) - len(rows_of(segment)) for segment in log.segments)


def run_messages(
    log: Log,
    start: Place,
    end: Place,
    pack: Pack,
    parts: list[Part] | None = None,
    most: int | None = None,
) -> Iterator[Message]:
    """The messages for the lines between two positions. `parts` is the analysis of `explain` for a
    complete log; a live page has none. `most` is the approximate number of rows to send, or None
    for all."""
    total = num_rows(log, start, end)
    for number in range(start.segment, end.segment + 1):
        segment = log.segments[number]
        columns = rows_of(segment).between(start.line, end.line)
        if most is not None and total > most:
            share = most * len(columns.get("iter", ())) // total
            columns = thinned(columns, max(share, LEAST_ROWS))
        if parts is not None and not segment.phases and "time_ms" in columns:
            columns = {**columns, **reconstructed(parts[number], columns)}
        yield {
            **rows_message(number, start.line, columns, pack, has_lines=parts is None),
            "resumes": is_resumed(log, number),
            "evals": [eval_row(e) for e in _between(segment.evals, start, end)],
            "saves": [save_row(s) for s in _between(segment.saves, start, end)],
            "samples": samples_of(_between(segment.events, start, end)),
        }


def rows_message(number: int, after: int, columns: Columns, pack: Pack, has_lines: bool) -> Message:
    """A message with rows only. A page that gets all rows at once needs no line numbers."""
    names = [name for name in columns if is_sent(name, columns[name], has_lines)]
    return {
        "segment": number,
        "after": after,
        "count": len(columns.get("iter", ())),
        "columns": {name: pack(columns[name]) for name in sorted(names, key=urgency)},
    }


def _between(noted: list[Noted], start: Place, end: Place) -> list[Noted]:
    first = bisect_right(noted, start.line, key=lambda item: item.line)
    return noted[first : bisect_right(noted, end.line, key=lambda item: item.line)]


def urgency(name: str) -> int:
    """A sort key for columns. What people look at first comes first."""
    return DRAWN.index(name) if name in DRAWN else len(DRAWN)


def eval_row(done: Eval) -> list[Any]:
    figures = (done.val, done.val_se, done.train_loss, done.time_ms)
    return [done.iter, *(rounded(figure) for figure in figures), done.line]


def save_row(done: Save) -> list[Any]:
    return [done.iter, rounded(done.time_ms), done.line]


def samples_of(events: list[Event]) -> list[list[Any]]:
    """Sample texts of the model, if the run logs them."""
    samples = [[event.line, *said] for event in events if (said := sample_of(event)) is not None]
    if len(samples) <= MOST_SAMPLES:
        return samples
    # At equal distances, with the first and the last: they show how the model learns.
    places = np.linspace(0, len(samples) - 1, MOST_SAMPLES).round().astype(int)
    return [samples[place] for place in places]


def is_sent(name: str, column: Numbers, has_lines: bool) -> bool:
    """Does the page draw this column, and does it contain data?"""
    if name.startswith(PHASE) or is_sum(name):
        return bool(column.any())
    if name in ("iter", "line"):
        return name == "iter" or has_lines
    return name in DRAWN and bool(np.isfinite(column).any())


def sample_of(event: Event) -> list[Any] | None:
    detail = event.record.get("detail")
    text = detail.get("text") if isinstance(detail, dict) else None
    if event.name != "sample" or not isinstance(text, str):
        return None
    return [event.iter if type(event.iter) is int else None, text[:LONGEST_SAMPLE]]


def reconstructed(part: Part, columns: Columns) -> Columns:
    """The time of each row, split into an ordinary step and the other phases `explain` found."""
    times = columns["time_ms"]
    if not np.isfinite(times).any():
        times = stamped_times(part, len(times))
    phases = _split(part, columns["line"], np.where(np.isfinite(times), times, 0.0), True)
    result = {PHASE + name: column for name, column in phases.items()}
    if NUM in columns:
        sums = _split(part, columns["line"], columns[SUM + "time_ms"].astype(np.float64), False)
        result |= {SUM + PHASE + name: column for name, column in sums.items()}
    return {
        name: column.astype(np.float32) for name, column in {**result, "time_ms": times}.items()
    }


def _split(part: Part, lines: Numbers, times: Numbers, is_own: bool) -> dict[str, Numbers]:
    """Times by phase: of each row alone, or of all iterations that it represents."""
    step = times.copy()
    phases = {"step": step}
    for spike in part.timing.spikes:
        row = int(np.searchsorted(lines, spike.line))
        if row == len(lines) or (is_own and lines[row] != spike.line):
            continue
        weight = 1.0 if is_own else spike.weight
        step[row] = max(0.0, step[row] - weight * spike.excess_ms)
        for name, ms in spent_on(spike, part.timing):
            phases.setdefault(name, np.zeros(len(step)))[row] += weight * ms
    return phases


def spent_on(spike: Spike, timing: Timing) -> Iterator[tuple[str, float]]:
    if spike.stall_ms:
        yield "stall", spike.stall_ms
    yield from phases_of_excess(spike.cause, spike.excess_ms - spike.stall_ms, timing)


def stamped_times(part: Part, count: int) -> Numbers:
    """Times from timestamps, if no row was dropped."""
    times = times_of(part.segment)
    return times if len(times) == count else np.full(count, np.nan)
