"""The time that a run may take (`--minutes`), from the command to the end of the process.

    budget = TimeBudget(minutes, clock.elapsed_ms)
    budget.begin()                 # before the first update of this process
    budget.share(reserve_ms)       # how much of the training time has passed: 0 to 1

The schedule of such a run follows the clock and not the number of updates, so the learning rate is
at its end when the time is up, however fast the machine turned out to be. Checkpoints store how
much time has passed and how much of the schedule is done. A resumed run spends the rest of the time
on the rest of the schedule.
"""

from collections.abc import Callable
from dataclasses import dataclass

END_MS = 700.0  # from the last checkpoint to the end of the process


@dataclass
class TimeBudget:
    """The time of a run. Times are milliseconds."""

    total_ms: float
    elapsed_ms: Callable[[], float]  # since this process was started
    spent_ms: float = 0.0  # by earlier processes of the run
    done_before: float = 0.0  # the share of the schedule that they have done
    began_ms: float = 0.0  # when the first update of this process began

    def begin(self) -> None:
        """Call this before the first update, so that the start-up is no part of the schedule."""
        self.began_ms = self.used_ms()

    def used_ms(self) -> float:
        """The time that the run has taken so far."""
        return self.spent_ms + self.elapsed_ms()

    def left_ms(self, reserve_ms: float = 0.0) -> float:
        """The time for updates, if `reserve_ms` are kept for what follows the last one."""
        return self.total_ms - reserve_ms - self.used_ms()

    def share(self, reserve_ms: float) -> float:
        """The share of the schedule that is done."""
        until_ms = self.total_ms - reserve_ms
        if until_ms <= self.began_ms:
            return 1.0
        here = (self.used_ms() - self.began_ms) / (until_ms - self.began_ms)
        return min(1.0, self.done_before + (1 - self.done_before) * here)
