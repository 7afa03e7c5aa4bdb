"""Reasons as sentences, and long times in days."""

from stepglass.advise.case import Reason
from stepglass.explain.render.languages import Words

DAYS_FROM_MS = 3 * 24 * 3.6e6
LONG_TIMES = ("saved_ms", "run_ms", "enough_ms")
COUNTS = ("max_iters", "interval", "windows")  # a sentence has one of them, as a number of things


def reason_text(reason: Reason, words: Words) -> str:
    values = dict(reason.values)
    for name in LONG_TIMES:
        if isinstance(values.get(name), float):
            values[name] = long_time(values[name], words)
    for name in COUNTS:
        if isinstance(values.get(name), int):
            values["number"] = "one" if values[name] == 1 else "other"
    if "mfu_share" in values:
        values["speed"] = speed_text(values["mfu_share"], values["tflops"], words)
    return words.text(reason.key, **values)


def speed_text(mfu: float | None, tflops: float | None, words: Words) -> str:
    """The MFU or, where no peak is known, the speed itself."""
    if mfu is None and tflops is not None:
        return f"{words.value('tflops', tflops)} TFLOP/s"
    return "MFU " + (words.text("page-unknown") if mfu is None else words.share(mfu))


def long_time(ms: float, words: Words) -> str:
    """A duration, in days if it is long."""
    if ms < DAYS_FROM_MS:
        return words.duration(ms)
    return words.text("advise-days", count=round(ms / (24 * 3.6e6)))
