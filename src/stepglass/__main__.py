"""The entry point of the `stepglass` command and of `python -m stepglass`."""

import gc
import os
import sys
from contextlib import suppress
from typing import TextIO

from stepglass.cli import main
from stepglass.process import collect_rarely


def process() -> int:
    """Run the command line of this process, and return its exit code."""
    collect_rarely()
    code = main()
    # Python flushes both at exit, and would change the exit code if that failed.
    _flush_or_drop(sys.stdout, BrokenPipeError)  # its reader left during a run, which went on
    _flush_or_drop(sys.stderr, OSError)  # a message that cannot be printed is no new error
    gc.freeze()  # otherwise Python would run a full garbage collection before it exits
    return code


def _flush_or_drop(stream: TextIO, reason: type[OSError]) -> None:
    """Flush a stream. If that fails for this reason, what is left of it goes nowhere."""
    with suppress(OSError):  # any other failure is left to Python's own flush at exit
        try:
            stream.flush()
        except reason:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


if __name__ == "__main__":
    sys.exit(process())
