"""A run as messages to its page: rows of numbers, and what happened between them.

    {"segment": 0, "after": [0, 0, 0, 0], "count": 512,
     "columns": {"iter": {...}, "loss": {...}, "phase:eval": {...}},
     "evals": [[iter, val, standard error, train, ms], ...], "saves": [[iter, stall ms], ...],
     "samples": [[number, iter, text], ...]}

`after` counts what came before: rows, evaluations, checkpoints and events of that segment. A file
holds all messages at once, a live page gets them as they come: it is the same page. Of a log that
hides where its time went, the columns of phases are what `explain` has reconstructed.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from stepglass.explain.output import rounded
from stepglass.explain.spent import parts_of
from stepglass.explain.study import Part
from stepglass.explain.timing import Spike, Timing, times_of
from stepglass.logs.log import Log
from stepglass.logs.segment import Eval, Event, Segment
from stepglass.report.rows import PHASE, AllRows, Numbers

Pack = Callable[[npt.NDArray[Any]], dict[str, str]]
Message = dict[str, Any]

SENT = ("iter", "loss", "time_ms", "step_ms", "mfu", "lr", "grad_norm", "tok_s", "memory_bytes")
LONGEST_SAMPLE = 4000


@dataclass(frozen=True)
class Place:
    """How far into a log something is: how much of its last segment came before it."""

    segment: int = 0
    rows: int = 0
    evals: int = 0
    saves: int = 0
    events: int = 0


def place_of(log: Log) -> Place:
    """The end of what was read."""
    last = log.segments[-1]
    return Place(
        len(log.segments) - 1,
        rows_of(last).num_rows(),
        len(last.evals),
        len(last.saves),
        len(last.events),
    )


def rows_of(segment: Segment) -> AllRows:
    assert isinstance(segment.table, AllRows), "a log that is drawn keeps all its rows"
    return segment.table


def messages(
    log: Log, start: Place, end: Place, pack: Pack, parts: list[Part] | None = None
) -> Iterator[Message]:
    """What was read between two places. `parts`: what `explain` made of it, for a log that is not
    ours."""
    for number in range(start.segment, end.segment + 1):
        segment = log.segments[number]
        here = start if number == start.segment else Place(number)
        there = end if number == end.segment else whole(number, segment)
        columns = rows_of(segment).slice(here.rows, there.rows)
        if parts is not None and not segment.phases and "time_ms" in columns:
            columns = {**columns, **reconstructed(parts[number], columns)}
        yield {
            "segment": number,
            "after": [here.rows, here.evals, here.saves, here.events],
            "resumes": is_resumed(log, number),
            "count": there.rows - here.rows,
            "columns": {
                name: pack(columns[name])
                for name in sorted(columns, key=urgency)
                if is_sent(name, columns[name])
            },
            "evals": [eval_row(e) for e in segment.evals[here.evals : there.evals]],
            "saves": [
                [s.iter, rounded(s.time_ms)] for s in segment.saves[here.saves : there.saves]
            ],
            "samples": [
                [number, *sample]
                for number, event in enumerate(
                    segment.events[here.events : there.events], here.events
                )
                if (sample := sample_of(event)) is not None
            ],
        }


def urgency(name: str) -> int:
    """What is looked at first comes first."""
    return SENT.index(name) if name in SENT else len(SENT)


def eval_row(done: Eval) -> list[Any]:
    figures = (done.val, done.val_se, done.train_loss, done.time_ms)
    return [done.iter, *(rounded(figure) for figure in figures)]


def whole(number: int, segment: Segment) -> Place:
    rows = rows_of(segment).num_rows()
    return Place(number, rows, len(segment.evals), len(segment.saves), len(segment.events))


def is_sent(name: str, column: Numbers) -> bool:
    """A column with something in it."""
    if name.startswith(PHASE):
        return bool(column.any())
    return name == "iter" or (name in SENT and bool(np.isfinite(column).any()))


def is_resumed(log: Log, number: int) -> bool:
    """Does a segment go on where the one before was, rather than begin anew?"""
    if number == 0:
        return False
    segment, before = log.segments[number], log.segments[number - 1]
    stated = segment.facts.get("init_from") or segment.setting("init_from")
    if stated is not None:
        return bool(stated == "resume")
    return (segment.first_iter or 0) > (before.first_iter or 0)


def sample_of(event: Event) -> list[Any] | None:
    """Text that the model wrote, where a run keeps it."""
    detail = event.record.get("detail")
    text = detail.get("text") if isinstance(detail, dict) else None
    if event.name != "sample" or not isinstance(text, str):
        return None
    return [event.iter if type(event.iter) is int else None, text[:LONGEST_SAMPLE]]


def reconstructed(part: Part, columns: dict[str, Numbers]) -> dict[str, Numbers]:
    """Each row's time, split into an ordinary step and what `explain` found beside it."""
    times = columns["time_ms"]
    if not np.isfinite(times).any():
        times = stamped_times(part, len(times))
    step = np.where(np.isfinite(times), times, 0.0)
    phases = {"step": step}
    lines = columns["line"]
    for spike in part.timing.spikes:
        row = int(np.searchsorted(lines, spike.line))
        if row == len(lines) or lines[row] != spike.line:
            continue
        step[row] = max(0.0, step[row] - spike.excess_ms)
        for name, ms in spent_on(spike, part.timing):
            phases.setdefault(name, np.zeros(len(step)))[row] += ms
    result = {PHASE + name: column.astype(np.float32) for name, column in phases.items()}
    return {**result, "time_ms": times.astype(np.float32)}


def spent_on(spike: Spike, timing: Timing) -> Iterator[tuple[str, float]]:
    if spike.stall_ms:
        yield "stall", spike.stall_ms
    yield from parts_of(spike.cause, spike.excess_ms - spike.stall_ms, timing)


def stamped_times(part: Part, count: int) -> Numbers:
    """From the timestamps, where no time is printed and no row was thinned out."""
    times = times_of(part.segment)
    return times if len(times) == count else np.full(count, np.nan)
