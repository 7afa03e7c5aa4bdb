"""The records that readers produce, which are like those of the run log.

    {"kind": "iter", "iter": 900, "loss": 1.9, "time_ms": 168.0, "mfu": 11.1}
    {"kind": "eval", "iter": 1000, "train_loss": 1.8, "val_loss": 2.0, "time_ms": None}
    {"kind": "checkpoint", "iter": 1000}
    {"kind": "start", "config": {"batch_size": 12}, "parameters": 10.65e6, "device": "NVIDIA A100"}
    {"kind": "event", "name": "oom", "detail": "CUDA out of memory. ..."}
    {"kind": "end", "wall_ms": 225800.5}

If the time of an iteration is the mean since the previous line, the record says `is_mean`, or
states the number of iterations as `window`. `elapsed_s` is what the trainer's own clock shows.
If a policy is trained by reward, iterations say `is_policy`: the level of their loss means nothing.
An evaluation may have a `set` (several sets stay apart) and other `metrics`: {"wer": 0.74}.

A value that the log does not state is absent or None, never guessed. MFU is in percent, as printed.
Other values (`lr`, `grad_norm`, `tok_s`, `data_ms`, ...) use the names of the run log.
"""

import re
from typing import Any, Protocol

from stepglass.logs.log_format import LogFormat

Record = dict[str, Any]

# Also matches `1,85`, which is no number of ours: without the rest, it would be read as 1.
NUMBER = (
    r"(?:[-+]?\d+(?:,\d+)*(?:\.\d*)?(?:[eE][-+]?\d+)?"
    r"|[-+]?\.\d+|[-+]?(?i:nan|inf(?:inity)?))"
)
THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?")


class Reader(Protocol):
    """Reads one format, line by line."""

    @property
    def format(self) -> LogFormat:
        """What is known of the format. A few readers learn more about it from the lines."""
        ...

    def read(self, text: str) -> list[Record]:
        """The records of a line; often none. Lines come in order, so a reader may keep state."""
        ...


def number(text: str | None) -> float | None:
    """
    >>> number("529,882"), number("nan"), number("'2.104'"), number("1,85"), number(None)
    (529882.0, nan, 2.104, None, None)
    """
    if text is None:
        return None
    text = text.strip(" '\"")
    if "," in text:
        if not THOUSANDS.fullmatch(text):
            return None
        text = text.replace(",", "")
    try:
        return float(text)
    except ValueError:
        return None


def plain_number(text: str | None) -> float | None:
    """A loss or a time. `1,234` is None: it may be 1234, or 1.234 with a decimal comma.

    >>> plain_number("1,234"), plain_number("1,234.5"), plain_number("1.5")
    (None, 1234.5, 1.5)
    """
    if text is not None and "," in text and "." not in text:
        return None
    return number(text)


def decimal(text: str | None) -> float:
    """A number that may have a decimal comma. None becomes 0.

    >>> decimal("1,5"), decimal(None)
    (1.5, 0.0)
    """
    return number((text or "0").replace(",", ".")) or 0.0


def field(text: str, key: str, unit: str = "") -> float | None:
    """The number after a key, with any separator: `loss 4.1`, `loss: 4.1`, `loss=4.1`.

    >>> field("iter 5: loss 4.1, time 12.5ms", "time", "ms"), field("loss...", "loss")
    (12.5, None)
    """
    found = re.search(rf"(?<![\w/]){key}\s*[:=]?\s*({NUMBER}){unit}", text, re.IGNORECASE)
    return number(found[1]) if found else None
