"""The progress bar in a real terminal, which is resized while a run goes on."""

import random
import re
import time

from helpers import command, prepare_tiny, tiny_args
from processes import wait_until
from terminal import TerminalWindow, keep, terminal_window

EVERY = 10  # iterations between two printed lines
BAR = re.compile(r"━|tokens/s|\d% |\bleft\b")  # any piece of the bar


def printed(lines: list[str]) -> list[int]:
    return [int(line[5 : line.index(":")]) for line in lines if re.match(r"iter \d+:", line)]


def screen_with_bar(window: TerminalWindow, width: int) -> list[str]:
    """What the window shows when the bar has been drawn at this width, and lines have come."""
    for _ in range(2):
        last = printed(window.history())[-1]
        wait_until(lambda last=last: printed(window.history())[-1] > last)
    lines = window.screen()
    keep(str(width), lines)
    return lines


def since_start(lines: list[str]) -> list[str]:
    """The lines after the start-up: those before it may have percentages of their own."""
    starts = [number for number, line in enumerate(lines) if line.startswith("start-up: ")]
    return lines[starts[-1] + 1 :] if starts else lines


def bar_is_below_everything(lines: list[str], width: int) -> bool:
    bar, facts, shares = lines[-3:]
    assert re.fullmatch(r"━+  \d+/1000000, .*left", bar), bar
    assert re.match(r"loss \d\.\d{4}, best val \d\.\d{4}, [\d.]+k? tokens/s", facts), facts
    assert re.match(r"(forward_backward|start-up) \d+%", shares), shares
    is_narrow = all(len(line) <= width for line in lines)
    return is_narrow and not BAR.search("\n".join(since_start(lines[:-3])))


def test_a_window_that_is_dragged_about_keeps_every_line_and_no_piece_of_the_bar():
    """It is resized in the middle of drawings, and before the program is told."""
    prepare_tiny()
    settings = tiny_args(max_iters=1_000_000, eval_interval=200, log_interval=EVERY, compile=False)
    moments = random.Random(1)
    with terminal_window() as window:
        window.start(command("train", *settings), 80)
        wait_until(lambda: printed(window.history()))
        for _ in range(25):
            window.resize(moments.choice([30, 40, 50, 60, 80, 120, 200]))
            time.sleep(moments.uniform(0, 0.1))
        window.resize(100)
        last = printed(window.history())[-1]
        wait_until(lambda: printed(window.history())[-1] > last)
        window.press("C-c")
        wait_until(lambda: "exit code: 0" in window.history())
        window.resize(200)
        lines = window.history()
    end = lines.index("where the time went:")
    assert not [line for line in since_start(lines[:end]) if BAR.search(line)]
    numbers = printed(lines)
    assert numbers == list(range(0, numbers[-1] + 1, EVERY))


def test_the_bar_fits_every_width_and_leaves_nothing_behind():
    prepare_tiny()
    settings = tiny_args(max_iters=1_000_000, eval_interval=200, log_interval=EVERY, compile=False)
    widths = [80, 200, 50, 120, 50, 80]
    with terminal_window() as window:
        window.start(command("train", *settings), widths[0])
        wait_until(lambda: printed(window.history()))
        for width in widths:
            window.resize(width)
            assert bar_is_below_everything(screen_with_bar(window, width), width), width
        window.press("C-c")
        wait_until(lambda: "exit code: 0" in window.history())
        window.resize(200)
        lines = window.history()
    keep("whole-run", lines)
    end = lines.index("where the time went:")
    assert not [line for line in since_start(lines[:end]) if BAR.search(line)]
    numbers = printed(lines)
    assert numbers == list(range(0, numbers[-1] + 1, EVERY))
    assert lines[end + 1].split()[0] == "start-up"
