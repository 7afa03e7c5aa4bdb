"""Formats numbers with units, and makes text from outside safe to print.

All numbers with a unit are formatted here. An unknown number is `None` and is printed as `n/a`,
never as 0 or infinity.
"""

import math
import re
import reprlib
from typing import Any

UNKNOWN = "n/a"
# Control characters except newline and tab, and marks that change the direction of writing.
UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
LINE_ENDS = re.compile(r"\r?\n|[\r\t\v\f\x1c-\x1e\x85\u2028\u2029]")


def duration(ms: float | None) -> str:
    """A duration with a suitable unit.

    >>> [duration(x) for x in (0.0123, 33.24, 5726, 75_300, 3_725_000, None)]
    ['0.01ms', '33.24ms', '5.7s', '1m 15s', '1h 02m', 'n/a']
    """
    if ms is None:
        return UNKNOWN
    if ms < 1000:
        return f"{ms:.2f}ms"
    seconds = ms / 1000
    if seconds < 60:
        return f"{seconds:.1f}s"
    minutes, seconds = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes}m {seconds:02d}s"
    return f"{minutes // 60}h {minutes % 60:02d}m"


def seconds(ms: float) -> str:
    """A duration in seconds, for columns of a table that are added up.

    >>> seconds(414.51), seconds(4_230_000)
    ('0.41s', '4,230.00s')
    """
    return f"{ms / 1000:,.2f}s"


def milliseconds(ms: float | None) -> str:
    """A duration in milliseconds, as nanoGPT prints it.

    >>> milliseconds(33.238)
    '33.24ms'
    """
    return UNKNOWN if ms is None else f"{ms:.2f}ms"


def percent(fraction: float | None, digits: int = 2) -> str:
    """
    >>> percent(0.1109), percent(None)
    ('11.09%', 'n/a')
    """
    return UNKNOWN if fraction is None else f"{fraction * 100:.{digits}f}%"


def loss(value: float | None) -> str:
    """
    >>> loss(1.90123), loss(None)
    ('1.9012', 'n/a')
    """
    return UNKNOWN if value is None else f"{value:.4f}"


def size(num_bytes: float | None) -> str:
    """
    >>> size(512), size(1_115_394), size(3_200_000_000)
    ('512 B', '1.1 MB', '3.2 GB')
    """
    if num_bytes is None:
        return UNKNOWN
    for unit in ("B", "kB", "MB", "GB"):
        if num_bytes < 1000:
            return f"{num_bytes:.0f} B" if unit == "B" else f"{num_bytes:.1f} {unit}"
        num_bytes /= 1000
    return f"{num_bytes:.1f} TB"


def compact(number: float | None) -> str:
    """A large number in a few characters.

    >>> [compact(x) for x in (950, 15_432, 1_234_567, 1.5e9, None)]
    ['950', '15.4k', '1.23M', '1.5B', 'n/a']
    """
    if number is None:
        return UNKNOWN
    for unit in ("", "k", "M"):
        if number < 999.5:
            return f"{number:.3g}{unit}"
        number /= 1000
    return f"{number:.3g}B"


def flops(number: float) -> str:
    """
    >>> flops(157e9), flops(26.7e12), flops(5.37e15)
    ('157 GFLOP', '26.7 TFLOP', '5.37 PFLOP')
    """
    number /= 1e9
    for unit in ("G", "T"):
        if number < 999.5:
            return f"{number:.3g} {unit}FLOP"
        number /= 1000
    return f"{number:.3g} PFLOP"


def flops_rate(flops_per_s: float | None) -> str:
    """
    >>> flops_rate(157e9), flops_rate(165.2e12), flops_rate(1.234e9)
    ('157 GFLOP/s', '165.2 TFLOP/s', '1.23 GFLOP/s')
    """
    if flops_per_s is None:
        return UNKNOWN
    if flops_per_s >= 1e12:
        return f"{flops_per_s / 1e12:.1f} TFLOP/s"
    giga = flops_per_s / 1e9
    return f"{giga:.0f} GFLOP/s" if giga >= 100 else f"{giga:.3g} GFLOP/s"


def printable(text: str) -> str:
    """Replace characters that could move the cursor, change the terminal's colours or reverse the
    direction of a line. Text from a model or a file name may contain any character.

    >>> printable("a\\x1b[31mb\\n\\tc\\u202ed")
    'a?[31mb\\n\\tc?d'
    """
    return UNPRINTABLE.sub("?", text)


def one_line(text: str) -> str:
    """Make a message one printable line for a terminal or a log. All messages go through this
    function.

    >>> one_line("cannot be read: a\\r\\nb\\x1b[31m")
    'cannot be read: a b?[31m'
    """
    return printable(LINE_ENDS.sub(" ", text))


def shown(value: object) -> str:
    """The repr of a value, short enough for a message.

    >>> shown("x"), shown(10**5000), shown("y" * 100)[-4:]
    ("'x'", 'a number of 16610 bits', 'y...')
    """
    if isinstance(value, int) and abs(value) >= 10**30:
        return f"a number of {value.bit_length()} bits"
    # A list that contains the same list many times is small in memory, but its repr can be huge.
    text = repr(value) if isinstance(value, str | int | float) else reprlib.repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def finite(value: Any) -> float | None:
    """The value as a float if it is a finite number, otherwise None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None
