"""The columns that a page draws: their names, and their values for rows without data.

`FIGURES` is the only list of them. It determines which columns are kept, thinned and sent to a
page. A chart that needs another column of the log must add it here.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[Any]
Columns = dict[str, Numbers]

EXACT = ("iter", "line")
# In the order in which they are sent. What people look at first comes first.
FIGURES = ("loss", "time_ms", "step_ms", "mfu", "lr", "grad_norm", "tok_s", "memory_bytes")
DRAWN = (*EXACT, *FIGURES)
PHASE = "phase:"
SUM = "sum:"
NUM = "num"  # how many iterations a row represents
NUM_LOSSES = "num:loss"  # how many of them have a loss
SUMMED = ("time_ms", "loss")  # besides the phases


def is_phase(name: str) -> bool:
    return name.startswith(PHASE)


def is_sum(name: str) -> bool:
    return name.startswith((SUM, NUM))


def empty_of(name: str) -> float:
    """The value for rows without data. For a phase it means that no time was spent."""
    return 0.0 if is_phase(name) or is_sum(name) else np.nan


def new_column(name: str, length: int) -> Numbers:
    return np.full(length, empty_of(name), np.float64 if name in EXACT else np.float32)
