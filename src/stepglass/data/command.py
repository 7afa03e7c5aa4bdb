"""The `prepare` command: makes a data set from text files."""

import sys
import time
from collections.abc import Callable
from pathlib import Path

from stepglass.data import prepare
from stepglass.data.location import is_missing, is_text
from stepglass.errors import ConfigError
from stepglass.measure.console_lines import data_line
from stepglass.process import StopRequest

USAGE = """\
usage: stepglass prepare NAME|PATH... [--key=value ...]

NAME is shakespeare, tinyshakespeare or pystdlib; PATH is a text file, a folder or a glob. A .jsonl
file has a conversation per line, {"messages": [{"role": ..., "content": ...}]}: then only what the
assistant says counts.
"""
SETTINGS = prepare.PREPARE_SETTINGS
FIRST_AFTER_S, ON_A_TERMINAL_S = 5.0, 0.2  # seconds between two progress reports


def prepare_if_missing(name: str, say: Callable[[str], None], tokens_of: str | None = None) -> str:
    """The name of a data set to train on. A known name that is not prepared yet, and text in a file
    or a folder, is prepared first. `tokens_of` is the run with the tokenizer for it, if the model
    has one already."""
    with_tokens = [f"--tokenizer={tokens_of}"] if tokens_of else []
    if is_missing(name):
        run([name, *with_tokens], say)
    elif is_text(name):
        how = f"with the tokens of {tokens_of}" if tokens_of else "a token per character"
        say(f"preparing {name}, {how}; `stepglass prepare` has other ways")
        return run([name, *with_tokens], say).name
    return name


def run(argv: list[str], say: Callable[[str], None]) -> Path:
    """Prepare a data set and print its size. Returns its folder."""
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
    if "counted" in splits["train"]:
        say(
            f"{meta['source']['conversations']:,} conversations: the loss counts what the "
            f"assistant says, {splits['train']['counted']:,} of the training tokens"
        )
    return done.folder


class ProgressLine:
    """Reports progress: on a terminal in one line that is updated, otherwise as a new line every
    few seconds. It is called after every piece of text, so it also checks for signals."""

    def __init__(self, stop: StopRequest) -> None:
        self._stop = stop
        self._is_terminal = sys.stderr.isatty()
        self._every_s = ON_A_TERMINAL_S if self._is_terminal else FIRST_AFTER_S
        self._next = time.monotonic() + self._every_s
        self._is_shown = False

    def __call__(self, doing: str, done: int, total: int) -> None:
        if self._stop.is_set():
            raise KeyboardInterrupt  # removes the temporary files, as half a data set is useless
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
