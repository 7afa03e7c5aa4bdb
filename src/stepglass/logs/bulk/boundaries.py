"""Evaluations and checkpoints of a segment: which iteration each belongs to, and how many are kept.

    add_boundaries(segment, block)  # add those of a block that was decoded at once
    limit(segment)
    share_room(segments)            # when a new run starts: limit all segments together

If a log has too many of them, every second one is dropped, as with iterations. Their number and
total time always include the dropped ones.
"""

import operator
from array import array
from collections import Counter

import numpy as np
import numpy.typing as npt

from stepglass.logs.bulk.nanogpt_lines import LineBlock
from stepglass.logs.segment import MOST_EVENTS, Eval, Save, Segment
from stepglass.logs.table import halve_largest

LineNumbers = npt.NDArray[np.int64]
EVAL_COLUMNS = ("line", "iter", "train_loss", "val_loss")
MOST_ITERS = 1 << 17  # boundaries of one segment whose iteration is kept
MOST_STEPS = 1000  # different distances between two evaluations
ALL_SEGMENTS = 4  # all segments together keep at most this many times the limit of one


def add_boundaries(segment: Segment, block: LineBlock) -> None:
    """Add the evaluations and checkpoints of a block.

    A checkpoint belongs to the evaluation before it, which may be in the previous block. If
    iterations were printed in between, it belongs to the last of those instead.
    """
    before = segment.evals[-1:]
    none = np.empty(0)
    columns = block.evals or dict.fromkeys(EVAL_COLUMNS, none)
    lines = np.concatenate([[e.line for e in before], columns["line"]]).astype(np.int64)
    iters = np.concatenate([[e.iter for e in before], columns["iter"]]).astype(np.int64)
    saves = np.array(block.saves, np.int64)
    owners = np.searchsorted(lines, saves) - 1
    passed, passed_lines = iterations_before(saves, segment, block)
    is_owned = owners >= 0
    if len(lines):
        is_owned &= (iters[owners] >= passed) | (lines[owners] > passed_lines)
    saved = passed.copy()
    saved[is_owned] = iters[owners[is_owned]]
    is_new = np.diff(saved, prepend=segment.save_iters[-1] if segment.save_iters else -1) != 0
    is_new |= saved < 0  # the iteration is not known
    saves, owners, saved, is_owned = (some[is_new] for some in (saves, owners, saved, is_owned))
    save_lines = np.zeros(len(lines), np.int64)
    save_lines[owners[is_owned]] = saves[is_owned]
    if before and save_lines[0]:
        before[0].save_line = int(save_lines[0])
    segment.num_printed_evals += _num_printed(block.iters, iters)
    note_evals(segment, iters[len(before) :].tolist())
    note_saves(segment, saved[saved >= 0].tolist())
    segment.num_saves += len(saved)
    if block.evals:
        kept = set(range(0, len(columns["line"]), segment.eval_stride))
        kept |= {int(columns["val_loss"].argmin()), len(columns["line"]) - 1}
        rows = sorted(kept)
        figures = [columns[name][rows].tolist() for name in ("train_loss", "val_loss")]
        places = np.array(rows) + len(before)
        marks = [some[places].tolist() for some in (lines, iters, save_lines)]
        segment.evals += [
            Eval(line, i, train, val, save_line=save or None)
            for line, i, save, train, val in zip(*marks, *figures, strict=True)
        ]
    some = slice(None, None, segment.save_stride)
    segment.saves += [
        Save(line, i if i >= 0 else None)
        for line, i in zip(saves[some].tolist(), saved[some].tolist(), strict=True)
    ]


def iterations_before(
    lines: LineNumbers, segment: Segment, block: LineBlock
) -> tuple[LineNumbers, LineNumbers]:
    """The last iteration printed before each line, and its line number; -1 if there is none."""
    known = (segment.last_iter, segment.last_line)
    first = [-1 if number is None else number for number in known]
    printed = block.lines.numbers + block.first_line
    places = np.searchsorted(printed, lines)
    passed = np.concatenate([first[:1], block.iters])[places].astype(np.int64)
    return passed, np.concatenate([first[1:], printed])[places].astype(np.int64)


def _num_printed(printed: npt.NDArray[np.float64], evals: LineNumbers) -> int:
    """How many evaluations have a printed iteration. Both arrays are sorted."""
    places = np.minimum(np.searchsorted(printed, evals), len(printed) - 1)
    return int(np.count_nonzero(printed[places] == evals))


def note_evals(segment: Segment, iters: list[int]) -> None:
    """Record an evaluation at each of these iterations."""
    segment.num_evals += len(iters)
    known = [*segment.eval_iters[-1:], *iters]
    for step, count in Counter(map(operator.sub, known[1:], known)).items():
        is_kept = step in segment.eval_steps or len(segment.eval_steps) < MOST_STEPS
        if step > 0 and is_kept:
            segment.eval_steps[step] += count
    segment.eval_iters.extend(iters)
    segment.eval_iters = _bounded(segment, segment.eval_iters, MOST_ITERS)


def note_saves(segment: Segment, iters: list[int]) -> None:
    """Record a checkpoint at each of these iterations."""
    segment.save_iters.extend(iters)
    segment.save_iters = _bounded(segment, segment.save_iters, MOST_ITERS)


def _bounded(segment: Segment, iters: "array[int]", most: int) -> "array[int]":
    """At most `most` iterations. Boundaries are looked up only for kept rows and for iterations
    that are still to be printed. The others are dropped first, then the oldest."""
    if len(iters) <= most:
        return iters
    numbers = np.array(iters, np.int64)
    needed = np.isin(numbers, segment.table.column("iter")) | (
        numbers > (-1 if segment.last_iter is None else segment.last_iter)
    )
    needed[-1] = True
    return array("q", numbers[needed][-(most // 2) :].tobytes())


def limit(segment: Segment, most: int | None = None) -> None:
    """Drop every second evaluation and checkpoint of a very long log until they fit the limit. The
    best and the last evaluation always stay."""
    most = segment.table.most_notes if most is None else most
    while len(segment.evals) > max(most, 4):
        best = min(segment.evals, key=lambda e: e.val if e.val is not None else np.inf)
        last = segment.evals[-1]
        segment.evals = [
            e for i, e in enumerate(segment.evals) if i % 2 == 0 or e is best or e is last
        ]
        segment.eval_stride *= 2
    while len(segment.saves) > most:
        segment.saves = segment.saves[::2]
        segment.save_stride *= 2


def share_room(segments: list[Segment]) -> None:
    """Limit the memory of all segments together by thinning the longest."""
    if not segments:
        return
    tables = [segment.table for segment in segments]
    type(tables[0]).share_room(tables)
    most = tables[0].most_notes
    halve_largest(segments, _num_notes, limit, ALL_SEGMENTS * most)
    halve_largest(segments, _num_events, Segment.limit_events, ALL_SEGMENTS * MOST_EVENTS)
    for segment in segments:
        segment.eval_iters = _bounded(segment, segment.eval_iters, most)
        segment.save_iters = _bounded(segment, segment.save_iters, most)


def _num_notes(segment: Segment) -> int:
    return len(segment.evals) + len(segment.saves)


def _num_events(segment: Segment) -> int:
    return len(segment.events)
