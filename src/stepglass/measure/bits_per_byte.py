"""Bits per byte: the loss in a unit that does not depend on the tokens."""

import math


def bits_per_byte(loss: float, bytes_per_token: float | None) -> float | None:
    """How many bits the model needs for a byte of text. None if the size of a token is unknown.

    >>> bits_per_byte(math.log(2), 4.0), bits_per_byte(1.0, None)
    (0.25, None)
    """
    if not bytes_per_token:
        return None
    return loss / math.log(2) / bytes_per_token
