"""Which printed gradient norms are NaN, infinite or zero."""

import numpy as np

from stepglass.explain.study import Part
from stepglass.logs.table import Mask


def bad_norms(part: Part) -> Mask:
    """The rows whose gradient norm is NaN or infinite. The table does not tell NaN from a norm that
    was not printed, so nothing is marked if some rows may lack theirs."""
    norms = part.column("grad_norm")
    is_bad = ~np.isfinite(norms)
    if part.segment.table.is_thinned or int(is_bad.sum()) != part.segment.num_bad_norms:
        return np.zeros(len(norms), bool)
    return np.asarray(is_bad)


def at_the_end(rows: Mask) -> int:
    """How many rows at the end are marked without a gap.

    >>> at_the_end(np.array([True, False, True, True]))
    2
    """
    others = np.flatnonzero(~rows)
    return len(rows) - (int(others[-1]) + 1 if len(others) else 0)
