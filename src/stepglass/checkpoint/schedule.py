"""When to save: every N iterations, at a time interval, or as rarely as is safe (`auto`).

`auto` balances three limits. First, a crash may lose at most two minutes of work, or in a long run
one percent of the work done, up to 15 minutes. Second, training must wait for saves less than one
percent of the time, and the writer must slow down training on a CPU by less than one percent.
Third, the disk must be idle for at least as long as it writes: if a save takes a minute, there is
no save every minute.
"""

from stepglass import units
from stepglass.settings.interval import Interval

AT_RISK_S = 120.0
AT_RISK_SHARE = 0.01
MOST_AT_RISK_S = 900.0
STALL_SHARE = 0.01
TAKEN_SHARE = 0.004  # the writer slows training by up to 2.3 times the CPU time that it takes


class SaveSchedule:
    """Says when the next save is due. Times are milliseconds of the run's own clock."""

    def __init__(self, interval: Interval, keep_every: int) -> None:
        self._interval = interval
        self._keep_every = keep_every
        self._last_ms = 0.0
        self._stall_ms = 0.0
        self._write_ms = 0.0
        self._taken_ms = 0.0

    def is_due(self, step: int, now_ms: float) -> bool:
        if self._keep_every and step % self._keep_every == 0:
            return True
        if self._interval.iters is not None:
            return step % self._interval.iters == 0
        return now_ms - self._last_ms >= self.every_ms(now_ms)

    def every_ms(self, now_ms: float) -> float:
        """The time between two saves, if they are not scheduled by iterations."""
        if self._interval.seconds is not None:
            return self._interval.seconds * 1000
        at_risk_s = min(max(AT_RISK_S, AT_RISK_SHARE * now_ms / 1000), MOST_AT_RISK_S)
        return max(
            at_risk_s * 1000 - self._write_ms,
            self._stall_ms / STALL_SHARE,
            self._taken_ms / TAKEN_SHARE,
            2 * self._write_ms,
        )

    def began(self, now_ms: float) -> None:
        """A save has begun, for any reason: measure the interval from now."""
        self._last_ms = now_ms

    def measured(self, stall_ms: float, write_ms: float, taken_ms: float = 0.0) -> None:
        """The costs of the last save: how long training waited, how long the writer took, and how
        much CPU time it took from training."""
        self._stall_ms, self._write_ms, self._taken_ms = stall_ms, write_ms, taken_ms

    @property
    def is_auto(self) -> bool:
        return self._interval == Interval()

    def bound(self, now_ms: float) -> str:
        """How often saves happen and how much work a crash may lose, in words."""
        if self._interval.iters is not None:
            return f"every {self._interval.iters} iterations and at each best evaluation"
        every_ms = self.every_ms(now_ms)
        return (
            f"{'auto: ' if self.is_auto else ''}every {units.duration(every_ms)} and at each best "
            f"evaluation, at most {units.duration(every_ms + self._write_ms)} of work at risk"
        )
