"""Reads nanoGPT's lines in blocks: a million lines take a few passes over memory.

Most logs are read line by line. nanoGPT's logs are so common and so long that reading them as
columns is worth the effort. Lines that differ only in their digits share a layout, and a log has
few layouts. A pattern finds the positions of the numbers once per layout. The digits are then read
from all lines of the layout at once.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from stepglass.logs.table import Column, RowChoice

Bytes = npt.NDArray[np.uint8]
Places = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]

WHOLE, DECIMAL = rb"(\d{1,15})", rb"(\d{1,9}\.\d{1,6})"  # a double holds 15 digits exactly
ITER = re.compile(b"iter %b: loss %b, time %bms, mfu %b%%" % (WHOLE, DECIMAL, DECIMAL, DECIMAL))
STEP = re.compile(b"step %b: train loss %b, val loss %b" % (WHOLE, DECIMAL, DECIMAL))
NUMBER, LOSS, TIME, MFU = range(4)  # the groups of ITER
TRAIN, VAL = 1, 2  # the groups of STEP after the number
SAVING = b"saving checkpoint to "
SAME_DIGIT = bytes.maketrans(b"123456789", b"000000000")
NEWLINE = 10
WORD = 8  # characters that are compared at once
LONGEST = 200  # longer lines are not nanoGPT's
MOST_LAYOUTS = 8  # layouts per line length; lines with other layouts are read one by one
WORTH_IT = 16
MOST_SLOW = 8  # at most this many lines read one by one for each line read in bulk
ALL = slice(None)


@dataclass(frozen=True)
class LineLayout:
    """The numbers of a line: for each, the positions of its digits and how many are decimals."""

    numbers: tuple[tuple[tuple[int, ...], int], ...]


@lru_cache(maxsize=1024)
def layout_of(text: bytes, pattern: re.Pattern[bytes]) -> LineLayout | None:
    """
    >>> layout_of(b"step 00: train loss 0.00, val loss 0.0", STEP).numbers
    (((5, 6), 0), ((20, 22, 23), 2), ((35, 37), 1))
    """
    found = pattern.fullmatch(text)
    if found is None:
        return None
    numbers = []
    for start, end in map(found.span, range(1, pattern.groups + 1)):
        point = text.find(b".", start, end)
        places = tuple(place for place in range(start, end) if place != point)
        numbers.append((places, end - point - 1 if point >= 0 else 0))
    return LineLayout(tuple(numbers))


@dataclass
class LayoutGroup:
    """The rows of one layout, and their texts as a matrix with one line of text per row."""

    layout: LineLayout
    rows: Places
    texts: Bytes

    def column(self, number: int, rows: RowChoice) -> Column:
        """The layout's `number`th number."""
        places, decimals = self.layout.numbers[number]
        value = self.texts[:, places[0]][rows].astype(np.int64)
        for place in places[1:]:
            value *= 10
            value += self.texts[:, place][rows]
        value -= int("1" * len(places)) * ord("0")  # turns ASCII codes into digits, all at once
        return value / 10.0**decimals


class PatternLines:
    """The lines that match one pattern, and their line numbers."""

    def __init__(self, groups: list[LayoutGroup]) -> None:
        together = np.concatenate([np.empty(0, np.intp), *(group.rows for group in groups)])
        order = np.argsort(together, kind="stable")
        self.numbers = together[order]  # line numbers
        self._groups = groups
        self._ends = np.cumsum([len(group.rows) for group in groups])
        self._order = order

    def __len__(self) -> int:
        return len(self.numbers)

    def column(self, number: int, rows: RowChoice) -> Column:
        """The pattern's `number`th number in these rows."""
        if isinstance(rows, slice):
            parts = [group.column(number, ALL) for group in self._groups]
            return np.concatenate(parts)[self._order][rows]
        wanted = self._order[rows]
        values = np.empty(len(wanted))
        start = 0
        for group, end in zip(self._groups, self._ends.tolist(), strict=True):
            chosen = np.flatnonzero((wanted >= start) & (wanted < end))
            values[chosen] = group.column(number, wanted[chosen] - start)
            start = end
        return values


@dataclass
class LineBlock:
    """The lines that were read in bulk, and those that must be read one by one. The first line of
    the block has the number `first_line`."""

    lines: PatternLines
    evals: dict[str, Column]  # line, iter, train_loss, val_loss
    saves: list[int]
    slow: list[tuple[int, bytes]]
    num_lines: int
    first_line: int = field(default=0)
    windows: ClassVar[float] = 1.0  # every time is that of one iteration

    def __len__(self) -> int:
        return len(self.lines)

    @cached_property
    def iters(self) -> Column:
        return self.lines.column(NUMBER, ALL)

    @cached_property
    def times(self) -> Column:
        return self.lines.column(TIME, ALL)

    def mfu(self, rows: RowChoice) -> Column:
        return self.lines.column(MFU, rows)

    def take(self, rows: RowChoice) -> dict[str, Column]:
        """The columns of these rows."""
        return {
            "line": (self.lines.numbers[rows] + self.first_line).astype(np.float64),
            "iter": self.iters[rows],
            "loss": self.lines.column(LOSS, rows),
            "time_ms": self.times[rows],
            "mfu": self.mfu(rows),
        }


