"""What is printed, on a terminal and elsewhere."""

import io
import os
import pty
import re
import subprocess
from dataclasses import replace

import pytest

from helpers import command, prepare_tiny, records, tiny_args
from stepglass.measure.clock import Lap
from stepglass.measure.records import EvalRecord, IterRecord
from stepglass.train.console import Console

RECORD = IterRecord.from_dict({"iter": 500, "loss": 1.90123, "mfu": 0.111, "tokens": 80})
LAP = Lap(4_000_000, {"forward_backward": 3_000_000, "warmup": 1_000_000})


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_unknown_prints_na():
    stream = io.StringIO()
    Console(stream).iteration(replace(RECORD, mfu=None), 33.238, True, Lap(1, {}))
    assert stream.getvalue() == "iter 500: loss 1.9012, time 33.24ms, mfu n/a\n"


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", text)


def bar_of(stream: Terminal, now: list[float] | None = None) -> Console:
    """A console with a bar; its clock says what `now` holds."""
    console = Console(stream, (lambda: now[0]) if now else lambda: 100.0)
    console.start_progress(lambda: 1000, lambda: 42_000.0, best_val_loss=1.7)
    return console


@pytest.fixture
def xterm(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")


def test_a_terminal_gets_a_bar_with_the_ledger_and_the_time_left(xterm):
    stream = Terminal()
    console = bar_of(stream)
    console.iteration(RECORD, 33.238, False, LAP)
    console.say("a line above the bar [not markup] :smile:")
    console.stop_progress()
    text = plain(stream.getvalue())
    assert "501/1000, 50%, 0s so far, 42s left" in text
    assert "loss 1.9012, best val 1.7000, 2.41k tokens/s" in text
    assert "forward_backward 75%  start-up 25%" in text
    assert "a line above the bar [not markup] :smile:\n" in text


def test_the_lines_of_iterations_are_above_the_bar_as_elsewhere(xterm):
    """They wait until the bar is drawn, at most every quarter of a second, or another line comes:
    drawing for each of them would hold up training."""
    stream, now = Terminal(), [100.0]
    console = bar_of(stream, now)
    for number in range(4):
        now[0] += 0.1
        console.iteration(replace(RECORD, iter=number), 33.238, number % 2 == 0, LAP)
    before = plain(stream.getvalue())
    assert re.findall(r"iter \d|\d+/1000", before) == ["iter 0", "1/1000", "iter 2", "4/1000"]
    now[0] += 0.1
    console.iteration(replace(RECORD, iter=4), 33.238, True, LAP)
    assert plain(stream.getvalue()) == before
    console.say("note: another line")
    after = plain(stream.getvalue()).removeprefix(before)
    assert re.findall(r"iter \d|note|\d+/1000", after) == ["iter 4", "note", "4/1000"]


def test_lines_that_wait_are_printed_when_the_bar_goes_away(xterm):
    stream = Terminal()
    console = bar_of(stream)
    for number in range(2):
        console.iteration(replace(RECORD, iter=number), 33.238, True, LAP)
    console.stop_progress()
    assert re.findall(r"iter \d", plain(stream.getvalue())) == ["iter 0", "iter 1"]


def test_the_bar_shows_the_best_evaluation_so_far(xterm):
    stream, now = Terminal(), [100.0]
    console = bar_of(stream, now)
    for val_loss in (1.5, 1.6):
        console.evaluation(EvalRecord.from_dict({"iter": 5, "val_loss": val_loss}))
        now[0] += 1
        console.iteration(RECORD, 33.238, False, LAP)
    assert set(re.findall(r"best val ([\d.]+)", plain(stream.getvalue()))) == {"1.5000"}


def test_a_terminal_that_is_gone_does_not_stop_the_run(xterm):
    class Gone(Terminal):
        def write(self, text: str) -> int:
            raise OSError(5, "Input/output error")

    stream = Terminal()
    console = bar_of(stream)
    stream.write = Gone().write
    console.iteration(RECORD, 33.238, True, LAP)
    console.say("nobody reads this")
    console.stop_progress()


def test_what_is_said_while_something_takes_long_is_above_its_clock(xterm):
    stream = Terminal()
    console = Console(stream)
    with console.waiting("compiling the model"):
        console.say("note: [above] the clock")
    assert "note: [above] the clock\n" in plain(stream.getvalue())
    console.say("and below when it is over")
    assert stream.getvalue().endswith("and below when it is over\n")


@pytest.mark.parametrize("kind", ["dumb", "unknown"])
def test_a_terminal_that_cannot_draw_gets_lines(kind, monkeypatch):
    monkeypatch.setenv("TERM", kind)
    stream = Terminal()
    console = Console(stream)
    console.start_progress(lambda: 1000, lambda: None)
    console.iteration(RECORD, 33.238, True, Lap(1, {}))
    assert stream.getvalue() == "iter 500: loss 1.9012, time 33.24ms, mfu 11.10%\n"


@pytest.mark.long
def test_on_a_real_terminal_training_ends_with_the_ledger_and_no_debris():
    prepare_tiny()
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        command("train", *tiny_args(max_iters=40, eval_interval=20)),
        stdout=follower,
        stderr=follower,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(follower)
    output = b""
    while True:
        try:
            chunk = os.read(leader, 65536)
        except OSError:  # the other end is closed
            break
        if not chunk:
            break
        output += chunk
    os.close(leader)
    assert process.wait() == 0
    text = plain(output.decode())
    assert re.search(r"step 20: train loss \d\.\d{4}, val loss \d\.\d{4}", text)
    assert re.search(r"\d+/40, .* left", text)
    assert re.findall(r"iter (\d+):", text) == [str(number) for number in range(40)]
    assert "wall clock" in text
    (end,) = records("end")
    assert end["ledger"]["phases"]["log"] > end["ledger"]["phases"]["other"]  # drawing is billed
