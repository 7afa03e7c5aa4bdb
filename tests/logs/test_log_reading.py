"""Any bytes in, lines out: encodings, colours, progress bars, huge files; and whose log it is."""

import io
import json
import random
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from nanogpt_run import Run
from stepglass.cli import main
from stepglass.errors import LogError
from stepglass.logs import detect, lines
from stepglass.logs.bulk import nanogpt_lines
from stepglass.logs.log import MOST_SEGMENTS, Log
from stepglass.logs.table import CAPACITY, ReadBlock, Table

LINES = """\
iter 90: loss 2.5000, time 33.10ms, mfu 11.00%
step 100: train loss 2.3873, val loss 2.4270
saving checkpoint to out
iter 100: loss 2.4199, time 444.84ms, mfu 10.22%
iter 110: loss 2.4000, time 33.00ms, mfu 10.30%
"""


def read(data: bytes | str) -> Log:
    return detect.read_log(io.BytesIO(data if isinstance(data, bytes) else data.encode()), "x.log")


def numbers(log: Log) -> list[tuple[float, float, float]]:
    table = log.segments[0].table
    columns = [table.column(name).tolist() for name in ("iter", "loss", "time_ms")]
    return list(zip(*columns, strict=True))


PLAIN = numbers(read(LINES))


@pytest.mark.parametrize(
    "data",
    [
        LINES.replace("\n", "\r\n").encode(),
        b"\xef\xbb\xbf" + LINES.encode(),
        LINES.encode("utf-16"),
        LINES.encode("utf-16-le"),
        LINES.encode("utf-16-be"),
        LINES.encode("utf-32"),
        LINES.replace("iter", "\x1b[32miter\x1b[0m").encode(),
        LINES.replace("\n", "\0\n").encode(),
        "".join(f"> {line}\n" for line in LINES.splitlines()).encode(),
        "".join(f"[rank0]: {line}\n" for line in LINES.splitlines()).encode(),
        "".join(f"        {line}\n" for line in LINES.splitlines()).encode(),
        "".join(f"- **{line}**  \n" for line in LINES.splitlines()).encode(),
        "".join(f"2026-01-01T10:00:00Z {line}\n" for line in LINES.splitlines()).encode(),
        ("caf\xe9 \xff\n").encode("latin-1") + LINES.encode(),
        b"\xfe\x80 binary \x00\x01\x02\n" + LINES.encode(),
        LINES.rstrip("\n").encode(),
        (" 10%|#   | 1/10\r 20%|##  | 2/10\r" + LINES).encode(),
        "".join(f"{line}\n" * 7 for line in LINES.splitlines()).encode(),
    ],
)
def test_however_a_log_was_captured_it_says_the_same(data):
    log = read(data)
    assert log.format.name == "nanogpt"
    assert len(log.segments) == 1
    assert numbers(log) == PLAIN
    assert [(e.iter, e.val_loss, e.save_line is not None) for e in log.segments[0].evals] == [
        (100, 2.427, True)
    ]


def test_line_numbers_count_from_one_and_count_every_line():
    log = read("hello\n\n" + LINES)
    assert log.segments[0].table.column("line").tolist() == [3, 6, 7]
    assert (log.num_lines, log.num_understood) == (7, 5)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n\n\n",
        b"\x00" * 5000,
        bytes(range(256)) * 300,
        b"no training in here\njust words\n",
        b'print(f"iter {iter_num}: loss {lossf:.4f}, time {dt*1000:.2f}ms")\n',
        b'{"a": 1}\n',
        b"a,b,c\n1,2,3\n",
        b'{"log_history": []}',
        b'{"log_history": [',
        b"iter 5: loss nothing, time unknown\n",
        b"x" * 3_000_000,
    ],
)
def test_a_file_without_training_is_refused_in_a_sentence(data):
    with pytest.raises(LogError, match=r"x\.log: (the file is empty|no line of|the log_history)"):
        read(data)


@pytest.mark.parametrize(
    "line",
    [
        "iter 10: loss 1e999, time 5.0ms",
        "iter 999999999999999: loss 1.0, time 5.0ms",
        "iter " + "9" * 5000 + ": loss 1.0, time 5.0ms",
        "iter 10: loss -1.0, time -5.0ms",
        "iter 10: loss 1.0, time 0.00ms, mfu inf%",
        "step 5: train loss nan, val loss nan",
        "iter 3: " * 8000,
    ],
)
def test_absurd_numbers_break_nothing(line):
    read(LINES + line + "\n" + LINES)


