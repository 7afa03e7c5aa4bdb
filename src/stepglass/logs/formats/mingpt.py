"""minGPT's example projects, which print a line every ten iterations.

    iter_dt 12.30ms; iter 100: train loss 2.10342
    saving model

`iter_dt` is updated after the line is printed, so it is the time of the previous iteration, and 0
in the first line. The times of sampling and saving are never printed.
"""

import re

from stepglass.logs.log_format import LogFormat
from stepglass.logs.reader import NUMBER, Record, plain_number

LINE = re.compile(
    rf"\biter_dt\s+({NUMBER})\s*ms;\s*iter\s+(\d{{1,15}}):(?:.{{0,200}}?\btrain loss\s+({NUMBER}))?"
)


class MinGPT:
    """Reads the console of minGPT's chargpt and adder."""

    format = LogFormat("mingpt", limits=("format-mingpt",))

    def __init__(self) -> None:
        self._iter: int | None = None

    def read(self, text: str) -> list[Record]:
        if "iter_dt" in text and (found := LINE.search(text)):
            self._iter = iteration = int(found[2])
            time_ms = plain_number(found[1])
            is_timed = iteration > 0 and bool(time_ms)
            return [
                {
                    "kind": "iter",
                    "iter": iteration,
                    "loss": plain_number(found[3]),
                    "time_ms": time_ms if is_timed else None,
                    "time_of_iter": iteration - 1 if is_timed else None,
                }
            ]
        if self._iter is not None and text.endswith("saving model"):
            return [{"kind": "checkpoint", "iter": self._iter}]
        return []
