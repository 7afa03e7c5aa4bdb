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
from stepglass.measure.records import IterRecord
from stepglass.train.console import Console

RECORD = IterRecord.from_dict({"iter": 500, "loss": 1.90123, "mfu": 0.111})


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_unknown_prints_na():
    stream = io.StringIO()
    Console(stream).iteration(replace(RECORD, mfu=None), 33.238, True, Lap(1, {}))
    assert stream.getvalue() == "iter 500: loss 1.9012, time 33.24ms, mfu n/a\n"


def test_a_terminal_gets_a_bar_with_the_ledger_and_the_time_left(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    console = Console(stream)
    console.start_progress(0, 1000)
    console.iteration(
        RECORD, 33.238, False, Lap(4_000_000, {"forward_backward": 3_000_000, "other": 1_000_000})
    )
    console.say("a line above the bar [not markup]")
    console.stop_progress()
    text = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", stream.getvalue())
    assert "iter 500: loss 1.9012, time 33.24ms, mfu 11.10%   501/1000," in text
    assert "left" in text
    assert "forward_backward 75.0%  other 25.0%" in text
    assert "a line above the bar [not markup]" in text


@pytest.mark.parametrize("kind", ["dumb", "unknown"])
def test_a_terminal_that_cannot_draw_gets_lines(kind, monkeypatch):
    monkeypatch.setenv("TERM", kind)
    stream = Terminal()
    console = Console(stream)
    console.start_progress(0, 1000)
    console.iteration(RECORD, 33.238, True, Lap(1, {}))
    assert stream.getvalue() == "iter 500: loss 1.9012, time 33.24ms, mfu 11.10%\n"


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
    text = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", output.decode())
    assert re.search(r"step 20: train loss \d\.\d{4}, val loss \d\.\d{4}", text)
    assert re.search(r"iter \d+: loss .*/40, .* left", text)
    assert "wall clock" in text
    (end,) = records("end")
    assert end["ledger"]["phases"]["log"] > end["ledger"]["phases"]["other"]  # drawing is billed
