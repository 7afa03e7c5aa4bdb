"""The live page's server: the page, the list of runs, a stream of events for each run, and the rows
of a part of it for those who look closer.

    serve(app(runs, page, assets, make_run, stopping), rules, sockets, stopping, should_stop)

It reads run directories and writes nothing. A run is read once for all who look at it, by the
streams themselves: nobody there, nothing read. Files are read in worker threads, so that a slow
disk keeps nobody else waiting. What may be asked, and by whom, is the guard's business.
"""

import asyncio
import json
import re
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from stepglass.report.live import LiveEvent, LiveRun
from stepglass.watch.guard import Guard, Rules
from stepglass.watch.limits import Limited
from stepglass.watch.listing import Runs

# The trainer writes twice a second. Pages get it in fewer pieces: a point is still seen within two
# seconds, and a training has the machine to itself in between.
POLL_S = 1.4
GLANCE_S = 0.25
SMALL = 1 << 19  # bytes of events: whoever gets more may be missing more
HEARTBEAT_S = 10.0  # a sign of life, or whatever stands between may cut the line
RETRY_MS = 1000
MOST_FEEDS = 16  # kept ready; those that somebody looks at are never dropped
LONGEST_ID = 200
NUMBER = re.compile(r"[0-9]{1,15}")  # a segment or a line
TICK_S = 0.5
GRACE_S = 1  # for streams to send what is left when the server ends

MakeRun = Callable[[Path], LiveRun]


class Feed:
    """One run, read for everybody who looks at it."""

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
        """What somebody who has seen `after` has not. Reads on if it is time, or the last time."""
        async with self._lock:
            is_due = is_last or time.monotonic() >= self._next_read
            return await run_in_threadpool(self._read_on, after, is_due)

    def _read_on(self, after: str | None, is_due: bool) -> list[LiveEvent]:
        if is_due:
            is_more = self._run.advance()
            # Not the whole pause: who comes back on time must not be early.
            self._next_read = 0.0 if is_more else time.monotonic() + POLL_S / 2
        return self._run.events(after)

    async def detail(self, segment: int, after: int, until: int) -> bytes | None:
        """The rows between two lines. One at a time: whoever asks for many has to wait."""
        async with self._lock:
            return await run_in_threadpool(self._run.detail, segment, after, until)

    def has_news(self, after: str | None) -> bool:
        return self._run.has_news(after)

    def is_behind(self) -> bool:
        """Is there more to read at once?"""
        return self._next_read == 0.0


class EventStream(StreamingResponse):
    """Server-sent events of one run, until the caller leaves or the server ends."""

    media_type = "text/event-stream"

    def __init__(self, feed: Feed, after: str | None, stopping: asyncio.Event) -> None:
        self._feed = feed
        super().__init__(_chunks(feed, after, stopping))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._feed.viewed():
            await super().__call__(scope, receive, send)


async def _chunks(feed: Feed, after: str | None, stopping: asyncio.Event) -> AsyncIterator[bytes]:
    yield b"retry: %d\n\n" % RETRY_MS
    last_sent = time.monotonic()
    while True:
        is_last = stopping.is_set()
        events = await feed.missing(after, is_last)
        if events:
            yield b"".join(_encoded(event) for event in events)
            last_sent, after = time.monotonic(), events[-1].id
        elif _is_quiet(last_sent):
            yield b":\n\n"
            last_sent = time.monotonic()
        if feed.is_behind() or sum(len(event.data) for event in events) > SMALL:
            await asyncio.sleep(0)  # there is more
        elif is_last:
            return
        else:
            await _pause(POLL_S, stopping)
            while not (stopping.is_set() or feed.has_news(after) or _is_quiet(last_sent)):
                await _pause(GLANCE_S, stopping)


async def _pause(seconds: float, stopping: asyncio.Event) -> None:
    """A while, or until the server is told to end."""
    with suppress(TimeoutError):
        await asyncio.wait_for(stopping.wait(), seconds)


def _is_quiet(last_sent: float) -> bool:
    return time.monotonic() - last_sent >= HEARTBEAT_S


def _encoded(event: LiveEvent) -> bytes:
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (event.id.encode(), event.name.encode(), event.data)


