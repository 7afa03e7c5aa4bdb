"""A server: uvicorn, with the guard in front of the app.

app = PageApp(runs, page, assets, LiveRun, stopping).starlette()
answer_calls(app, rules, sockets, stopping, should_stop)
"""

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from stepglass.web.bounded_protocol import BoundedProtocol
from stepglass.web.guard import AccessRules, Guard

TICK_S = 0.5
GRACE_S = 2  # at the end, streams get this long to send their last events


class _Server(uvicorn.Server):
    """uvicorn's server, stopped by a function instead of signals, which the caller handles."""

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
        # uvicorn's own loop wakes up ten times per second, which costs training too much CPU time.
        while not (await self.on_tick(0) or self._should_stop()):
            await asyncio.sleep(TICK_S)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._stopping.set()
        await super().shutdown(sockets)
        for connection in list(self.server_state.connections):
            connection.transport.abort()  # the client has not read its response
        await asyncio.sleep(0)


def answer_calls(
    app: ASGIApp,
    rules: AccessRules,
    sockets: list[socket.socket],
    stopping: asyncio.Event,
    should_stop: Callable[[], bool],
    protocol: type[BoundedProtocol] = BoundedProtocol,
) -> None:
    """Serve until `should_stop` returns true (called twice per second). Closes the sockets."""
    config = uvicorn.Config(
        Guard(app, rules),
        loop="asyncio",
        http=protocol,
        ws="none",  # an upgraded connection would bypass the guard
        lifespan="off",
        interface="asgi3",
        log_config=None,
        log_level="critical",  # the guard logs bugs; nothing else needs logging
        access_log=False,
        workers=1,
        proxy_headers=False,
        server_header=False,
        h11_max_incomplete_event_size=16_384,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=GRACE_S,
    )
    asyncio.run(_Server(config, stopping, should_stop).serve(sockets=sockets))
