"""Which of several processes gave no sign of life for a while, although the run went on.

    signs = SignsOfLife()
    signs.see({1: b"7 0 41"}, now_s)    # once a second: the note that each process has left
    signs.silences()                    # [SilenceEvent(rank=1, silent_ms=14200.0)]

A link that was cut and came back leaves an iteration that took long. This says why. Rank 0's thread
that leaves notes calls `see`, and training asks for what was found.
"""

from collections import deque
from collections.abc import Mapping

from stepglass.measure.event_details import SilenceEvent

SILENT_S = 5.0  # of a process that gives a sign once a second: a busy machine may delay it


class SignsOfLife:
    """When each process was last heard of."""

    def __init__(self) -> None:
        self._heard: dict[int, tuple[bytes, float]] = {}  # its note, and when it was new
        self._found: deque[SilenceEvent] = deque()

    def see(self, notes: Mapping[int, bytes], now_s: float) -> None:
        """Look at the newest note of each process. Each has a number that changes."""
        for rank, note in notes.items():
            before, since = self._heard.get(rank, (b"", now_s))
            if note == before:
                continue
            self._heard[rank] = note, now_s
            if now_s - since > SILENT_S:
                self._found.append(SilenceEvent(rank=rank, silent_ms=round(1000 * (now_s - since))))

    def silences(self) -> list[SilenceEvent]:
        """Those that have ended since the last call."""
        return [self._found.popleft() for _ in range(len(self._found))]