def app(
    runs: Runs,
    page: bytes,
    assets: Mapping[str, tuple[str, bytes]],
    make_run: MakeRun,
    stopping: asyncio.Event,
) -> Starlette:
    """What there is to ask for. `stopping` ends the streams."""
    feeds: dict[Path, Feed] = {}
    listing = asyncio.Lock()

    async def run_dir(request: Request) -> Path:
        async with listing:
            path = await run_in_threadpool(runs.path, request.path_params["id"])
        if path is None:
            raise HTTPException(404, "there is no such run\n")
        return path

    async def feed_of(path: Path) -> Feed:
        if path not in feeds:
            run = await run_in_threadpool(make_run, path)
            for idle in [known for known, feed in feeds.items() if not feed.num_viewers]:
                if len(feeds) >= MOST_FEEDS:
                    del feeds[idle]
            feeds.setdefault(path, Feed(run))  # somebody may have been quicker
        return feeds[path]

    async def show_page(request: Request) -> Response:
        return HTMLResponse(page)

    async def show_run(request: Request) -> Response:
        await run_dir(request)
        return HTMLResponse(page)

    async def send_events(request: Request) -> Response:
        path = await run_dir(request)
        if request.method == "HEAD":
            return Response(media_type=EventStream.media_type)
        # A browser that connects again sends the header; a page that opens a new stream cannot.
        after = request.headers.get("last-event-id") or request.query_params.get("after")
        is_an_id = after is not None and len(after) <= LONGEST_ID
        return EventStream(await feed_of(path), after if is_an_id else None, stopping)

    async def send_rows(request: Request) -> Response:
        path = await run_dir(request)
        wanted = _numbers(request, "segment", "after", "until")
        if wanted is None or wanted[1] >= wanted[2]:
            raise HTTPException(400, "expected numbers: segment, after, until\n")
        if path not in feeds:  # rows are for pages: they have a stream
            raise HTTPException(404, "nobody looks at this run\n")
        data = await feeds[path].detail(*wanted)
        if data is None:
            raise HTTPException(404, "there are no such rows\n")
        return Response(data, media_type="application/json")

    async def list_runs(request: Request) -> Response:
        async with listing:
            entries = await run_in_threadpool(runs.entries)
        return Response(json.dumps(entries, allow_nan=False), media_type="application/json")

    async def show_no_icon(request: Request) -> Response:
        return Response(status_code=204)

    async def send_asset(request: Request) -> Response:
        kind, data = assets[request.scope["path"]]
        return Response(data, media_type=kind)

    routes = [
        Route("/", show_page),
        Route("/runs.json", list_runs),
        Route("/favicon.ico", show_no_icon),
        Route("/run/{id:int}", show_run),
        Route("/run/{id:int}/events", send_events),
        Route("/run/{id:int}/rows", send_rows),
        *(Route(path, send_asset) for path in assets),
    ]
    made = Starlette(routes=routes)
    made.router.redirect_slashes = False
    return made


def _numbers(request: Request, *names: str) -> tuple[int, ...] | None:
    """Numbers of the address, or None if one of them is none."""
    texts = [request.query_params.get(name, "") for name in names]
    return tuple(map(int, texts)) if all(map(NUMBER.fullmatch, texts)) else None


class _Server(uvicorn.Server):
    """uvicorn's, told to end by a function instead of by signals it would take for itself."""

    def __init__(
        self, config: uvicorn.Config, stopping: asyncio.Event, should_stop: Callable[[], bool]
    ) -> None:
        super().__init__(config)
        self._stopping = stopping
        self._should_stop = should_stop

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def main_loop(self) -> None:
        # uvicorn's own wakes ten times a second: too often beside a training.
        while not (await self.on_tick(0) or self._should_stop()):
            await asyncio.sleep(TICK_S)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._stopping.set()
        await super().shutdown(sockets)
        for connection in list(self.server_state.connections):
            connection.transport.abort()  # its caller has not read what it asked for
        await asyncio.sleep(0)


def serve(
    page_app: ASGIApp,
    rules: Rules,
    sockets: list[socket.socket],
    stopping: asyncio.Event,
    should_stop: Callable[[], bool],
    protocol: type[Limited] = Limited,
) -> None:
    """Answer until `should_stop`, which is asked twice a second. Closes the sockets."""
    config = uvicorn.Config(
        Guard(page_app, rules),
        loop="asyncio",
        http=protocol,
        ws="none",  # an upgraded connection would go past the guard
        lifespan="off",
        interface="asgi3",
        log_config=None,
        log_level="critical",  # the guard tells of bugs, the rest is noise
        access_log=False,
        workers=1,
        proxy_headers=False,
        server_header=False,
        h11_max_incomplete_event_size=16_384,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=GRACE_S,
    )
    asyncio.run(_Server(config, stopping, should_stop).serve(sockets=sockets))
