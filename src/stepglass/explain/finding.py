"""A finding: the result of a rule, with the lines and numbers that support it.

Status: `established` means that the log proves it; `supported`, that there is hardly another
explanation; `hypothesis`, that it is worth checking. Level: a `note` explains something, `advice`
saves time or lowers the loss, a `problem` has damaged the run.
"""

from dataclasses import dataclass, field
from typing import Literal

Status = Literal["established", "supported", "hypothesis"]
Level = Literal["note", "advice", "problem"]
Number = float | int | str | None
Change = dict[str, float | int | bool | str]  # new values by setting
LEVELS: dict[Level, int] = {"problem": 0, "advice": 1, "note": 2}
MOST_CITED = 20


@dataclass
class Finding:
    """The result of a rule. Its text is in the catalogues, by rule and variant."""

    rule: str
    status: Status
    level: Level
    numbers: dict[str, Number] = field(default_factory=dict)
    lines: list[int] = field(default_factory=list)
    iters: list[int] = field(default_factory=list)
    change: Change = field(default_factory=dict)
    variant: str = "plain"
    cost_ms: float = 0.0
    part: int = 0
    unit: str = "step"  # what its iterations count: steps, epochs or entries of the log

    def __post_init__(self) -> None:
        self.lines = sorted(set(self.lines))[:MOST_CITED]
        self.iters = list(dict.fromkeys(self.iters))[:MOST_CITED]


def nice(value: float, digits: int = 2) -> int:
    """The number rounded to two significant digits, so that it is easy to type.

    >>> nice(2525), nice(615.3), nice(7)
    (2500, 620, 7)
    """
    if not 0 < value < 1e15:
        return 0
    return int(float(f"{value:.{digits}g}"))
