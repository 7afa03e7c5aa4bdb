"""The `stepglass` command as a process: `python -m stepglass` is the same."""

import gc
import sys

from stepglass.cli import main
from stepglass.process import collect_rarely


def process() -> int:
    """Run the command line of this process, which ends with it."""
    collect_rarely()
    code = main()
    gc.freeze()  # the interpreter would search everything once more before it ends
    return code


if __name__ == "__main__":
    sys.exit(process())
