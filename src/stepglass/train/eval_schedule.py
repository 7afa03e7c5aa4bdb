"""When to evaluate: after a number of iterations, or as often as a share of the run's time allows.

`auto` divides the time that evaluations may take by the time of one, and spreads that many evenly
over the run, at round numbers, the last one at the end. Before the first evaluation, its time is
estimated from that of an iteration; afterwards it is known.
"""

import math
from dataclasses import dataclass

from stepglass import units

LOOK_AT = 10  # iterations until one's time is known well enough
FORWARD_SHARE = 0.4  # of an iteration's time; the rest is the backward pass and the update
MOST = 200  # evaluations in a run: each may be the best so far, and be saved
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
    eval_ms: float | None = None  # the newest one's

    def is_due(self, step: int, iter_ms: float | None) -> bool:
        """`iter_ms` is what an iteration takes, once that is known."""
        every = self.every(iter_ms)
        return every is not None and step % every == 0 and (step > 0 or self.interval is not None)

    def every(self, iter_ms: float | None) -> int | None:
        """Iterations between two evaluations; None while it is too early to say."""
        if self.interval is not None:
            return self.interval
        if not iter_ms:
            return None
        allowed = self.budget * self.max_iters * iter_ms / self.expected_ms(iter_ms)
        return rounded_up(self.max_iters / min(max(1, math.floor(allowed)), MOST))

    def expected_ms(self, iter_ms: float) -> float:
        """What the next evaluation will take."""
        if self.eval_ms is not None:
            return max(self.eval_ms, 1e-6)
        return max(iter_ms * FORWARD_SHARE * self.tokens / self.tokens_per_iter, 1e-6)

    def measured(self, eval_ms: float) -> None:
        self.eval_ms = eval_ms

    def cost(self, iter_ms: float) -> str | None:
        """What evaluating costs, in words; None where a number was given and it costs little."""
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
