"""nanoGPT's own lines, a block at a time: a million of them in the time of a few passes of memory.

A log is read line by line in general. nanoGPT's lines are so common, and its logs so long, that it
is worth reading them as a matrix. With its digits left out such a line is always the same text;
where that holds, it is known which of its characters end a number, and the digits before those are
weighed by their distance from the end.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from stepglass.logs.source import BLOCK
from stepglass.logs.table import Column, Rows

Places = npt.NDArray[np.intp]

SHAPE = b"iter : loss ., time .ms, mfu .%\n"
STEP_SHAPE = b"step : train loss ., val loss .\n"
SAVING = b"saving checkpoint to "
MOST_DIGITS = 15  # a double holds no more
WORTH_IT = 16
MANY = SHAPE * (2 * BLOCK // len(SHAPE))


class Lines:
    """Lines of one shape, and their numbers.

    `places` are those of all characters that are no digits, `starts` where the lines begin among
    them, `numbers` the lines' own; `ends` are the characters of the shape that end a number or its
    whole part.
    """

    def __init__(
        self,
        data: npt.NDArray[np.uint8],
        places: Places,
        starts: Places,
        numbers: Places,
        ends: tuple[int, ...],
    ) -> None:
        self.numbers = numbers
        self._data = data
        self._after = {end: places[starts + end] for end in ends}
        self._length = {end: self._after[end] - places[starts + (end - 1)] - 1 for end in ends}
        self._num_digits = self._after[ends[-1]] - places[starts] - ends[-1]

    def __len__(self) -> int:
        return len(self.numbers)

    def are_sound(self) -> bool:
        """Has every number digits, few enough, and is there no digit anywhere else?"""
        lengths = list(self._length.values())
        within = all(some.min() > 0 and some.max() <= MOST_DIGITS for some in lengths)
        return within and bool((np.sum(lengths, axis=0) == self._num_digits).all())

    def whole(self, end: int, rows: Rows) -> Column:
        """The digits before the `end`th character of the shape."""
        return self._digits(end, rows)[0]

    def decimal(self, dot: int, rows: Rows) -> Column:
        """A number whose decimal point is the `dot`th character of the shape."""
        fraction, scale = self._digits(dot + 1, rows)
        return self._digits(dot, rows)[0] + fraction / scale

    def _digits(self, end: int, rows: Rows) -> tuple[Column, Column | float]:
        """A number, and the power of ten beyond it."""
        after, length = self._after[end][rows], self._length[end][rows]
        longest, shortest = int(length.max()), int(length.min())
        value = np.zeros(len(after))
        for place in range(longest):
            digit = self._data.take(after - (1 + place), mode="clip") - np.uint8(ord("0"))
            if place >= shortest:
                digit = np.where(place < length, digit, np.uint8(0))
            value += digit * 10.0**place
        return value, 10.0**longest if longest == shortest else np.power(10.0, length)


ALL = slice(None)
ITER_END, LOSS_DOT, TIME_DOT, MFU_DOT = (SHAPE.index(c) for c in (b":", b".,", b".m", b".%"))
ENDS = (ITER_END, LOSS_DOT, LOSS_DOT + 1, TIME_DOT, TIME_DOT + 1, MFU_DOT, MFU_DOT + 1)
STEP_END, TRAIN_DOT, VAL_DOT = (STEP_SHAPE.index(c) for c in (b":", b".,", b".\n"))
STEP_ENDS = (STEP_END, TRAIN_DOT, TRAIN_DOT + 1, VAL_DOT, VAL_DOT + 1)


@dataclass
class Block:
    """What was read at once, and the lines that have to be read one by one. Lines count from
    `first_line`."""

    lines: Lines
    evals: dict[str, Column]  # line, iter, train_loss, val_loss
    saves: list[int]
    slow: list[tuple[int, bytes]]
    num_lines: int
    first_line: int = field(default=0)

    def __len__(self) -> int:
        return len(self.lines)

    @cached_property
    def iters(self) -> Column:
        return self.lines.whole(ITER_END, ALL)

    @cached_property
    def times(self) -> Column:
        return self.lines.decimal(TIME_DOT, ALL)

    def mfu(self, rows: Rows) -> Column:
        return self.lines.decimal(MFU_DOT, rows)

    def take(self, rows: Rows) -> dict[str, Column]:
        """The columns of these rows."""
        return {
            "line": (self.lines.numbers[rows] + self.first_line).astype(np.float64),
            "iter": self.iters[rows],
            "loss": self.lines.decimal(LOSS_DOT, rows),
            "time_ms": self.times[rows],
            "mfu": self.mfu(rows),
        }


def read(block: bytes, first_line: int = 0) -> Block | None:
    """Read a block of whole lines, or None if that is not worth it or not safe."""
    data = np.frombuffer(block, np.uint8)
    places = np.flatnonzero(data - np.uint8(ord("0")) > 9)
    letters = data[places]
    shape = letters.tobytes()
    ends = np.flatnonzero(letters == 10)
    if len(ends) < WORTH_IT:
        return None
    starts = np.concatenate([[0], ends[:-1] + 1])
    is_iter = (ends - starts == len(SHAPE) - 1) & (letters[starts] == SHAPE[0])
    iterations, others = np.flatnonzero(is_iter), np.flatnonzero(~is_iter)
    if len(iterations) < WORTH_IT:
        return None
    steps, saves, slow = [], [], []
    position = 0
    for line, start, end in zip(
        others.tolist(), starts[others].tolist(), ends[others].tolist(), strict=True
    ):
        if shape[position:start] != MANY[: start - position]:  # its length is right
            return None
        position = end + 1
        text = shape[start:position]
        if text == STEP_SHAPE:
            steps.append(line)
        elif text.startswith(SAVING):
            saves.append(first_line + line)
        else:
            before = int(places[start - 1]) + 1 if line else 0
            slow.append((line, block[before : int(places[end])]))
    rest = shape[position : int(ends[-1]) + 1]
    if rest != MANY[: len(rest)]:
        return None
    num_lines = len(ends)
    if not block.endswith(b"\n"):  # the log's last line
        slow.append((num_lines, block[int(places[ends[-1]]) + 1 :]))
        num_lines += 1
    lines = Lines(data, places, starts[iterations], iterations, ENDS)
    chosen = np.array(steps, np.intp)
    step_lines = Lines(data, places, starts[chosen], chosen, STEP_ENDS)
    if not lines.are_sound() or (steps and not step_lines.are_sound()):
        return None
    evals = _evaluations(step_lines, first_line) if steps else {}
    return Block(lines, evals, saves, slow, num_lines, first_line)


def _evaluations(lines: Lines, first_line: int) -> dict[str, Column]:
    """nanoGPT's other line, which may be a tenth of a log."""
    return {
        "line": (lines.numbers + first_line).astype(np.float64),
        "iter": lines.whole(STEP_END, ALL),
        "train_loss": lines.decimal(TRAIN_DOT, ALL),
        "val_loss": lines.decimal(VAL_DOT, ALL),
    }
