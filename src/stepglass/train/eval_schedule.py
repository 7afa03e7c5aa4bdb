"""When to evaluate: every N iterations, or as often as a share of the run's time allows (`auto`).

`auto` divides the time allowed for evaluations by the time that one takes. It spreads that many
evaluations evenly over the run, at round iteration numbers, with the last one at the end. It
decides once, when the first iterations have been timed, and says so before the first evaluation.
If the first evaluation takes much longer than expected, it decides once more, and says so too.
"""

import math
from dataclasses import dataclass

from stepglass import units

LOOK_AT = 10  # iterations after which the mean time of an iteration is reliable
FORWARD_SHARE = 0.4  # of an iteration's time; the rest is the backward pass and the update
MOST = 200  # evaluations in a run: each may be a new best, which writes a checkpoint
ROUND = (1.0, 2.0, 2.5, 5.0)
BADLY = 1.5  # times the budget: then the interval is changed


def rounded_up(value: float) -> int:
    """The next round number.

    >>> [rounded_up(x) for x in (0.3, 3, 12, 240, 251, 6000)]
    [1, 5, 20, 250, 500, 10000]
    """
    power = 10 ** max(0, math.floor(math.log10(value))) if value > 1 else 1
    steps = [power * factor for factor in ROUND if power * factor % 1 == 0] + [power * 10]
    return int(next(step for step in steps if step >= value))


@dataclass
class EvalSchedule:
    """Says when an evaluation is due. Times are milliseconds."""

    interval: int | None  # what the user asked for; None: auto
    budget: float
    max_iters: int
    tokens: int  # in an evaluation
    tokens_per_iter: int
    eval_ms: float | None = None  # of an evaluation: rehearsed, then measured
    every: int | None = None  # iterations between two evaluations; None: not decided yet
    is_final: bool = False  # the interval has been compared with a real evaluation

    def __post_init__(self) -> None:
        self.every = self.interval

    def decide(self, iter_ms: float | None) -> str | None:
        """Decide on an interval as soon as the time of an iteration is known. Returns a line that
        announces it, once."""
        if self.every is not None or not iter_ms:
            return None
        self.every = self.affordable(iter_ms)
        return f"evaluations: auto: {self.often()}, about {self.cost(iter_ms)}"

    def keep(self, every: int) -> str:
        """Keep the interval of a run that is resumed. Returns a line that announces it."""
        self.every, self.is_final = every, True
        return f"evaluations: auto: {self.often()}, as before"

    def is_due(self, step: int) -> bool:
        is_first = step == 0 and self.interval is None
        return self.every is not None and step % self.every == 0 and not is_first

    def affordable(self, iter_ms: float) -> int:
        """The shortest interval that keeps to the budget."""
        allowed = self.budget * self.max_iters * iter_ms / self.expected_ms(iter_ms)
        return rounded_up(self.max_iters / min(max(1, math.floor(allowed)), MOST))

    def expected_ms(self, iter_ms: float) -> float:
        """The expected time of an evaluation."""
        if self.eval_ms is not None:
            return max(self.eval_ms, 1e-6)
        return max(iter_ms * FORWARD_SHARE * self.tokens / self.tokens_per_iter, 1e-6)

    def measured(self, eval_ms: float, iter_ms: float | None) -> str | None:
        """Compare the budget with an evaluation that was measured. Returns a line if there is
        something to say: the interval has to change, or the user's own interval costs much."""
        self.eval_ms = eval_ms
        if self.every is None or not iter_ms or self.is_final:
            return None
        self.is_final = True
        share = self.share(iter_ms)
        if self.interval is not None:
            return None if share <= self.budget else self.too_often(iter_ms)
        if share <= BADLY * self.budget or self.every >= self.max_iters:
            return None
        self.every = self.affordable(iter_ms)
        return f"evaluations: auto: now {self.often()}: they take longer, {self.cost(iter_ms)}"

    def too_often(self, iter_ms: float) -> str:
        return (
            f"note: eval_interval={self.every} costs {self.cost(iter_ms)}; eval_interval=auto "
            f"keeps to {units.percent(self.budget, 0)} where the run is long enough"
        )

    def often(self) -> str:
        assert self.every is not None
        return f"every {self.every} iterations" if self.every < self.max_iters else "at the end"

    def cost(self, iter_ms: float) -> str:
        each = units.duration(self.expected_ms(iter_ms))
        return f"{each} each, {units.percent(self.share(iter_ms), 1)} of the time"

    def share(self, iter_ms: float) -> float:
        """The share of the time that evaluations take."""
        assert self.every is not None
        expected_ms = self.expected_ms(iter_ms)
        return expected_ms / (min(self.every, self.max_iters) * iter_ms + expected_ms)
