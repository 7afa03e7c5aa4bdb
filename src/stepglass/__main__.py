"""The entry point of the `stepglass` command and of `python -m stepglass`."""

import gc
import sys

from stepglass.cli import main
from stepglass.process import collect_rarely


def process() -> int:
    """Run the command line of this process, and return its exit code."""
    collect_rarely()
    code = main()
    gc.freeze()  # otherwise Python would run a full garbage collection before it exits
    return code


if __name__ == "__main__":
    sys.exit(process())
