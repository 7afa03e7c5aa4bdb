"""Recognises records that were printed twice: every rank of a distributed run may print a copy."""

from collections import deque

from stepglass.logs.reader import Record
from stepglass.logs.table import Column


class Repeats:
    """Remembers the latest records of a segment."""

    def __init__(self) -> None:
        self._recent: deque[tuple[object, ...]] = deque(maxlen=512)
        self._recent_set: set[tuple[object, ...]] = set()
        self._latest: deque[int] = deque(maxlen=3)

    def is_repeat(self, key: tuple[object, ...]) -> bool:
        """Was the same record added before? If not, remember it."""
        if key in self._recent_set:
            return True
        if len(self._recent) == self._recent.maxlen:
            self._recent_set.discard(self._recent[0])
        self._recent.append(key)
        self._recent_set.add(key)
        return False

    def is_unnumbered_repeat(self, record: Record) -> bool:
        said = ("iter", *(record.get(k) for k in ("loss", "lr", "grad_norm", "epoch")))
        return self.is_repeat(said)

    def is_iteration_repeat(self, iteration: int, record: Record) -> bool:
        """Was this iteration added before, by the same rank or with another rank's values?"""
        said = ("iter", iteration, *(record.get(k) for k in ("loss", "time_ms", "tok_s")))
        if self.is_repeat(said):
            return True
        if iteration in self._latest and not record.get("is_unmeasured"):
            return True
        self._latest.append(iteration)
        return False

    def passed(self, iters: Column) -> None:
        """Remember the last iterations of a block."""
        self._latest.extend(int(i) for i in iters[-3:])
