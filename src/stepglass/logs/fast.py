"""nanoGPT's own lines, a block at a time: a million of them in the time of a few passes of memory.

A log is read line by line in general. nanoGPT's ordinary line is so common, and its logs so long,
that it is worth reading it as a matrix. With its digits deleted such a line is always the same
text; where that holds, the digits are weighed by their distance from the end of their number.
"""

from dataclasses import dataclass

import numpy as np

from stepglass.logs.source import BLOCK
from stepglass.logs.table import Column

SHAPE = b"iter : loss ., time .ms, mfu .%\n"
STEP_SHAPE = b"step : train loss ., val loss .\n"
SAVING = b"saving checkpoint to "
DIGITS = b"0123456789"
# What is left of a line: its digits, and an end of line behind each whole or fractional part.
ENDS = bytes.maketrans(b":.,%", b"\n\n\n\n")
NO_PART_OF_A_NUMBER = bytes(c for c in range(256) if c not in b"0123456789:.,%")
NO_PART_OF_A_STEP = bytes(c for c in range(256) if c not in b"0123456789:.,\n")
PARTS = 7  # iter, and two each for loss, time and mfu
STEP_PARTS = 5  # iter, and two each for the losses
MOST_DIGITS = 15  # a double holds no more
WORTH_IT = 16
MANY = SHAPE * (2 * BLOCK // len(SHAPE))


@dataclass
class Block:
    """What was read at once, and the lines that have to be read one by one. Lines count from 0
    within the block."""

    columns: dict[str, Column]  # line, iter, loss, time_ms, mfu
    evals: dict[str, Column]  # line, iter, train_loss, val_loss
    saves: list[int]
    slow: list[tuple[int, bytes]]
    num_lines: int


def read(block: bytes) -> Block | None:
    """Read a block of whole lines, or None if that is not worth it or not safe."""
    shape = block.translate(None, DIGITS)
    letters = np.frombuffer(shape, np.uint8)
    ends = np.flatnonzero(letters == 10)
    if not len(ends):
        return None
    starts = np.concatenate([[0], ends[:-1] + 1])
    is_other = (ends - starts != len(SHAPE) - 1) | (letters[starts] != SHAPE[0])
    slow_lines = np.flatnonzero(is_other).tolist()
    num_lines = len(ends)
    if num_lines - len(slow_lines) < WORTH_IT:
        return None
    position = 0
    for line in slow_lines:  # what stands between two of them has the right length
        start = int(starts[line])
        if shape[position:start] != MANY[: start - position]:
            return None
        position = int(ends[line]) + 1
    last = int(ends[-1]) + 1
    if shape[position:last] != MANY[: last - position]:
        return None
    if not block.endswith(b"\n"):  # the log's last line
        slow_lines.append(num_lines)
        num_lines += 1

    slow, fast = _split(block, slow_lines)
    values = _numbers(fast.translate(ENDS, NO_PART_OF_A_NUMBER), PARTS)
    if values is None or values.shape[1] != num_lines - len(slow):
        return None
    evals, saves, slow = _boundaries(slow)
    is_fast = np.ones(num_lines, bool)
    is_fast[slow_lines] = False
    iteration, loss, loss_part, time, time_part, mfu, mfu_part = values
    columns = {
        "line": np.flatnonzero(is_fast).astype(np.float64),
        "iter": iteration,
        "loss": loss + loss_part,
        "time_ms": time + time_part,
        "mfu": mfu + mfu_part,
    }
    return Block(columns, evals, saves, slow, num_lines)


def _boundaries(
    slow: list[tuple[int, bytes]],
) -> tuple[dict[str, Column], list[int], list[tuple[int, bytes]]]:
    """nanoGPT's other two lines, which may be a tenth of a log, and what is left."""
    steps = [(line, text) for line, text in slow if text.startswith(b"step ")]
    together = b"".join(text + b"\n" for _, text in steps)
    values = None
    if together.translate(None, DIGITS) == STEP_SHAPE * len(steps):
        values = _numbers(together.translate(ENDS, NO_PART_OF_A_STEP), STEP_PARTS)
    if values is None:
        return {}, [], slow
    iteration, train, train_part, val, val_part = values
    evals = {
        "line": np.array([line for line, _ in steps], np.float64),
        "iter": iteration,
        "train_loss": train + train_part,
        "val_loss": val + val_part,
    }
    saves = [line for line, text in slow if text.startswith(SAVING)]
    rest = [item for item in slow if not item[1].startswith((b"step ", SAVING))]
    return evals, saves, rest


def _split(block: bytes, slow_lines: list[int]) -> tuple[list[tuple[int, bytes]], bytes]:
    """The slow lines, and the block with those blanked out."""
    ends = np.flatnonzero(np.frombuffer(block, np.uint8) == 10).tolist()
    ends.append(len(block))
    slow, fast = [], bytearray(block)
    for line in slow_lines:
        start, end = ends[line - 1] + 1 if line else 0, ends[line]
        slow.append((line, block[start:end]))
        fast[start:end] = b" " * (end - start)
    return slow, bytes(fast)


def _numbers(digits: bytes, num_parts: int) -> Column | None:
    """The parts of every line's numbers, one row a part; fractional parts as fractions."""
    data = np.frombuffer(digits, np.uint8)
    ends = np.flatnonzero(data == 10)
    if not len(ends) or len(ends) % num_parts:
        return None
    ends = np.ascontiguousarray(ends.reshape(-1, num_parts).T)
    values = np.zeros(ends.shape)
    before = np.concatenate([[-1], ends[-1, :-1]])
    for part in range(num_parts):
        end = ends[part]
        length = end - before - 1
        before = end
        longest, shortest = int(length.max()), int(length.min())
        if shortest < 1 or longest > MOST_DIGITS:
            return None
        for place in range(longest):
            digit = data.take(end - (1 + place), mode="clip") - np.uint8(ord("0"))
            if place >= shortest:
                digit = np.where(place < length, digit, np.uint8(0))
            values[part] += digit * 10.0**place
        if part and part % 2 == 0:
            values[part] /= 10.0**longest if longest == shortest else 10.0**length
    return values
