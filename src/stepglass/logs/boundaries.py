"""Evaluations and checkpoints of a segment: which iteration each belongs to, and how many are kept.

    add_boundaries(segment, block)  # those of a block that was read at once
    limit(segment)

A log may hold more of them than memory should: then every second one is kept, as of iterations.
"""

import numpy as np
import numpy.typing as npt

from stepglass.logs.fast import Block
from stepglass.logs.segment import Eval, Save, Segment

Lines = npt.NDArray[np.int64]
EVAL_COLUMNS = ("line", "iter", "train_loss", "val_loss")


def add_boundaries(segment: Segment, block: Block) -> None:
    """The evaluations and checkpoints of a block. A checkpoint belongs to the evaluation before it,
    which may be the last of the block before, or, if iterations have passed since, to the last of
    those."""
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
    is_new |= saved < 0  # it is not known of which iteration
    saves, owners, saved, is_owned = (some[is_new] for some in (saves, owners, saved, is_owned))
    save_lines = np.zeros(len(lines), np.int64)
    save_lines[owners[is_owned]] = saves[is_owned]
    if before and save_lines[0]:
        before[0].save_line = int(save_lines[0])
    segment.eval_iters.extend(iters[len(before) :].tolist())
    segment.save_iters.extend(saved[saved >= 0].tolist())
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


def iterations_before(lines: Lines, segment: Segment, block: Block) -> tuple[Lines, Lines]:
    """The iterations printed last before these lines, and where; -1 before the first of all."""
    known = (segment.last_iter, segment.last_line)
    first = [-1 if number is None else number for number in known]
    printed = block.lines.numbers + block.first_line
    places = np.searchsorted(printed, lines)
    passed = np.concatenate([first[:1], block.iters])[places].astype(np.int64)
    return passed, np.concatenate([first[1:], printed])[places].astype(np.int64)


def limit(segment: Segment) -> None:
    """Half of the evaluations of a very long log will do, but not without the best and the last."""
    most = segment.table.most_notes
    while len(segment.evals) > most:
        best = min(segment.evals, key=lambda e: e.val if e.val is not None else np.inf)
        last = segment.evals[-1]
        segment.evals = [
            e for i, e in enumerate(segment.evals) if i % 2 == 0 or e is best or e is last
        ]
        segment.eval_stride *= 2
    while len(segment.saves) > most:
        segment.saves = segment.saves[::2]
        segment.save_stride *= 2
