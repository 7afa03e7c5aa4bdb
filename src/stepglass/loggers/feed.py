"""Between a run and the loggers it writes to: a queue and a thread for each of them.

The records come from the run log's writer. No step waits for a logger's disk or network, and no
logger waits for another. A logger that fails is dropped, and the run goes on: run.jsonl has every
number.
"""

import queue
import threading
import time
from collections.abc import Callable

from stepglass.loggers.logger import Logger, failure_text
from stepglass.measure.records import RunRecord

CLOSE_S = 30.0  # how long the end of a run waits for what is not sent yet
PATIENCE_S = 1.0  # a wait longer than this is announced
MAX_BEHIND = 50_000  # records: some 100 MB


class LoggerFeed:
    """Hands records to one logger from a thread of its own.

    The thread is a daemon: a logger that hangs does not keep the process from ending.
    """

    def __init__(self, name: str, logger: Logger) -> None:
        self.name = name
        self.failure: str | None = None  # the first one; the logger gets nothing after it
        self._logger = logger
        self._queue: queue.SimpleQueue[list[RunRecord] | None] = queue.SimpleQueue()
        self._num_put = self._num_taken = 0  # each is changed by one thread only
        self._thread = threading.Thread(target=self._run, name=f"log-to-{name}", daemon=True)
        self._thread.start()

    def put(self, records: list[RunRecord]) -> None:
        """Queue records; returns at once. They must not be changed afterwards."""
        if self.failure is not None:
            return
        if self._num_put - self._num_taken > MAX_BEHIND:
            self._fail(f"it is {self._num_put - self._num_taken:,} records behind")
            return
        self._num_put += len(records)
        self._queue.put(records)

    def end(self) -> None:
        """Have the thread finish what is queued: no more records will come."""
        self._queue.put(None)

    def wait(self, timeout_s: float) -> bool:
        """Wait until everything is handed over and the logger is closed. Returns False if that
        takes longer."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def give_up(self, waited_s: float) -> None:
        self._fail(f"it was not done {waited_s:g} s after the run")

    def _run(self) -> None:
        try:
            while self.failure is None and (records := self._queue.get()) is not None:
                self._num_taken += len(records)
                self._logger.write(records)
        except Exception as error:  # noqa: BLE001 - whatever it is, training goes on
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
    """End all loggers at once, and wait for them, at most `timeout_s` in all."""
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
