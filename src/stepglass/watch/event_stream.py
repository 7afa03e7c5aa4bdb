"""Sends a run as a stream of server-sent events to any number of pages.

    shared = SharedRun(LiveRun(run_dir))
    return EventStream(shared, after=None, stopping=stopping)

The streams read the run themselves, so nothing is read while no page is open. Files are read in
worker threads, so that a slow disk does not block other requests.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Protocol

from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from stepglass.report.live import LiveEvent, LiveRun

# The trainer writes twice per second. Pages are updated less often, to leave the CPU to training.
# A new point still appears within two seconds.
POLL_S = 1.4
GLANCE_S = 0.25
SMALL = 1 << 19  # bytes of events; after a larger batch, look for more without a pause
HEARTBEAT_S = 10.0  # a proxy may close an idle connection
RETRY_MS = 1000


class SharedRun:
    """One run, read once for all pages that show it."""

    def __init__(self, run: LiveRun) -> None:
        self._run = run
        self._lock = asyncio.Lock()
        self._next_read = 0.0
        self.num_viewers = 0

    @contextmanager
    def viewed(self) -> Iterator[None]:
        self.num_viewers += 1
        try:
            yield
        finally:
            self.num_viewers -= 1

    async def missing(self, after: str | None, is_last: bool) -> list[LiveEvent]:
        """The events after `after`. Reads the file first if that is due, or on the last call."""
        async with self._lock:
            is_due = is_last or time.monotonic() >= self._next_read
            return await run_in_threadpool(self._read_on, after, is_due)

    def _read_on(self, after: str | None, is_due: bool) -> list[LiveEvent]:
        if is_due:
            is_more = self._run.advance()
            # Half the pause: with the whole pause, a page that returns after POLL_S could be
            # slightly too early.
            self._next_read = 0.0 if is_more else time.monotonic() + POLL_S / 2
        return self._run.events(after)

    async def detail(self, segment: int, after: int, until: int) -> bytes | None:
        """The rows between two lines. One request at a time, to limit the load on the disk."""
        async with self._lock:
            return await run_in_threadpool(self._run.detail, segment, after, until)

    def has_news(self, after: str | None) -> bool:
        return self._run.has_news(after)

    def is_behind(self) -> bool:
        """Is there more to read right now?"""
        return self._next_read == 0.0


class EventSource(Protocol):
    """Where a stream's events come from: one run, or several (`watch/run_group.py`)."""

    def viewed(self) -> AbstractContextManager[None]: ...
    async def missing(self, after: str | None, is_last: bool) -> list[LiveEvent]: ...
    def has_news(self, after: str | None) -> bool: ...
    def is_behind(self) -> bool: ...


class EventStream(StreamingResponse):
    """Server-sent events, until the client disconnects or the server stops."""

    media_type = "text/event-stream"

    def __init__(self, shared: EventSource, after: str | None, stopping: asyncio.Event) -> None:
        self._shared = shared
        super().__init__(_chunks(shared, after, stopping))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._shared.viewed():
            await super().__call__(scope, receive, send)


async def _chunks(
    shared: EventSource, after: str | None, stopping: asyncio.Event
) -> AsyncIterator[bytes]:
    yield b"retry: %d\n\n" % RETRY_MS
    last_sent = time.monotonic()
    while True:
        is_last = stopping.is_set()
        events = await shared.missing(after, is_last)
        if events:
            yield b"".join(_encoded(event) for event in events)
            last_sent, after = time.monotonic(), events[-1].id
        elif _is_quiet(last_sent):
            yield b":\n\n"
            last_sent = time.monotonic()
        if shared.is_behind() or sum(len(event.data) for event in events) > SMALL:
            await asyncio.sleep(0)  # there is more
        elif is_last:
            return
        else:
            await _pause(POLL_S, stopping)
            while not (stopping.is_set() or shared.has_news(after) or _is_quiet(last_sent)):
                await _pause(GLANCE_S, stopping)


async def _pause(seconds: float, stopping: asyncio.Event) -> None:
    """Wait, but return early if the server is stopping."""
    with suppress(TimeoutError):
        await asyncio.wait_for(stopping.wait(), seconds)


def _is_quiet(last_sent: float) -> bool:
    return time.monotonic() - last_sent >= HEARTBEAT_S


def _encoded(event: LiveEvent) -> bytes:
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (event.id.encode(), event.name.encode(), event.data)
