"""How much a caller of the live page may take."""

import contextlib
import http.client
import socket
import time
from pathlib import Path

import pytest

from live_server import Live, assert_dressed, eventually, read_answer
from stepglass.web.bounded_protocol import BoundedProtocol


class Hasty(BoundedProtocol):
    """Waits for hardly any time."""

    request_timeout_s = 0.3


class Crowded(BoundedProtocol):
    max_connections = 2


@pytest.mark.parametrize(
    "sent",
    [
        "",
        "GET / HT",
        "GET / HTTP/1.1\r\nHost: localhost\r\nX: ",
        "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nabc",
        "GET / HTTP/1.1\r\nHost: localhost\r\n\r\nGET / HT",
    ],
)
def test_a_caller_that_does_not_finish_its_request_is_cut_off(sent):
    with (
        Live(protocol=Hasty) as live,
        socket.create_connection(("127.0.0.1", live.port), timeout=20) as sock,
    ):
        sock.sendall(sent.encode())
        while sock.recv(65536):
            pass


def test_a_stream_is_not_cut_off():
    with Live(protocol=Hasty) as live, live.stream() as stream:
        stream.events(3)
        time.sleep(3 * Hasty.request_timeout_s)
        run = live.runs[Path("out")]
        run.lines.append(b'{"n":3}')
        assert stream.events(1)[0]["data"] == '{"n":3}'


def test_there_are_32_connections_and_no_more(live):
    assert BoundedProtocol.max_connections == 32
    with contextlib.ExitStack() as stack:
        for _ in range(32):
            sock = socket.create_connection(("127.0.0.1", live.port), timeout=20)
            stack.enter_context(sock)
            sock.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert read_answer(sock).status == 200
        with socket.create_connection(("127.0.0.1", live.port), timeout=20) as sock:
            answer = read_answer(sock)  # it need not even ask
            assert answer.status == 503
            assert_dressed(answer)
    eventually(lambda: is_answered(live))


def is_answered(live: Live) -> bool:
    try:
        return live.ask("/").status == 200
    except (OSError, http.client.HTTPException):
        return False


def test_streams_that_are_left_make_room(monkeypatch):
    with Live(protocol=Crowded) as live:
        for _ in range(5):
            with live.stream() as stream:
                stream.events(1)
            eventually(lambda: is_answered(live))


@pytest.mark.parametrize("pause_s", [0.0, 0.1])
def test_a_second_request_during_a_stream_ends_it(live, pause_s):
    """uvicorn would stop reading, and not see when the caller leaves."""
    with socket.create_connection(("127.0.0.1", live.port), timeout=20) as sock:
        sock.sendall(b"GET /run/0/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        time.sleep(pause_s)
        sock.sendall(b"\0\0 nonsense\r\n\r\n" * 20)
        with contextlib.suppress(ConnectionResetError):
            while sock.recv(65536):
                pass
    assert live.ask("/").status == 200
