"""Which values of a log are believed. A misprint or junk must not become a number of ours."""

from stepglass.logs.bulk.run_log_lines import MOST_PHASES
from stepglass.logs.reader import Record
from stepglass.logs.segment import Segment

# Larger values are misprints or junk, and are dropped.
ABSURD = {"time_ms": 1e10, "mfu": 1e5, "tok_s": 1e12, "data_ms": 1e10, "step_ms": 1e10, "lr": 1e6}
ABSURD_LOSS = 1e9
LEAST = 1e-9
MOST_ITERS = 10**12


def sane(value: float | None, most: float) -> float | None:
    """The value, or None if it is impossible."""
    return value if value is not None and (value == 0 or LEAST <= value <= most) else None


def is_absurd(value: object) -> bool:
    """Is the value larger than any real setting or device property?"""
    return isinstance(value, int | float) and not abs(value) <= 1e18


def sane_phases(record: Record, segment: Segment) -> dict[str, float]:
    """The phases of an iteration, without absurd values and with a limited number of names."""
    return {
        phase: ms
        for phase, ms in (record.get("phases") or {}).items()
        if isinstance(ms, int | float)
        and 0 <= ms <= ABSURD["time_ms"]
        and (phase in segment.phases or len(segment.phases) < MOST_PHASES)
    }
