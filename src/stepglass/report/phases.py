"""The phases that a page can show, in the order in which it stacks them.

A phase is named in `measure/clock.py` and said in the catalogues (`phase-NAME`); the page takes its
colour from its place in this order (`page.css`). A new phase of the clock needs no line here: it is
stacked on top of the others.
"""

from typing import Any

from stepglass.measure.clock import PHASES, STEP_PHASES

# The training step is at the bottom, and what nothing accounts for on top. `step`, `stall`,
# `unattributed` and the pairs are what `explain` finds in logs that name no phases.
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
MINOR = ("log", "gc", "other")  # never what makes an iteration slow


def phases_of_page() -> list[dict[str, Any]]:
    """What the page's script has to know about each phase."""
    names = (*STACKED, *(name for name in PHASES if name not in STACKED))
    return [
        {
            "name": name,
            "isStep": name in (*STEP_PHASES, "step"),
            "isMinor": name in MINOR,
        }
        for name in names
    ]
