"""Encodes columns of numbers as text for a page: little-endian, in base64.

In a file they are compressed first. The last bits of each number, which no chart can show, are
cleared. Then the first bytes of all numbers are stored together, then all second bytes, and so on.
The result is deflated. For a live page on the same machine, this would only cost time.
"""

import base64
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

KEPT_BITS = 15  # of the 23 bits of a float32's mantissa: about five significant digits
LEVEL = 1


def as_is(column: npt.NDArray[Any]) -> dict[str, str]:
    """An uncompressed column: 64 bits for counts, 32 bits for measured values."""
    is_exact = column.dtype == np.float64
    data = column.astype("<f8" if is_exact else "<f4").tobytes()
    return {"f64" if is_exact else "f32": base64.b64encode(data).decode()}


def small(column: npt.NDArray[Any]) -> dict[str, str]:
    """A compressed column. Its key differs from that of `as_is`."""
    if column.dtype == np.float64:
        size, data = 8, column.astype("<f8")
        if len(data) > 1 and bool((np.diff(data) == data[1] - data[0]).all()):
            first, step = float(data[0]), float(data[1] - data[0])
            return {"from": repr(first), "step": repr(step)}
    else:
        size, data = 4, with_cleared_bits(column)
    by_weight = data.view(np.uint8).reshape(-1, size).T.tobytes()
    key = "z64" if size == 8 else "z32"
    return {key: base64.b64encode(zlib.compress(by_weight, LEVEL)).decode()}


def with_cleared_bits(column: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """The nearest numbers whose last bits are zero."""
    bits = column.astype("<f4").view("<u4")
    cleared = 23 - KEPT_BITS
    is_number = (bits & 0x7F800000) != 0x7F800000
    near = np.where(is_number, bits + (1 << (cleared - 1)), bits)
    kept: npt.NDArray[np.float32] = (
        (near & ~np.uint32((1 << cleared) - 1)).astype("<u4").view("<f4")
    )
    return kept
