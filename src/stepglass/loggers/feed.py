"""Loggers for people who live elsewhere: TensorBoard, wandb, trackio.

    --log_to=tensorboard,wandb

run.jsonl stays the one place with every number. These get its records from the run log's writer,
each through a `Feed`: a queue and a thread of its own, so that no step waits for a disk or a
network, and no logger for another. One that cannot be had ends the command before the run has
begun; one that fails later is dropped, and the run goes on.

The tags are documented in docs/loggers.md. The packages are optional and imported by name, when
they are asked for.
"""

import queue
import threading
import time
from collections.abc import Callable
from typing import Protocol

from stepglass.loggers.packages import reason_of
from stepglass.measure.run_log import Record

CLOSE_S = 30.0  # how long the end of a run waits for what is not sent yet
PATIENCE_S = 1.0  # a wait longer than this is announced
MAX_BEHIND = 50_000  # records: some 100 MB


class Logger(Protocol):
    """A place that numbers go to. It may be slow and it may raise: a `Feed` stands before it."""

    def write(self, records: list[Record]) -> None: ...

    def close(self) -> None: ...


class LoggerFeed:
    """Hands records to one logger from a thread of its own.

    The thread is a daemon: a logger that hangs does not keep the process.
    """

    def __init__(self, name: str, logger: Logger) -> None:
        self.name = name
        self.failure: str | None = None  # the first one: after it the logger gets nothing
        self._logger = logger
        self._queue: queue.SimpleQueue[list[Record] | None] = queue.SimpleQueue()
        self._num_put = self._num_taken = 0  # each is changed by one thread only
        self._thread = threading.Thread(target=self._run, name=f"log-to-{name}", daemon=True)
        self._thread.start()

    def put(self, records: list[Record]) -> None:
        """Queue records; returns at once. They must not be changed afterwards."""
        if self.failure is not None:
            return
        if self._num_put - self._num_taken > MAX_BEHIND:
            self._fail(f"it is {self._num_put - self._num_taken:,} records behind")
            return
        self._num_put += len(records)
        self._queue.put(records)

    def end(self) -> None:
        """No more will come: finish in the background."""
        self._queue.put(None)

    def wait(self, timeout_s: float) -> bool:
        """Until all is handed over and the logger closed; False if that takes longer."""
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
            self._fail(reason_of(error))
        try:
            self._logger.close()
        except Exception as error:  # noqa: BLE001
            self._fail(reason_of(error))

    def _fail(self, reason: str) -> None:
        self.failure = self.failure or reason


def close(feeds: list[LoggerFeed], say: Callable[[str], None], timeout_s: float = CLOSE_S) -> None:
    """End the loggers, all at once, and wait for them: not longer than `timeout_s` in all."""
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
