"""The entry point of the `stepglass` command and of `python -m stepglass`."""

import gc
import os
import sys
from contextlib import suppress
from typing import TextIO

from stepglass.cli import main
from stepglass.process import collect_rarely, let_segments_grow


def process() -> int:
    """Run the command line of this process, and return its exit code."""
    collect_rarely()
    let_segments_grow(os.environ)
    code = main()
    # Python flushes both at exit, and would change the exit code if that failed.
    # The reader of stdout may have left during a run, which went on. A message that cannot be
    # printed on stderr is no new error.
    is_flushed = _flush_or_drop(sys.stdout, BrokenPipeError) & _flush_or_drop(sys.stderr, OSError)
    gc.freeze()  # otherwise Python would run a full garbage collection before it exits
    if is_flushed and "torch" in sys.modules:
        os._exit(code)  # Python would take up to two seconds to free what torch has loaded
    return code


def _flush_or_drop(stream: TextIO, reason: type[OSError]) -> bool:
    """Flush a stream. If that fails for this reason, what is left of it goes nowhere. Returns False
    if something is left."""
    with suppress(OSError):  # any other failure is left to Python's own flush at exit
        try:
            stream.flush()
        except reason:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return True
    return False


if __name__ == "__main__":
    sys.exit(process())
