"""Who waits for whom: the times of several processes that train together, and a straggler.

In every update all processes compute gradients, and then wait until the sum of all is there. The
process that is ready last waits for the transfer alone, so that is communication. What the others
wait beyond it, they wait for the slowest.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stepglass.explain.timing import Ledger
from stepglass.logs.rank_times import RankTimes
from stepglass.logs.segment import Segment
from stepglass.logs.table import Column, median

HOLDER = "forward_backward"  # the phase that the processes wait in
Table = npt.NDArray[np.float64]  # a row for each record, a column for each rank

LEAST_SLOWER = 1.1  # times the median of the others
CLEARLY_SLOWER = 1.25  # in few records, the noise is not known
SIGMAS = 4.0
MOST_OF = 0.75  # of the records
ENOUGH = 6  # records to tell a straggler from noise
FEWEST = 3


@dataclass(frozen=True, eq=False)
class Ranks:
    """The records of one process start, each about the updates since the one before."""

    lines: list[int]
    iters: list[int]
    first_iter: int
    updates: Column  # how many each record is a mean of
    compute: Table
    wait: Table
    scored: Table
    communication: Column

    @property
    def number(self) -> int:
        return len(self.compute[0])

    @property
    def num_updates(self) -> int:
        return max(0, self.iters[-1] - self.first_iter)

    @property
    def communication_ms(self) -> float:
        """Of an update, over the run."""
        return float(np.average(self.communication, weights=self.updates))

    def mean(self, table: Table) -> Column:
        """By rank, over the run."""
        return np.average(table, axis=0, weights=self.updates)

    @property
    def waiting_ms(self) -> float:
        """What a process waits for the slowest in an update, mean of all processes."""
        return float(self.mean(self.wait).mean()) - self.communication_ms

    @property
    def imbalance(self) -> float:
        """How many times as long as the mean the slowest process computes."""
        compute = self.mean(self.compute)
        return float(compute.max() / max(compute.mean(), 1e-9))

    def since(self, record: int) -> "Ranks":
        """The records from this one on."""
        return Ranks(
            self.lines[record:],
            self.iters[record:],
            self.iters[record - 1] if record else self.first_iter,
            self.updates[record:],
            self.compute[record:],
            self.wait[record:],
            self.scored[record:],
            self.communication[record:],
        )

    def within(self, ledger: Ledger, num_iters: int) -> dict[str, float]:
        """What of the phase `forward_backward` was no computing, in milliseconds. The records are
        taken for all iterations, those after the last record included."""
        whole = ledger.phases.get(HOLDER, 0.0)
        communication = min(whole, num_iters * self.communication_ms)
        waiting = min(whole - communication, num_iters * self.waiting_ms)
        return {"communication": communication, "waiting": max(0.0, waiting)} if whole else {}


@dataclass(frozen=True)
class Straggler:
    """A process that is slower than the others."""

    rank: int
    ranks: Ranks  # the records in which it is
    slow_ms: float  # computing of an update
    others_ms: float
    num_slow: int  # records in which it was slower than the others
    is_sure: bool

    @property
    def ratio(self) -> float:
        return self.slow_ms / self.others_ms

    @property
    def cost_ms(self) -> float:
        """What the run would have been shorter, had it been as fast as the slowest of the others.
        They wait for it in every update."""
        compute = self.ranks.mean(self.ranks.compute)
        others = np.delete(compute, self.rank)
        return self.ranks.num_updates * max(0.0, float(compute[self.rank] - others.max()))


def ranks_of(segment: Segment) -> Ranks | None:
    """The records of a segment, or None if it has none."""
    found = [
        (event.line, event.iter or 0, times)
        for event in segment.events
        if event.name == "ranks" and isinstance(times := event.record.get("times"), RankTimes)
    ]
    if not found:
        return None
    number = len(found[-1][2].compute_ms)
    lines, iters, times = zip(*(f for f in found if len(f[2].compute_ms) == number), strict=True)
    return Ranks(
        list(lines),
        list(iters),
        min(segment.first_iter or 0, iters[0]),
        np.array([t.updates for t in times], np.float64),
        np.stack([t.compute_ms for t in times]),
        np.stack([t.wait_ms for t in times]),
        np.stack([t.eval_ms for t in times]),
        np.array([t.communication_ms for t in times]),
    )


def straggler_of(ranks: Ranks) -> Straggler | None:
    """The process that is the slowest all along, or in the newer half of the run. If it is another
    one at every time, there is none."""
    later = len(ranks.lines) // 2
    found = _slow_in(ranks)
    if found is None and later >= ENOUGH:
        found = _slow_in(ranks.since(later))
    return found


def _slow_in(ranks: Ranks) -> Straggler | None:
    rank = int(np.median(ranks.compute, axis=0).argmax())
    slow = ranks.compute[:, rank]
    others = np.median(np.delete(ranks.compute, rank, axis=1), axis=1)
    ratios = slow / np.maximum(others, 1e-9)
    ratio, count = median(ratios), len(ratios)
    num_slow = int((ratios >= LEAST_SLOWER).sum())
    if count < ENOUGH:
        is_slow = num_slow == count >= FEWEST and ratio >= CLEARLY_SLOWER
    else:
        error = 1.25 * _noise(ranks.compute, ratios) / math.sqrt(count)  # of a median
        # The more processes there are, the further the slowest is from the others by chance.
        sigmas = SIGMAS + math.sqrt(2 * math.log(ranks.number))
        is_slow = ratio - 1 >= sigmas * error and num_slow >= MOST_OF * count
    if not is_slow:
        return None
    return Straggler(rank, ranks, median(slow), median(others), num_slow, count >= ENOUGH)


def _noise(compute: Table, ratios: Column) -> float:
    """The standard deviation of a record's ratio: as the ratios scatter, or as all processes do
    about their own medians. Few records alone may be alike by chance."""
    each = compute / np.maximum(np.median(compute, axis=1, keepdims=True), 1e-9)
    pooled = 1.4826 * median(np.abs(each - np.median(each, axis=0)).ravel())
    low, high = np.quantile(ratios, [0.25, 0.75])
    return max(pooled, float(high - low) / 1.35, float(ratios.std()) / 2)
