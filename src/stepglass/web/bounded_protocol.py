"""Limits the number of connections and the time that a client may take to send a request.

uvicorn's concurrency limit counts a connection only after it has sent a request, and uvicorn waits
for that request without a timeout. There is no setting for either, so this module extends its
protocol class. Requests refused here never reach the guard, so its headers are added by hand.
"""

import asyncio
import sys
from http import HTTPStatus

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from stepglass.web.guard import HEADERS


class BoundedProtocol(H11Protocol):
    """uvicorn's HTTP/1.1 protocol with limits."""

    max_connections = 32
    request_timeout_s = 10.0
    flush_timeout_s = 60.0  # for a client that does not read its response

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.max_connections:
            self._refuse(503, f"there are {self.max_connections} connections already")
        else:
            self._expect_request()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._set_deadline(None)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        is_early = self.conn.their_state is h11.DONE and bool(self.conn.trailing_data[0])
        if is_early and not self._is_waiting():
            # A second request before the first is answered. No browser does that. uvicorn would
            # stop reading, and not notice when the client of an endless stream disconnects.
            self.transport.abort()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._expect_request()

    def send_400_response(self, msg: str) -> None:
        """Answer a request that h11 cannot parse, for example one with no Host or two."""
        error = sys.exception()
        assert isinstance(error, h11.RemoteProtocolError)
        if "Host:" in str(error):
            self._refuse(403, "expected one Host")
        else:
            self._refuse(error.error_status_hint, "this is not HTTP as we know it")

    def _refuse(self, status: int, line: str) -> None:
        if self._is_waiting():
            body = f"{line}\n".encode()
            fields = HEADERS | {
                "content-type": "text/plain; charset=utf-8",
                "content-length": str(len(body)),
                "connection": "close",
            }
            head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
            first = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n"
            self.transport.write(f"{first}{head}\r\n".encode() + body)
        self._hang_up()

    def _is_waiting(self) -> bool:
        """Is the server waiting for the client to send a request?"""
        return self.cycle is None or self.cycle.response_complete

    def _expect_request(self) -> None:
        self._set_deadline(self.loop.call_later(self.request_timeout_s, self._on_deadline))

    def _on_deadline(self) -> None:
        if self._is_waiting():
            self._hang_up()

    def _hang_up(self) -> None:
        self.transport.close()  # sends buffered data first
        self._set_deadline(self.loop.call_later(self.flush_timeout_s, self.transport.abort))

    def _set_deadline(self, deadline: asyncio.TimerHandle | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = deadline
