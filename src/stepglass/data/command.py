"""The `prepare` command: text files become a data set."""

import sys
import time
from collections.abc import Callable

from stepglass.data import prepare
from stepglass.errors import ConfigError
from stepglass.measure.console_lines import data_line
from stepglass.process import StopRequest

USAGE = """\
usage: stepglass prepare NAME|PATH... [--key=value ...]

NAME is shakespeare, tinyshakespeare or pystdlib; PATH is a text file, a folder or a glob.
"""
SETTINGS = prepare.PREPARE_SETTINGS
FIRST_AFTER_S, ON_A_TERMINAL_S = 5.0, 0.2  # between two reports of progress


def run(argv: list[str], say: Callable[[str], None]) -> None:
    """Prepare a data set and say what it holds."""
    words, given = SETTINGS.parse(argv)
    if not words:
        raise ConfigError(
            "expected the name of a data set or a text file; try: stepglass prepare shakespeare"
        )
    with StopRequest() as stop:
        progress = ProgressLine(stop)
        done = prepare.prepare(words, SETTINGS.build(given), progress)
        progress.clear()
    for remark in done.notes:
        say(f"note: {remark}")
    splits, meta = done.meta["splits"], done.meta
    say(
        data_line(
            done.folder,
            splits["train"]["tokens"],
            splits["val"]["tokens"],
            meta["vocab_size"],
            meta["tokenizer"]["kind"],
        )
    )


class ProgressLine:
    """How far a preparation is: in place on a terminal, a line now and then elsewhere. It is called
    after every piece of text, so it also looks for a signal."""

    def __init__(self, stop: StopRequest) -> None:
        self._stop = stop
        self._is_terminal = sys.stderr.isatty()
        self._every_s = ON_A_TERMINAL_S if self._is_terminal else FIRST_AFTER_S
        self._next = time.monotonic() + self._every_s
        self._is_shown = False

    def __call__(self, doing: str, done: int, total: int) -> None:
        if self._stop.is_set():
            raise KeyboardInterrupt  # temporary files are removed: half a data set is of no use
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + self._every_s
        text = f"{doing}: {100 * done / max(total, 1):3.0f}% of {total / 1e6:,.1f} MB"
        sys.stderr.write(f"\r{text}" if self._is_terminal else f"{text}\n")
        sys.stderr.flush()
        self._is_shown = self._is_terminal

    def clear(self) -> None:
        if self._is_shown:
            sys.stderr.write("\r" + " " * 60 + "\r")
            sys.stderr.flush()
