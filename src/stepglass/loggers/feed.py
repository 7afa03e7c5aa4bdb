"""A queue and a thread between the run and each of its loggers.

The records come from the run log's writer. Training does not wait for a logger's disk or network,
and loggers do not wait for each other. If a logger fails, it gets no more records and the run goes
on. run.jsonl still has every number.
"""

import queue
import threading
import time
from collections.abc import Callable

from stepglass.loggers.logger import Logger, failure_text
from stepglass.measure.records import RunRecord

CLOSE_S = 30.0  # how long a run waits at its end for records that are not sent yet
PATIENCE_S = 1.0  # a longer wait is announced to the user
MAX_BEHIND = 50_000  # records in the queue: about 100 MB


class LoggerFeed:
    """Passes records to one logger in a separate thread.

    The thread is a daemon, so a logger that hangs does not prevent the process from ending.
    """

    def __init__(self, name: str, logger: Logger) -> None:
        self.name = name
        self.failure: str | None = None  # the first error; after it the logger gets no records
        self._logger = logger
        self._queue: queue.SimpleQueue[list[RunRecord] | None] = queue.SimpleQueue()
        self._num_put = self._num_taken = 0  # each is changed by one thread only
        self._thread = threading.Thread(target=self._run, name=f"log-to-{name}", daemon=True)
        self._thread.start()

    def put(self, records: list[RunRecord]) -> None:
        """Queue records and return at once. The records must not be changed afterwards."""
        if self.failure is not None:
            return
        if self._num_put - self._num_taken > MAX_BEHIND:
            self._fail(f"it is {self._num_put - self._num_taken:,} records behind")
            return
        self._num_put += len(records)
        self._queue.put(records)

    def end(self) -> None:
        """Tell the thread to write the queued records and then close the logger."""
        self._queue.put(None)

    def wait(self, timeout_s: float) -> bool:
        """Wait until all records are written and the logger is closed. Returns False after a
        timeout."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def give_up(self, waited_s: float) -> None:
        self._fail(f"it was not done {waited_s:g} s after the run")

    def _run(self) -> None:
        try:
            while self.failure is None and (records := self._queue.get()) is not None:
                self._num_taken += len(records)
                self._logger.write(records)
        except Exception as error:  # noqa: BLE001 - training goes on after any error
            self._fail(failure_text(error))
        try:
            self._logger.close()
        except Exception as error:  # noqa: BLE001
            self._fail(failure_text(error))

    def _fail(self, reason: str) -> None:
        self.failure = self.failure or reason


def close_feeds(
    feeds: list[LoggerFeed], say: Callable[[str], None], timeout_s: float = CLOSE_S
) -> None:
    """End all loggers at the same time, and wait for them, at most `timeout_s` in total."""
    until = time.monotonic() + timeout_s
    for feed in feeds:
        feed.end()
    announce_after = min(PATIENCE_S, timeout_s)
    late = [feed for feed in feeds if not feed.wait(announce_after / len(feeds))]
    if late:
        names = " and ".join(feed.name for feed in late)
        say(f"waiting for {names} to take what is left: {timeout_s:g} s at most")
    for feed in late:
        if not feed.wait(max(0.0, until - time.monotonic())):
            feed.give_up(timeout_s)
