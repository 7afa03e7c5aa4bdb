"""The phases that a page can show, in the order in which they are stacked.

`measure/clock.py` defines the phases, and the catalogues have their names (`phase-NAME`). The
position in this order determines the colour (`page.css`). A new phase of the clock needs no entry
here: it is stacked on top of the others.
"""

from typing import Any

from stepglass.measure.clock import PHASES, STEP_PHASES

# The training step is at the bottom, and unattributed time on top. `step`, `stall`, `unattributed`
# and the pairs come from `explain`, for logs without phases.
STACKED = (
    "forward_backward",
    "step",
    "optimizer",
    "data",
    "eval",
    "eval+checkpoint",
    "checkpoint",
    "warmup",
    "warmup+eval",
    "stall",
    "log",
    "gc",
    "other",
    "unattributed",
)
MINOR = ("log", "gc", "other")  # never reported as the cause of a slow iteration


def phases_of_page() -> list[dict[str, Any]]:
    """The data about each phase that the script needs."""
    names = (*STACKED, *(name for name in PHASES if name not in STACKED))
    return [
        {
            "name": name,
            "isStep": name in (*STEP_PHASES, "step"),
            "isMinor": name in MINOR,
        }
        for name in names
    ]
