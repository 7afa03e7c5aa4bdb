"""nanoGPT's lines read by the block are what they are read one by one, whatever is among them."""

import dataclasses
import random
import re

import pytest

from stepglass.logs import detect
from stepglass.logs.bulk import nanogpt_lines
from stepglass.logs.log import Log

COLUMNS = ("n", "line", "iter", "loss", "time_ms", "mfu", "prev_mfu")
ODD = [0, 9, 26, 27, 32, 42, 46, 47, 48, 57, 58, 59, 63, 97, 127, 128, 255]


def iteration(around: random.Random, number: int) -> str:
    took = around.choice([9.99, 10.0, 33.2, 99.99, 100.01, 4400.5]) + around.random()
    loss, mfu = around.uniform(0, 11), around.uniform(0, 50)
    return f"iter {number}: loss {loss:.4f}, time {took:.2f}ms, mfu {mfu:.2f}%"


def boundary(around: random.Random, number: int) -> str:
    train, val = around.uniform(0, 9), around.uniform(0, 9)
    step = f"step {number}: train loss {train:.4f}, val loss {val:.4f}"
    return around.choice([step, step, "saving checkpoint to out", "saving checkpoint to /a b/9"])


def spoiled(around: random.Random, number: int) -> str:
    text = iteration(around, number)
    place = around.randrange(len(text))
    return text[:place] + chr(around.choice(ODD)) + text[place + 1 :]


def odd_one(around: random.Random, number: int) -> str:
    return around.choice(
        [
            spoiled(around, number),
            f"iter {number}: loss nan, time 3.10ms, mfu 1.00%",
            f"iter {number}: loss 1.0000, time 3.10ms, mfu -100.00%",
            f"iter {around.randrange(number + 2)}: loss 2.0, time 1.0ms, mfu 3.0%",
            f"iter {number}: loss 1.23456789, time 12345678901.5ms, mfu 3%",
            "".join(chr(around.choice(ODD)) for _ in range(around.randrange(60))),
            f"tokens per iteration will be: {around.randrange(10**6)}",
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
            "",
        ]
    )


def some_log(around: random.Random, how_odd: float) -> bytes:
    lines, number = [], 0
    for _ in range(around.choice([40, 100, 400])):
        kind = around.random()
        make = odd_one if kind < how_odd else boundary if kind < how_odd + 0.15 else iteration
        lines.append(make(around, number))
        number += around.choice([0, 1, 1, 1, 1, 1, 5])
    return ("\n".join(lines) + around.choice(["\n", ""])).encode()


def read(pieces: list[bytes]) -> Log:
    intake = detect.Intake()
    for piece in pieces:
        intake.feed(piece)
    return intake.log()


def all_of(log: Log) -> list[object]:
    known: list[object] = [log.num_lines, log.num_understood, log.format]
    for segment in log.segments:
        plain = dataclasses.asdict(dataclasses.replace(segment, table=None))
        known.append({k: v for k, v in plain.items() if not k.endswith("_stride")})
        for name in COLUMNS:
            known.append([None if v != v else v for v in segment.table.column(name).tolist()])
    return known


@pytest.mark.parametrize("how_odd", [0.0, 0.02, 0.2])
def test_a_log_reads_the_same_by_the_block_and_by_the_line(how_odd):
    num_quick = 0
    for seed in range(60):
        around = random.Random(seed)
        text = some_log(around, how_odd)
        middle = text.rfind(b"\n", 0, around.randrange(len(text))) + 1
        by_block = read([piece for piece in (text[:middle], text[middle:]) if piece])
        by_line = read([line for line in re.split(rb"(?<=\n)", text) if line])
        assert all_of(by_block) == all_of(by_line), f"seed {seed}"
        num_quick += nanogpt_lines.read_block(text) is not None
    assert num_quick > 50
