"""The `checkpoint_interval` setting: a number of iterations, a duration, or `auto`."""

import re
from dataclasses import dataclass

from stepglass import units
from stepglass.errors import ConfigError

UNITS_S = {"s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True)
class Interval:
    """How often to save. At most one of the two is set; for `auto`, neither is."""

    iters: int | None = None
    seconds: float | None = None


def parse_interval(value: int | str) -> Interval:
    """Parse a `checkpoint_interval`.

    >>> parse_interval(500), parse_interval("10m").seconds, parse_interval("auto")
    (Interval(iters=500, seconds=None), 600.0, Interval(iters=None, seconds=None))
    """
    if value == "auto":
        return Interval()
    match = re.fullmatch(r"(\d{1,18}(?:\.\d+)?)([smh]?)", str(value))
    if match and match[2] and 0 < float(match[1]) < 1e6:
        return Interval(seconds=float(match[1]) * UNITS_S[match[2]])
    if match and match[1].isdecimal() and not match[2] and int(match[1]) > 0:
        return Interval(iters=int(match[1]))
    raise ConfigError(
        f"checkpoint_interval expects auto, iterations (500) or a duration (90s, 10m, 2h), found "
        f"{units.shown(value)}"
    )
