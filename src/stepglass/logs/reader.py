"""The records that readers produce, which are like those of the run log.

    {"kind": "iter", "iter": 900, "loss": 1.9, "time_ms": 168.0, "mfu": 11.1}
    {"kind": "eval", "iter": 1000, "train_loss": 1.8, "val_loss": 2.0, "time_ms": None}
    {"kind": "checkpoint", "iter": 1000}
    {"kind": "start", "config": {"batch_size": 12}, "parameters": 10.65e6, "device": "NVIDIA A100"}
    {"kind": "event", "name": "oom", "detail": "CUDA out of memory. ..."}
    {"kind": "end", "wall_ms": 225800.5}

A value that the log does not state is absent or None, never guessed. MFU is in percent, as printed.
Other values (`lr`, `grad_norm`, `tok_s`, `data_ms`, ...) use the names of the run log.
"""

import re
from typing import Any, Protocol

from stepglass.logs.log_format import LogFormat

Record = dict[str, Any]

NUMBER = (
    r"(?:[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d*)?(?:[eE][-+]?\d+)?"
    r"|[-+]?\.\d+|[-+]?(?:nan|inf(?:inity)?))"
)


class Reader(Protocol):
    """Reads one format, line by line."""

    format: LogFormat

    def read(self, text: str) -> list[Record]:
        """The records of a line; often none. Lines come in order, so a reader may keep state."""
        ...


def number(text: str | None) -> float | None:
    """
    >>> number("529,882"), number("nan"), number("'2.104'"), number("x"), number(None)
    (529882.0, nan, 2.104, None, None)
    """
    if text is None:
        return None
    try:
        return float(text.strip(" '\"").replace(",", ""))
    except ValueError:
        return None


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