def test_the_fast_way_and_the_slow_way_read_the_same():
    run = Run(num_iters=3000, eval_interval=70, log_interval=1, noise=0.05, val_losses=[4, 3, 3.5])
    together = read(run.text)
    apart = detect.Intake()
    for line in run.text.encode().splitlines(keepends=True):
        apart.feed(line)
    one_by_one = apart.log()
    assert nanogpt_lines.read_block(run.text.encode()) is not None
    for name in ("line", "iter", "loss", "time_ms", "mfu", "prev_mfu", "n"):
        left = together.segments[0].table.column(name)
        right = one_by_one.segments[0].table.column(name)
        np.testing.assert_allclose(left, right, rtol=1e-12, err_msg=name)
    assert together.segments[0].evals == one_by_one.segments[0].evals
    assert [s.line for s in together.segments[0].saves] == [
        s.line for s in one_by_one.segments[0].saves
    ]
    assert together.num_understood == one_by_one.num_understood


@pytest.mark.parametrize(
    "line",
    [
        "iter 5: loss 1.25, time 3.125ms, mfu 7.5%",  # other numbers of decimals
        "iter 123456789012: loss 0.0001, time 99999.99ms, mfu 0.01%",
        "iter 7: loss 123456789.123456, time 0.1ms, mfu 100.00%",  # as many as a double holds
    ],
)
def test_the_fast_way_takes_any_number_of_digits(line):
    block = nanogpt_lines.read_block((line + "\n").encode() * 20)
    assert block is not None
    slow = read(line + "\n")
    for name in ("iter", "loss", "time_ms", "mfu"):
        assert block.take(nanogpt_lines.ALL)[name][7] == slow.segments[0].table.column(name)[0]


@pytest.mark.parametrize(
    "line",
    [
        "12:00 iter 5: loss 1.2500, time 3.12ms, mfu 7.50%",
        "iter 5: loss nan, time 3.12ms, mfu 7.50%",
        "iter 5: loss 1.2500, time 3.12ms",
        "iter : loss ., time .ms, mfu .%",
        "iter 5: loss 1.25.00, time 3.12ms, mfu 7.50%",
        "iter 1111111111111111111: loss 1.2500, time 3.12ms, mfu 7.50%",
        "it2er 5: loss 1.2500, time 3.12ms, mfu 7.50%",
        *(f"iter {c}: loss 1.2500, time 3.12ms, mfu 7.50%" for c in "/:*?x "),
        *(f"iter 5: loss 1.25{c}0, time 3.12ms, mfu 7.50%" for c in "/:*?x "),
        "iter 5: loss 1.25\xff0, time 3.12ms, mfu 7.50%",
        "iter 5: loss 1.2500, time 3.12ms, mfu 7.50&",
    ],
)
def test_the_fast_way_leaves_what_it_cannot_be_sure_of(line):
    ordinary = "iter 5: loss 1.2500, time 3.12ms, mfu 7.50%\n" * 20
    block = nanogpt_lines.read_block((ordinary + line + "\n").encode())
    assert block is None or [text.decode() for _, text in block.slow] == [line]


def test_the_fast_way_reads_lines_of_many_layouts_in_their_order():
    around = random.Random(3)
    lines = []
    for i in range(2000):
        time = around.choice([9.99, 10.01, 123.4, 8.125, 4321.0])
        lines.append(f"iter {i}: loss {around.uniform(0, 20):.3f}, time {time}ms, mfu {i / 7:.2f}%")
        if i % 9 == 0:
            lines.append(f"step {i}: train loss {i / 3:.1f}, val loss 2.5")
        if i % 18 == 0:
            lines.append(f"saving checkpoint to out-{i}")
    text = "\n".join(lines) + "\n"
    log = read(text)
    one_by_one = detect.Intake()
    for line in text.encode().splitlines(keepends=True):
        one_by_one.feed(line)
    expected = one_by_one.log().segments[0]
    segment = log.segments[0]
    for name in ("line", "iter", "loss", "time_ms", "mfu", "prev_mfu", "n"):
        np.testing.assert_array_equal(segment.table.column(name), expected.table.column(name))
    assert segment.evals == expected.evals
    assert [(s.line, s.iter) for s in segment.saves] == [(s.line, s.iter) for s in expected.saves]
    assert list(segment.save_iters) == list(expected.save_iters)


