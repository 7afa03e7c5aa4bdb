"""Bits per byte: a loss that does not depend on the tokens, so runs with other tokenizers compare.

The loss is in nats per token. A tokenizer with longer tokens has fewer of them to predict, and a
higher loss for each. The bits that a byte of the text costs can be compared.
"""

import math

from stepglass.units import finite

KEY = "val_bytes_per_token"  # of `data` in the run log's start record


def bits_per_byte(loss: object, bytes_per_token: object) -> float | None:
    """The bits for each byte of text, from a loss in nats per token. None if either is unknown.

    >>> bits_per_byte(math.log(2), 1.0), bits_per_byte(4 * math.log(2), 4.0)
    (1.0, 1.0)
    >>> bits_per_byte(1.5, None)
    """
    nats, length = finite(loss), finite(bytes_per_token)
    if nats is None or length is None or length <= 0:
        return None
    return finite(nats / length / math.log(2))
