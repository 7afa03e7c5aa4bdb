"""The routes of the live page's server: the page, the list of runs, a stream of events for each
run or for several that are compared, and the rows of a part of a run for zooming in.

The server reads run directories and writes nothing. The guard does the access control.
"""

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from stepglass.report.live import LiveRun
from stepglass.watch.event_stream import EventStream, SharedRun
from stepglass.watch.numbered_runs import NumberedRuns
from stepglass.watch.run_group import RunGroup

MOST_SHARED_RUNS = 16  # kept in memory; runs that a page shows are never dropped
MOST_COMPARED = 8  # runs on one page
LONGEST_ID = 400
NUMBER = re.compile(r"[0-9]{1,15}")  # the number of a segment or a line

MakeRun = Callable[[Path], LiveRun]


class PageApp:
    """Handles requests. Setting `stopping` ends the streams."""

    def __init__(
        self,
        runs: NumberedRuns,
        page: bytes,
        assets: Mapping[str, tuple[str, bytes]],
        make_run: MakeRun,
        stopping: asyncio.Event,
    ) -> None:
        self._runs = runs
        self._page = page
        self._assets = assets
        self._make_run = make_run
        self._stopping = stopping
        self._shared: dict[Path, SharedRun] = {}
        self._listing = asyncio.Lock()

    def starlette(self) -> Starlette:
        """The Starlette app with all routes."""
        routes = [
            Route("/", self._show_page),
            Route("/runs.json", self._list_runs),
            Route("/favicon.ico", self._show_no_icon),
            Route("/compare/{ids:path}/events", self._send_events_of_several),
            Route("/compare/{ids:path}", self._show_comparison),
            Route("/run/{id:int}", self._show_run),
            Route("/run/{id:int}/events", self._send_events),
            Route("/run/{id:int}/rows", self._send_rows),
            *(Route(path, self._send_asset) for path in self._assets),
        ]
        app = Starlette(routes=routes)
        app.router.redirect_slashes = False
        return app

    async def _run_dir(self, request: Request) -> Path:
        return await self._path_of(request.path_params["id"])

    async def _path_of(self, number: int) -> Path:
        async with self._listing:
            path = await run_in_threadpool(self._runs.path, number)
        if path is None:
            raise HTTPException(404, "there is no such run\n")
        return path

    async def _compared_dirs(self, request: Request) -> list[Path]:
        ids = request.path_params["ids"].split("/")
        is_repeated = len(set(ids)) < len(ids)
        if is_repeated or not all(map(NUMBER.fullmatch, ids)) or not 2 <= len(ids) <= MOST_COMPARED:
            raise HTTPException(404, f"expected 2 to {MOST_COMPARED} numbers of runs\n")
        return [await self._path_of(int(number)) for number in ids]

    async def _shared_run(self, path: Path) -> SharedRun:
        if path not in self._shared:
            run = await run_in_threadpool(self._make_run, path)
            idle = [known for known, shared in self._shared.items() if not shared.num_viewers]
            for known in idle:
                if len(self._shared) >= MOST_SHARED_RUNS:
                    del self._shared[known]
            # Another request may have added the run while this one was waiting.
            self._shared.setdefault(path, SharedRun(run))
        return self._shared[path]

    async def _show_page(self, request: Request) -> Response:
        return HTMLResponse(self._page)

    async def _show_run(self, request: Request) -> Response:
        await self._run_dir(request)
        return HTMLResponse(self._page)

    async def _show_comparison(self, request: Request) -> Response:
        await self._compared_dirs(request)
        return HTMLResponse(self._page)

    async def _send_events(self, request: Request) -> Response:
        return await self._stream(request, [await self._run_dir(request)])

    async def _send_events_of_several(self, request: Request) -> Response:
        return await self._stream(request, await self._compared_dirs(request))

    async def _stream(self, request: Request, paths: list[Path]) -> Response:
        if request.method == "HEAD":
            return Response(media_type=EventStream.media_type)
        # A browser that reconnects sends the header. A page that opens a new stream cannot set
        # headers, so it uses the query.
        after = request.headers.get("last-event-id") or request.query_params.get("after")
        is_an_id = after is not None and len(after) <= LONGEST_ID
        shared = [await self._shared_run(path) for path in paths]
        source = shared[0] if len(shared) == 1 else RunGroup(shared)
        return EventStream(source, after if is_an_id else None, self._stopping)

    async def _send_rows(self, request: Request) -> Response:
        path = await self._run_dir(request)
        wanted = _numbers(request, "segment", "after", "until")
        if wanted is None or wanted[1] >= wanted[2]:
            raise HTTPException(400, "expected numbers: segment, after, until\n")
        if path not in self._shared:  # every open page has a stream, so no page shows this run
            raise HTTPException(404, "nobody looks at this run\n")
        data = await self._shared[path].detail(*wanted)
        if data is None:
            raise HTTPException(404, "there are no such rows\n")
        return Response(data, media_type="application/json")

    async def _list_runs(self, request: Request) -> Response:
        async with self._listing:
            entries = await run_in_threadpool(self._runs.entries)
        return Response(json.dumps(entries, allow_nan=False), media_type="application/json")

    async def _show_no_icon(self, request: Request) -> Response:
        return Response(status_code=204)

    async def _send_asset(self, request: Request) -> Response:
        kind, data = self._assets[request.scope["path"]]
        return Response(data, media_type=kind)


def _numbers(request: Request, *names: str) -> tuple[int, ...] | None:
    """These query parameters as numbers, or None if one is missing or not a number."""
    texts = [request.query_params.get(name, "") for name in names]
    return tuple(map(int, texts)) if all(map(NUMBER.fullmatch, texts)) else None
