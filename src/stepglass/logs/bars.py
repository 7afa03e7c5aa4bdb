"""Reads tqdm progress bars, which many trainers print: step, elapsed time and rate.

    100%|██████████| 200/200 [03:45<00:00,  1.13s/it]
    Epoch 0:  50% 1/2 [00:00<00:00,  6.54it/s, loss=2.29]

Where there is no room for it, the bar itself is left out. Some trainers leave out the rate. A bar
with another unit (`examples/s`) counts something else and is not read.
"""

import re
from dataclasses import dataclass

from stepglass.logs.reader import NUMBER, decimal, number

BAR = re.compile(
    r"\d{1,3}%(?:\|[^|]{0,1000}\||\s)\s*(?P<n>\d{1,12})/(?P<total>\d{1,12})\s*"
    r"\[(?P<elapsed>(?:\d+ days?, )?[\d:]{4,15})<[^,\]]{1,30}"
    rf"(?:,\s*(?:(?P<rate>{NUMBER})|\?)\s*(?P<unit>it/s|s/it)|(?!,\s*(?:{NUMBER}|\?)\s*\w*/))"
    r"(?P<postfix>[^\]]{0,2000})"
)
LABEL = re.compile(r"([A-Za-z][^\[\]:|]{0,80}):[\s:]*$")


@dataclass(frozen=True)
class Bar:
    """The contents of a tqdm bar. tqdm smooths the rate over the last few updates."""

    label: str
    n: int
    total: int
    elapsed_s: float
    rate_per_s: float | None
    postfix: str


def bars(text: str) -> list[Bar]:
    """
    >>> [(bar.n, bar.total, bar.elapsed_s, bar.rate_per_s)
    ...  for bar in bars("Train:  50%|█████     | 100/200 [01:40<01:40,  2.00s/it]")]
    [(100, 200, 100.0, 0.5)]
    """
    if "%" not in text or "<" not in text:
        return []
    result, position = [], 0
    for found in BAR.finditer(text):
        label = LABEL.search(text[max(position, found.start() - 120) : found.start()])
        position = found.end()
        result.append(
            Bar(
                label[1] if label else "",
                int(found["n"]),
                int(found["total"]),
                clock_seconds(found["elapsed"]),
                rate_per_s(found["rate"], found["unit"]),
                found["postfix"],
            )
        )
    return result


def rate_per_s(rate: str | None, unit: str | None) -> float | None:
    """Iterations per second. tqdm prints either that or seconds per iteration."""
    value = number(rate)
    if value is None or unit == "it/s":
        return value
    return 1 / value if value > 0 else None


def clock_seconds(clock: str) -> float:
    """
    >>> clock_seconds("03:45"), clock_seconds("1:10.55"), clock_seconds("1 day, 2:00:05")
    (225.0, 70.55, 93605.0)
    """
    days, _, time = clock.rpartition("day")
    result = 0.0
    for part in time.lstrip("s, ").split(":"):
        result = 60 * result + decimal(part)
    return result + 86400 * decimal(days)
