"""When to evaluate: every N iterations, or as often as a share of the run's time allows (`auto`).

`auto` divides the time allowed for evaluations by the time that one takes. It spreads that many
evaluations evenly over the run, at round iteration numbers, with the last one at the end. The time
of an evaluation is first estimated from the time of an iteration, and then measured.
"""

import math
from dataclasses import dataclass

from stepglass import units

LOOK_AT = 10  # iterations after which the mean time of an iteration is reliable
FORWARD_SHARE = 0.4  # of an iteration's time; the rest is the backward pass and the update
MOST = 200  # evaluations in a run: each may be a new best, which writes a checkpoint
ROUND = (1.0, 2.0, 2.5, 5.0)


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

    interval: int | None  # None: auto
    budget: float
    max_iters: int
    tokens: int  # in an evaluation
    tokens_per_iter: int
    eval_ms: float | None = None  # of the last evaluation

    def is_due(self, step: int, iter_ms: float | None) -> bool:
        """`iter_ms` is the time of an iteration, or None while it is unknown."""
        every = self.every(iter_ms)
        return every is not None and step % every == 0 and (step > 0 or self.interval is not None)

    def every(self, iter_ms: float | None) -> int | None:
        """Iterations between two evaluations, or None while the time of an iteration is unknown."""
        if self.interval is not None:
            return self.interval
        if not iter_ms:
            return None
        allowed = self.budget * self.max_iters * iter_ms / self.expected_ms(iter_ms)
        return rounded_up(self.max_iters / min(max(1, math.floor(allowed)), MOST))

    def expected_ms(self, iter_ms: float) -> float:
        """The expected time of the next evaluation."""
        if self.eval_ms is not None:
            return max(self.eval_ms, 1e-6)
        return max(iter_ms * FORWARD_SHARE * self.tokens / self.tokens_per_iter, 1e-6)

    def measured(self, eval_ms: float) -> None:
        self.eval_ms = eval_ms

    def cost(self, iter_ms: float) -> str | None:
        """A line about the cost of evaluations. None if there is nothing to say: the interval is
        not known yet, or the user's own interval is within the budget."""
        every, expected_ms = self.every(iter_ms), self.expected_ms(iter_ms)
        if every is None:
            return None
        share = expected_ms / (min(every, self.max_iters) * iter_ms + expected_ms)
        each = f"{units.duration(expected_ms)} each, {units.percent(share, 1)} of the time"
        if self.interval is None:
            often = f"every {every} iterations" if every < self.max_iters else "at the end"
            return f"evaluations: auto: {often}, {each}"
        if share <= self.budget:
            return None
        return (
            f"note: eval_interval={every} costs {each}; eval_interval=auto keeps to "
            f"{units.percent(self.budget, 0)} where the run is long enough"
        )