def test_a_checkpoint_belongs_to_the_evaluation_before_it_though_a_block_ends_between():
    ordinary = "".join(f"iter {i}: loss 2.0000, time 3.00ms, mfu 5.00%\n" for i in range(100, 150))
    intake = detect.Intake()
    intake.feed((ordinary + "step 150: train loss 2.0, val loss 2.1\n").encode())
    later = "".join(f"iter {i}: loss 2.0000, time 3.00ms, mfu 5.00%\n" for i in range(150, 200))
    intake.feed(("saving checkpoint to out\n" + later).encode())
    segment = intake.log().segments[0]
    assert [(e.iter, e.save_line) for e in segment.evals] == [(150, 52)]
    assert [(s.line, s.iter) for s in segment.saves] == [(52, 150)]


def test_the_best_and_the_last_of_many_evaluations_are_kept(monkeypatch):
    monkeypatch.setattr(Table, "most_notes", 20)
    losses = [3.0] * 500
    losses[333], losses[499] = 1.5, 2.75
    lines = []
    for i, loss in enumerate(losses):
        lines.append(f"step {i}: train loss 3.0000, val loss {loss:.4f}")
        lines.append(f"iter {i}: loss 3.0000, time 3.00ms, mfu 5.00%")
    text = ("\n".join(lines) + "\n").encode()
    intake = detect.Intake()
    for start in range(0, len(lines), 100):
        intake.feed(b"".join(text.splitlines(keepends=True)[start : start + 100]))
    evals = intake.log().segments[0].evals
    assert len(evals) <= 22
    assert min(evals, key=lambda e: e.val).iter == 333
    assert evals[-1].iter == 499


def test_a_long_log_is_thinned_but_keeps_every_spike_and_all_sums():
    table = Table()
    rows = 5 * CAPACITY
    time = np.full(rows, 10.0)
    time[12345] = 500.0
    block = 1000
    for start in range(0, rows, block):
        part = slice(start, start + block)
        numbers = np.arange(rows, dtype=np.float64)[part]
        columns = {name: numbers for name in ("line", "iter", "loss", "mfu")}
        table.add_block(ReadBlock({**columns, "time_ms": time[part]}))
    assert len(table) == rows
    assert len(table.column("n")) <= CAPACITY
    assert 12345 in table.column("n")
    assert table.time_sum_ms == pytest.approx(time.sum())
    ordinary = table.column("n")[table.column("n") != 12345]
    assert set(np.diff(ordinary)) == {ordinary[1] - ordinary[0]}, "evenly"


@pytest.mark.slow
def test_memory_does_not_grow_with_the_log():
    """A log four times as long may not need more than a fraction more."""

    def peak(repeats: int) -> int:
        lines = b"".join(
            b"iter 1%06d: loss 2.5000, time 33.10ms, mfu 11.00%%\n" % n for n in range(10_000)
        )
        later = (lines.replace(b"iter 1", b"iter %d" % (k + 1)) for k in range(repeats))
        tracemalloc.start()
        detect.read_log(Joined(later), "x.log")
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    assert peak(80) < 1.3 * peak(20)


class Joined:
    """A file made of pieces that are made when they are read."""

    def __init__(self, pieces) -> None:
        self._pieces = pieces

    def read(self, size: int) -> bytes:
        return next(self._pieces, b"")


def test_a_line_without_end_costs_its_start_only():
    endless = iter([b"x" * lines.BLOCK] * 50)
    assert sum(len(block) for block in lines.line_blocks(Joined(endless))) < 4 * lines.BLOCK


def test_runs_in_one_file_become_segments():
    again = LINES.replace("iter 9", "iter 1").replace("2.5000", "3.5000")
    log = read(LINES + again)
    assert len(log.segments) == 2
    assert log.segments[1].first_iter == 10


def test_a_header_between_two_runs_starts_a_segment_with_its_own_settings():
    first = "Overriding: batch_size = 12\ntokens per iteration will be: 768\n"
    second = "tokens per iteration will be: 1,536\nResuming training from out\n"
    log = read(first + LINES + second + LINES)
    assert [s.facts["tokens_per_iter"] for s in log.segments] == [768, 1536]


def test_a_printed_config_file_is_read_as_settings():
    config = (
        "Overriding config with config/x.py:\n# comment\neval_iters = 200\nbatch_size = 5 * 8\n"
    )
    settings = read(config + LINES).segments[0].config
    assert settings == {"eval_iters": 200, "batch_size": 40}


