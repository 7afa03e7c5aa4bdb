"""Reasons as sentences, and long times in days."""

from stepglass.advise.case import Reason
from stepglass.explain.render.languages import Words

DAYS_FROM_MS = 3 * 24 * 3.6e6
LONG_TIMES = ("saved_ms", "run_ms", "enough_ms")


def reason_text(reason: Reason, words: Words) -> str:
    values = dict(reason.values)
    for name in LONG_TIMES:
        if isinstance(values.get(name), float):
            values[name] = long_time(values[name], words)
    return words.text(reason.key, **values)


def long_time(ms: float, words: Words) -> str:
    """A duration, in days if it is long."""
    if ms < DAYS_FROM_MS:
        return words.duration(ms)
    return words.text("advise-days", count=round(ms / (24 * 3.6e6)))
