"""The columns that a page draws: their names, and what they are where nothing is known.

`FIGURES` is the one list of them: what is kept to be drawn, thinned and sent to a page follows from
it. A chart that needs another column of the log adds it here.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[Any]
Columns = dict[str, Numbers]

EXACT = ("iter", "line")
# In the order in which they are sent: what is looked at first comes first.
FIGURES = ("loss", "time_ms", "step_ms", "mfu", "lr", "grad_norm", "tok_s", "memory_bytes")
DRAWN = (*EXACT, *FIGURES)
PHASE = "phase:"
SUM = "sum:"
NUM = "num"  # how many iterations a row stands for
NUM_LOSSES = "num:loss"  # how many of them have a loss
SUMMED = ("time_ms", "loss")  # beside the phases


def is_phase(name: str) -> bool:
    return name.startswith(PHASE)


def is_sum(name: str) -> bool:
    return name.startswith((SUM, NUM))


def empty_of(name: str) -> float:
    """What stands where nothing is known: for a phase, that no time was spent."""
    return 0.0 if is_phase(name) or is_sum(name) else np.nan


def new_column(name: str, length: int) -> Numbers:
    return np.full(length, empty_of(name), np.float64 if name in EXACT else np.float32)
