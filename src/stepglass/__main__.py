"""`python -m stepglass` is the `stepglass` command."""

import sys

from stepglass.cli import main

if __name__ == "__main__":
    sys.exit(main())
