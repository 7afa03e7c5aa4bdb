"""The `stepglass` command as a process: `python -m stepglass` is the same."""

import gc
import sys

from stepglass.cli import main


def process() -> int:
    """Run the command line of this process, which ends with it."""
    # torch and a long log are a great many objects, and hardly one in a circle: looking for circles
    # would take a third of a second of every start, and longer when the interpreter ends.
    gc.set_threshold(200_000)
    code = main()
    gc.freeze()
    return code


if __name__ == "__main__":
    sys.exit(process())