def read_block(block: bytes, first_line: int = 0) -> LineBlock | None:
    """Read a block of whole lines. None if too few of them can be read in bulk."""
    data = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(data == NEWLINE)
    if len(ends) and ends[-1] != len(data) - 1:  # the last line of the log may have no newline
        ends = np.append(ends, len(data))
    if len(ends) < WORTH_IT:
        return None
    starts = np.concatenate([[0], ends[:-1] + 1])
    iterations, steps = [], []
    saves = np.zeros(len(ends), bool)
    slow = np.ones(len(ends), bool)
    for text, rows, texts in _alike(block, starts, ends):
        if layout := layout_of(text, ITER):
            iterations.append(LayoutGroup(layout, rows, texts))
        elif layout := layout_of(text, STEP):
            steps.append(LayoutGroup(layout, rows, texts))
        elif text.startswith(SAVING):
            saves[rows] = True
        else:
            continue
        slow[rows] = False
    lines = PatternLines(iterations)
    # If most lines must be read one by one, the block would only waste memory.
    if len(lines) < max(WORTH_IT, int(slow.sum()) // MOST_SLOW):
        return None
    return LineBlock(
        lines=lines,
        evals=_evaluations(PatternLines(steps), first_line) if steps else {},
        saves=(np.flatnonzero(saves) + first_line).tolist(),
        slow=[(n, block[starts[n] : ends[n]]) for n in np.flatnonzero(slow).tolist()],
        num_lines=len(ends),
        first_line=first_line,
    )


def _alike(block: bytes, starts: Places, ends: Places) -> Iterator[tuple[bytes, Places, Bytes]]:
    """Groups of lines that differ only in their digits: the text with 0 for each digit, the line
    numbers, and the texts. Only lines that begin like nanoGPT's are included."""
    padded = block + bytes(WORD)
    lengths = np.minimum(ends - starts, LONGEST + 1)
    firsts = np.frombuffer(padded, np.uint8)[starts]
    lengths[(firsts != ord("i")) & (firsts != ord("s"))] = 0
    for length in np.flatnonzero(np.bincount(lengths)).tolist():
        if not 0 < length <= LONGEST:
            continue
        rows = np.flatnonzero(lengths == length)
        width = -(-length // WORD) * WORD
        shape = (len(padded) - width + 1, width)
        windows = np.ndarray(shape, np.uint8, padded, strides=(1, 1))  # one per position
        texts = windows[starts[rows]]
        for _ in range(MOST_LAYOUTS):
            text = texts[0, :length].tobytes()
            is_alike = _differ_only_in_digits(texts, text)
            if is_alike.all():
                yield text.translate(SAME_DIGIT), rows, texts
                break
            yield text.translate(SAME_DIGIT), rows[is_alike], texts[is_alike]
            rows, texts = rows[~is_alike], texts[~is_alike]


def _differ_only_in_digits(texts: Bytes, text: bytes) -> Mask:
    """Which texts have a digit wherever `text` has one, and the same characters elsewhere?

    Compares eight characters at a time. The high four bits of c & (c + 6) are those of "0" only if
    c is a digit. Where `text` has no digit, 0 is added instead of 6, which leaves c unchanged.
    """
    is_digit = np.frombuffer(text, np.uint8) - np.uint8(ord("0")) <= 9
    shape = (3, texts.shape[1])
    added, mask, expected = np.zeros(shape, np.uint8)
    added[: len(text)] = np.where(is_digit, 6, 0)
    mask[: len(text)] = np.where(is_digit, 0xF0, 0xFF)
    expected[: len(text)] = np.where(is_digit, ord("0"), np.frombuffer(text, np.uint8))
    words = texts.view(np.uint64)
    differs = np.zeros(len(texts), np.uint64)
    for column, (plus, bits, same) in enumerate(
        zip(*(some.view(np.uint64) for some in (added, mask, expected)), strict=True)
    ):
        word = words[:, column] + plus
        word &= words[:, column]
        word &= bits
        word ^= same
        differs |= word
    is_alike: Mask = differs == 0
    return is_alike


def _evaluations(lines: PatternLines, first_line: int) -> dict[str, Column]:
    """The columns of nanoGPT's `step` lines, which may be a tenth of all lines."""
    return {
        "line": (lines.numbers + first_line).astype(np.float64),
        "iter": lines.column(NUMBER, ALL),
        "train_loss": lines.column(TRAIN, ALL),
        "val_loss": lines.column(VAL, ALL),
    }