def test_numbers_that_always_go_back_make_few_segments_and_no_fuss():
    countdown = "".join(
        f"iter {n}: loss 2.5000, time 33.10ms, mfu 11.00%\n" for n in range(5000, 0, -1)
    )
    assert len(read(countdown).segments) <= MOST_SEGMENTS


def test_the_settings_of_a_second_run_are_its_own():
    first = "Overriding: max_iters = 1000\ntokens per iteration will be: 768\n" + LINES
    second = "Overriding: max_iters = 9000\ntokens per iteration will be: 768\n" + LINES
    assert [s.config["max_iters"] for s in read(first + second).segments] == [1000, 9000]


def test_a_last_line_of_nothing_but_digits_breaks_nothing():
    run = Run(num_iters=100)
    assert len(read(run.text + "0").segments) == 1


def test_which_iterations_were_boundaries_is_known_however_many_there_are(monkeypatch):
    monkeypatch.setattr(Table, "most_notes", 20)
    run = Run(num_iters=400, eval_interval=5)
    segment = read(run.text).segments[0]
    assert len(segment.evals) <= 21
    assert list(segment.eval_iters) == list(range(0, 400, 5))


@pytest.mark.parametrize(
    "header",
    [
        "Overriding: batch_size = 1e300 * 1e300",
        "Overriding: batch_size = 1e300\nOverriding: block_size = 1e300",
        "Overriding: eval_iters = -5",
        "Overriding: max_iters = 1e999",
        "tokens per iteration will be: " + "9" * 400,
    ],
)
def test_absurd_settings_are_no_settings(header, capsys):
    Path("x.log").write_text(header + "\n" + Run(num_iters=120).text)
    assert main(["explain", "x.log", "--json", "--lang=en"]) == 0
    json.loads(capsys.readouterr().out)


def test_a_file_that_never_becomes_a_log_is_not_held_in_memory(monkeypatch):
    monkeypatch.setattr(detect, "MOST_WAITING", 100)
    intake = detect.Intake()
    for _ in range(50):
        intake.feed(b"nothing of interest\n" * 100)
    assert len(intake._waiting) <= 1100


@pytest.mark.slow
@pytest.mark.slow
def test_the_last_finite_loss_is_the_one_before_the_first_that_is_none():
    run = Run(num_iters=60_000, eval_interval=100_000, losses={50: "nan"})
    segment = read(run.text).segments[0]
    assert (segment.nan_iter, segment.last_finite[1]) == (50, 49)


def test_what_is_read_late_is_what_would_have_been_read_early():
    """Of a long log most rows are never read whole: those that are kept must be the right ones."""
    lines = CAPACITY * 2 + 500
    text = "".join(
        f"iter {i}: loss {i % 997}.5, time 10.25ms, mfu {i % 89}.25%\n" for i in range(lines)
    )
    table = read(text).segments[0].table
    kept = table.column("iter")
    assert 1000 < len(kept) < lines
    np.testing.assert_array_equal(table.column("n"), kept)
    np.testing.assert_array_equal(table.column("loss"), kept % 997 + 0.5)
    np.testing.assert_array_equal(table.column("mfu"), kept % 89 + 0.25)
    np.testing.assert_array_equal(table.column("prev_mfu")[1:], (kept[1:] - 1) % 89 + 0.25)
    np.testing.assert_array_equal(table.column("line"), kept + 1)


def test_a_block_of_which_nothing_is_kept_is_still_counted():
    table = Table()
    table._stride = 1000

    def block(size: int, start: int) -> ReadBlock:
        numbers = np.arange(start, start + size, dtype=np.float64)
        return ReadBlock({name: numbers for name in ("line", "iter", "loss", "mfu", "time_ms")})

    for start in range(0, 1010, 10):
        table.add_block(block(10, start))
    assert len(table) == 1010
    assert table.column("n").tolist() == [0, 1000]
    assert table.column("prev_mfu")[1] == 999


def test_a_log_that_grows_line_by_line_for_very_long_can_be_read(monkeypatch):
    monkeypatch.setattr("stepglass.logs.table.CAPACITY", 64)
    intake = detect.Intake()
    for start in range(0, 6000, 20):
        text = "".join(
            f"iter {i}: loss 2.5, time 10.25ms, mfu 3.25%\n" for i in range(start, start + 20)
        )
        intake.feed(text.encode())
    assert len(intake.log().segments[0].table) == 6000
