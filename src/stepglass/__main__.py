"""The entry point of the `stepglass` command and of `python -m stepglass`."""

import gc
import os
import sys
from contextlib import suppress

from stepglass.cli import main
from stepglass.process import collect_rarely


def process() -> int:
    """Run the command line of this process, and return its exit code."""
    collect_rarely()
    code = main()
    with suppress(OSError):  # any other failure is left to Python's own flush at exit
        try:
            sys.stdout.flush()
        except BrokenPipeError:  # its reader left during a run, which went on to its end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    gc.freeze()  # otherwise Python would run a full garbage collection before it exits
    return code


if __name__ == "__main__":
    sys.exit(process())
