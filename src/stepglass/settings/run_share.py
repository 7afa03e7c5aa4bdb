"""A setting in iterations, or as a share of the run: `500` or `60%`."""

import re

from stepglass.errors import ConfigError
from stepglass.units import shown

SHARE = re.compile(r"(\d{1,3}(?:\.\d{1,6})?)\s?%")


def iters_of(value: int | str, max_iters: int) -> int:
    """The number of iterations in a run of `max_iters`. Raises ValueError.

    >>> iters_of(500, 2000), iters_of("60%", 2000), iters_of("1.9%", 800)
    (500, 1200, 15)
    """
    if isinstance(value, int):
        return value
    match = SHARE.fullmatch(value)
    if match is None or float(match[1]) > 100:
        raise ValueError(value)
    return round(float(match[1]) / 100 * max_iters)


def check_iters(name: str, value: int | str) -> None:
    """Raise ConfigError unless the value is a number of iterations or a share of the run."""
    try:
        iters_of(value, 0)
    except ValueError:
        raise ConfigError(
            f"{name} expects iterations (500) or a share of the run (60%), found {shown(value)}"
        ) from None
