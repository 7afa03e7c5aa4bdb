"""`stepglass watch`: who is answered, what is streamed, and that it ends when it should.

Real sockets throughout; the run behind the page is a stand-in that says what it is told to.
"""

import asyncio
import contextlib
import http.client
import itertools
import json
import os
import pwd
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from helpers import command, open_run, prepare_tiny, tiny_args
from stepglass.cli import main
from stepglass.errors import ConfigError, LogError
from stepglass.report.live import LiveEvent, LiveRun
from stepglass.report.rows import LiveRows
from stepglass.watch import address, beside, server
from stepglass.watch import command as watch_command
from stepglass.watch.beside import Beside
from stepglass.watch.command import SETTINGS, WatchConfig, needs_token
from stepglass.watch.guard import HEADERS, Key, Rules
from stepglass.watch.limits import Limited
from stepglass.watch.listing import Runs

ROUTES = [
    "/",
    "/run/0",
    "/run/0/events",
    "/runs.json",
    "/page.css",
    "/page.js",
    "/favicon.ico",
    "/nothing",
]
PAGE = b"<!doctype html><title>a run</title>"
ASSETS = {
    "/page.css": ("text/css; charset=utf-8", b"body { margin: 0 }"),
    "/page.js": ("text/javascript; charset=utf-8", b"'use strict'"),
}


class FakeRun:
    """A run that grows when told to. Ids are places in it."""

    made = 0

    def __init__(self, run_dir: Path) -> None:
        type(self).made += 1
        self.lines = [b'{"n":0}', b'{"n":1}', b'{"n":2}']
        self.num_read = 0
        self.num_advances = 0
        self.num_glances = 0
        self.is_broken = False

    def advance(self) -> bool:
        self.num_advances += 1
        if self.is_broken:
            raise ZeroDivisionError("a bug of ours")
        self.num_read = min(self.num_read + 2, len(self.lines))  # a bounded piece
        return self.num_read < len(self.lines)

    def has_news(self, after: str | None) -> bool:
        self.num_glances += 1
        is_behind = after != str(self.num_read - 1)
        return is_behind or self.num_read < len(self.lines) or self.is_broken

    def detail(self, segment: int, after: int, until: int) -> bytes | None:
        return b"[%d,%d,%d]" % (segment, after, until) if segment == 0 else None

    def events(self, after: str | None) -> list[LiveEvent]:
        start = int(after) + 1 if after and after.isdecimal() else 0
        piece = range(start, min(start + 2, self.num_read))
        return [LiveEvent(str(n), "row", self.lines[n]) for n in piece]


@dataclass
class Live:
    """The server, in a thread of its own."""

    folder: Path = Path("out")
    is_run: bool = True
    rules: Rules = field(default_factory=Rules)
    protocol: type[Limited] = Limited
    runs: dict[Path, FakeRun] = field(default_factory=dict)

    def make_run(self, path: Path) -> FakeRun:
        return self.runs.setdefault(path, FakeRun(path))

    def __enter__(self) -> "Live":
        self.sockets = address.listen("127.0.0.1", 0)
        self.port = self.sockets[0].getsockname()[1]
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()
        return self

    def serve(self) -> None:
        stopping = asyncio.Event()
        runs = Runs(self.folder, self.is_run)
        app = server.app(runs, PAGE, ASSETS, lambda path: self.make_run(path), stopping)
        server.serve(app, self.rules, self.sockets, stopping, self.stop.is_set, self.protocol)

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        self.thread.join()

    def ask(self, path: str, method: str = "GET", **headers: str) -> "Answer":
        fields = {"Host": f"127.0.0.1:{self.port}"}
        fields |= {name.replace("_", "-"): value for name, value in headers.items()}
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        return self.send(f"{method} {path} HTTP/1.1\r\n{head}\r\n", method)

    def send(self, request: str, method: str = "GET") -> "Answer":
        """Bytes as they are: nothing tidies a path or adds a header."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as sock:
            sock.sendall(request.encode("latin-1"))
            return read_answer(sock, method)

    @contextlib.contextmanager
    def stream(self, path: str = "/run/0/events", **headers: str) -> Iterator["Stream"]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request("GET", path, headers=fields)
        with connection.getresponse() as response:
            assert response.status == 200
            assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
            try:
                yield Stream(response)
            finally:
                connection.close()


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


def read_answer(sock: socket.socket, method: str = "GET") -> Answer:
    with http.client.HTTPResponse(sock, method=method) as response:
        response.begin()
        is_stream = (response.headers["content-type"] or "").startswith("text/event-stream")
        body = b"" if is_stream else response.read()
        headers = {name.lower(): value for name, value in response.headers.items()}
        return Answer(response.status, headers, body)


class Stream:
    """Server-sent events as a browser would see them."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self._response = response

    def block(self) -> list[str] | None:
        """The lines up to the next empty one; None at the end."""
        lines = []
        for raw in self._response:
            line = raw.decode().rstrip("\n")
            if not line:
                return lines
            lines.append(line)
        return None

    def events(self, count: int) -> list[dict[str, str]]:
        """So many of them; fewer if the stream ends."""
        blocks = (block for block in iter(self.block, None) if block != [":"])
        events = (dict(line.split(": ", 1) for line in block) for block in blocks)
        return list(itertools.islice((event for event in events if "data" in event), count))


def eventually(is_so: Callable[[], bool]) -> None:
    for _ in range(2000):
        if is_so():
            return
        time.sleep(0.01)
    raise AssertionError("it never came")


@pytest.fixture(autouse=True)
def quick_polls(monkeypatch):
    monkeypatch.setattr(server, "POLL_S", 0.01)
    monkeypatch.setattr(server, "GLANCE_S", 0.01)
    monkeypatch.setattr("stepglass.watch.listing.LEAST_PAUSE_S", 0.0)
    monkeypatch.setattr("stepglass.watch.listing.PAUSE_SHARE", 0)


@pytest.fixture
def live() -> Iterator[Live]:
    with Live() as running:
        yield running


def assert_dressed(answer: Answer) -> None:
    for name, value in HEADERS.items():
        assert answer.headers[name] == value
    assert "server" not in answer.headers
    assert not [name for name in answer.headers if name.startswith("access-control-")]


# -- who is answered -----------------------------------------------------------------------------


def test_the_policy_is_the_one_that_was_decided_on():
    assert HEADERS["content-security-policy"] == (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'"
    )


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "LocalHost", "[::1]"])
def test_our_own_names_are_answered_with_any_port_or_none(live, name):
    for port in ("", f":{live.port}", ":9999"):  # a tunnel ends at a port of its own
        assert live.ask("/", Host=name + port).status == 200


def test_ipv6_is_answered_where_there_is_any(live):
    if len(live.sockets) == 1:
        pytest.skip("no IPv6 here")
    with socket.create_connection(("::1", live.port), timeout=20) as sock:
        sock.sendall(f"GET / HTTP/1.1\r\nHost: [::1]:{live.port}\r\n\r\n".encode())
        assert read_answer(sock).status == 200


FOREIGN_HOSTS = [
    "evil.example",
    "127.0.0.1.evil.example",
    "evil.example:8770",
    "localhost.",
    "localhost@evil.example",
    "127.0.0.1:80:80",
    "127.0.0.1:",
    "127.0.0.1:999999",
    "127.0.0.2",
    "2130706433",
    "0x7f.1",
    "0.0.0.0",
    "[::1",
    "[::1]evil",
    "::1",
    "[::]",
    "127.0.0.1, evil.example",
    "",
]


def test_another_host_is_refused(live):
    """A name that somebody has pointed at 127.0.0.1, say."""
    for host in FOREIGN_HOSTS:
        answer = live.ask("/", Host=host)
        assert (host, answer.status) == (host, 403)
        assert_dressed(answer)


def test_another_host_is_refused_everywhere_and_first_of_all(live):
    for path, method in itertools.product([*ROUTES, "/../x"], ["GET", "HEAD", "POST"]):
        assert live.ask(path, method, Host="evil.example").status == 403


@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize("hosts", [[], ["127.0.0.1", "127.0.0.1"], ["127.0.0.1", "evil.example"]])
def test_no_host_or_two_are_refused(live, version, hosts):
    head = "".join(f"Host: {host}\r\n" for host in hosts)
    answer = live.send(f"GET / HTTP/{version}\r\n{head}\r\n")
    assert answer.status == 403
    assert_dressed(answer)


@pytest.mark.parametrize(
    "method",
    ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "get", "X"],
)
def test_nothing_but_looking_is_allowed(live, method):
    for path in ROUTES:
        answer = live.ask(path, method)
        assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")
        assert_dressed(answer)


def test_a_body_is_ignored(live):
    head = "Host: 127.0.0.1\r\nContent-Length: 5\r\n\r\n"
    assert live.send(f"GET / HTTP/1.1\r\n{head}abcde").status == 200
    assert live.send(f"POST / HTTP/1.1\r\n{head}abcde", "POST").status == 405


NOT_OURS = [
    "/../x",
    "/..",
    "/../../etc/passwd",
    "/%2e%2e/",
    "/%2e%2e/%2e%2e/etc/passwd",
    "/..%2f..%2fetc/passwd",
    "/%252e%252e/",
    "/..%5c..%5cx",
    "/run/..%2f",
    "/run/..",
    "/run/0/..",
    "/run/0/../..",
    "/run/0/../../page.css",
    "/./page.css",
    "//page.css",
    "//evil.example/",
    "/page.css/",
    "/page.css/../page.js",
    "/page%2ecss",
    "/run/-1",
    "/run/99",
    "/run/99/events",
    "/run/%30",
    "/run/0/",
    "/run/0/events/",
    "/run/0x0",
    "/run/1e0",
    "/run/" + "9" * 1900,
    "/run/0/run.jsonl",
    "/run/out",
    "/run.jsonl",
    "/out/run.jsonl",
    "/RUNS.JSON",
    "/page.css%00",
    "/page.css;x",
    "http://evil.example/",
    "*",
]


def test_what_is_not_an_address_of_ours_is_not_found(live):
    Path("out").mkdir()
    Path("out/run.jsonl").write_text("{}\n")
    for path, method in itertools.product(NOT_OURS, ["GET", "HEAD"]):
        answer = live.ask(path, method)
        assert (path, answer.status) == (path, 404)
        assert_dressed(answer)


def test_every_answer_has_the_headers(live):
    for path, method in itertools.product(ROUTES, ["GET", "HEAD"]):
        answer = live.ask(path, method)
        assert answer.status == {"/favicon.ico": 204, "/nothing": 404}.get(path, 200)
        assert_dressed(answer)


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        ("GET /" + "a" * 3000 + " HTTP/1.1\r\nHost: localhost\r\n\r\n", 414),
        ("GET /?" + "a" * 3000 + " HTTP/1.1\r\nHost: localhost\r\n\r\n", 414),
        ("GET / HTTP/1.1\r\nHost: localhost\r\nX: " + "a" * 17_000 + "\r\n\r\n", 431),
        ("GET / HTTP/1.1\r\nHost: localhost\r\nX: " + "a" * 100_000, 431),
        ("GET /\r\n\r\n", 400),
        ("nonsense\r\n\r\n", 400),
        ("\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n", 400),
    ],
)
def test_what_is_too_long_or_no_http_is_refused_with_the_headers(live, request_, status):
    answer = live.send(request_)
    assert answer.status == status
    assert_dressed(answer)


def test_a_websocket_does_not_get_past_the_guard(live):
    upgrade = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec_WebSocket_Version": "13"}
    key = "dGhlIHNhbXBsZSBub25jZQ=="
    assert live.ask("/", **upgrade, Sec_WebSocket_Key=key).status == 200
    assert live.ask("/", **upgrade, Sec_WebSocket_Key=key, Host="evil.example").status == 403


def test_a_bug_is_an_answer_with_the_headers_and_a_trace_for_us(live, caplog, monkeypatch):
    monkeypatch.setattr(Runs, "entries", lambda self: 1 / 0)
    answer = live.ask("/runs.json")
    assert answer.status == 500
    assert_dressed(answer)
    assert b"division" not in answer.body
    eventually(lambda: "ZeroDivisionError" in caplog.text)
    assert live.ask("/").status == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site", "something-new"])
def test_a_script_or_frame_of_another_site_is_refused(live, site):
    """Another port of this host is `same-site`: somebody's notebook, say."""
    for path in ROUTES:
        for mode, dest in [("cors", "empty"), ("no-cors", "image"), ("navigate", "iframe")]:
            marks = {"Sec_Fetch_Site": site, "Sec_Fetch_Mode": mode, "Sec_Fetch_Dest": dest}
            assert live.ask(path, **marks).status == 403
    assert live.ask("/", Sec_Fetch_Site=site).status == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site", "none", "same-origin"])
def test_a_link_is_followed_wherever_it_stands(live, site):
    marks = {"Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "document"}
    assert live.ask("/", Sec_Fetch_Site=site, **marks).status == 200


def test_our_own_script_may_ask(live):
    marks = {"Sec_Fetch_Mode": "cors", "Sec_Fetch_Dest": "empty"}
    assert live.ask("/runs.json", Sec_Fetch_Site="same-origin", **marks).status == 200


# -- the token -----------------------------------------------------------------------------------


@pytest.fixture
def locked() -> Iterator[Live]:
    with Live(rules=Rules(key=Key(8770))) as running:
        yield running


def test_without_the_token_nothing_is_shown(locked):
    for path in ROUTES:
        answer = locked.ask(path)
        assert answer.status == 403
        assert_dressed(answer)
    assert b"open the whole address that `stepglass` printed" in locked.ask("/").body


def test_the_token_becomes_a_cookie_and_leaves_the_address(locked):
    token = locked.rules.key.token
    answer = locked.ask(f"/run/0?a=1&token={token}")
    assert (answer.status, answer.headers["location"]) == (303, "/run/0")
    assert_dressed(answer)
    cookie, *marks = answer.headers["set-cookie"].split("; ")
    assert cookie == f"stepglass_8770={token}"
    assert {mark.lower() for mark in marks} == {"httponly", "path=/", "samesite=strict"}
    for path in ROUTES[:-1]:
        assert locked.ask(path, Cookie=f"x=y; {cookie}; z=1").status in (200, 204)


def test_rows_are_not_shown_without_the_token_either(locked):
    answer = locked.ask("/run/0/rows?segment=0&after=0&until=9")
    assert (answer.status, answer.body[:4]) == (403, b"this")


def test_a_wrong_token_opens_nothing(locked):
    token = locked.rules.key.token
    for wrong in ("", "x", token[:-1], token + "x", "%00", "\xff" * 22):
        assert locked.ask(f"/?token={wrong}").status in (400, 403)
        assert locked.ask("/", Cookie=f"stepglass_8770={wrong}").status in (400, 403)
    assert locked.ask("/", Cookie=f"stepglass_8771={token}").status == 403
    assert b"of another server" in locked.ask("/?token=x").body


def test_a_token_does_not_make_up_for_a_wrong_host_method_or_address(locked):
    token = locked.rules.key.token
    assert locked.ask(f"/?token={token}", Host="evil.example").status == 403
    assert locked.ask(f"/?token={token}", "POST").status == 405
    assert locked.ask(f"//evil.example/?token={token}").status == 404


def test_a_token_for_one_time_opens_one_time(locked):
    """Others can read it on the browser's command line."""
    once = locked.rules.key.once()
    answer = locked.ask(f"/?token={once}")
    assert answer.status == 303
    assert locked.ask(f"/?token={once}").status == 403
    assert locked.ask("/", Cookie=f"stepglass_8770={once}").status == 403
    assert locked.ask("/", Cookie=answer.headers["set-cookie"].split(";")[0]).status == 200


# -- how much a caller may take ------------------------------------------------------------------


class Hasty(Limited):
    """Waits for hardly any time."""

    request_timeout_s = 0.3


class Crowded(Limited):
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
    assert Limited.max_connections == 32
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


# -- the stream ----------------------------------------------------------------------------------


def test_a_stream_begins_at_the_beginning_and_goes_on_as_the_run_does(live):
    with live.stream() as stream:
        assert stream.block() == ["retry: 1000"]
        assert stream.block() == ["id: 0", "event: row", 'data: {"n":0}']
        assert [event["id"] for event in stream.events(2)] == ["1", "2"]
        live.runs[Path("out")].lines.append(b'{"n":3}')
        assert stream.events(1) == [{"id": "3", "event": "row", "data": '{"n":3}'}]


def test_a_stream_goes_on_after_the_last_event_a_page_has_seen(live):
    with live.stream(Last_Event_ID="1") as stream:
        assert [event["id"] for event in stream.events(1)] == ["2"]
    with live.stream("/run/0/events?after=1") as stream:
        assert [event["id"] for event in stream.events(1)] == ["2"]
    with live.stream("/run/0/events?after=0", Last_Event_ID="1") as stream:  # the newer one
        assert [event["id"] for event in stream.events(1)] == ["2"]
    with live.stream(Last_Event_ID="x" * 500) as stream:  # none of ours
        assert [event["id"] for event in stream.events(1)] == ["0"]


def test_a_stream_without_news_shows_that_it_lives(live, monkeypatch):
    monkeypatch.setattr(server, "HEARTBEAT_S", 0.0)
    with live.stream() as stream:
        blocks = [stream.block() for _ in range(8)]
    assert [":"] in blocks[4:]


def test_a_run_is_read_once_for_all_who_look_and_only_then(live):
    FakeRun.made = 0
    assert live.ask("/run/0").status == 200
    assert live.ask("/run/0/events", "HEAD").status == 200
    assert FakeRun.made == 0
    with live.stream() as one, live.stream() as other:
        assert one.events(3) == other.events(3)
    assert FakeRun.made == 1


def test_nothing_is_read_when_nobody_looks(live):
    with live.stream() as stream:
        stream.events(3)
        run = live.runs[Path("out")]
        before = run.num_glances
        eventually(lambda: run.num_glances > before + 5)

    def is_at_rest() -> bool:
        before = run.num_glances
        time.sleep(20 * server.GLANCE_S)
        return run.num_glances == before

    eventually(is_at_rest)


def test_a_bug_in_reading_ends_the_stream_and_nothing_else(live, caplog):
    with live.stream() as stream:
        stream.events(3)
        live.runs[Path("out")].is_broken = True
        assert stream.events(1) == []
    eventually(lambda: "a bug of ours" in caplog.text)
    assert live.ask("/").status == 200


def test_a_server_that_is_told_to_stop_sends_what_is_left_and_ends():
    with Live() as live, live.stream() as stream:
        stream.events(3)
        live.runs[Path("out")].lines += [b'{"n":%d}' % n for n in range(3, 100)]
        live.stop.set()
        assert [event["id"] for event in stream.events(97)] == [str(n) for n in range(3, 100)]
        assert stream.block() is None
        live.thread.join()


def test_a_caller_that_does_not_read_cannot_keep_the_server_from_ending():
    with (
        Live() as live,
        socket.create_connection(("127.0.0.1", live.port), timeout=20) as sock,
    ):
        sock.sendall(b"GET /run/0/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        eventually(lambda: Path("out") in live.runs)
        live.runs[Path("out")].lines += [b'"' + b"x" * 10_000_000 + b'"'] * 3
        time.sleep(0.2)
        live.stop.set()
        live.thread.join()


def iteration(number: int) -> dict[str, Any]:
    phases = {"forward_backward": 9.0, "other": 1.0}
    record = {"kind": "iter", "iter": number, "loss": 4.0, "lr": 0.1, "grad_norm": 1.0}
    return record | {"tokens": 32, "wall_ms": 10.0, "step_ms": 9.0, "phases": phases, "mfu": None}


def test_a_real_run_is_streamed_as_it_grows():
    folder = write_run("out", {"kind": "start", "schema": 1}, iteration(0))
    with Live() as live:
        live.make_run = LiveRun
        with live.stream() as stream:
            wait_for_rows(stream, 1)
            with open(folder / "run.jsonl", "a") as log:
                log.write(json.dumps(iteration(1)) + "\n")
            wait_for_rows(stream, 1)


def test_a_page_that_looks_closer_gets_the_rows_of_some_lines(live):
    address = "/run/0/rows?segment=0&after=5&until=90"
    assert live.ask(address).status == 404  # it has no stream: nobody looks
    with live.stream() as stream:
        stream.events(1)
        answer = live.ask(address)
        assert (answer.status, answer.body) == (200, b"[0,5,90]")
        assert answer.headers["content-type"] == "application/json"
        assert live.ask(address.replace("segment=0", "segment=7")).status == 404
        assert live.ask(address.replace("run/0", "run/9")).status == 404
        assert live.ask(address, Host="evil.example").status == 403
        assert live.ask(address, Sec_Fetch_Site="cross-site").status == 403
        assert live.ask(address, "POST").status == 405


@pytest.mark.parametrize(
    "query",
    [
        "",
        "segment=0&after=0",
        "segment=0&after=9&until=9",
        "segment=0&after=9&until=1",
        "segment=-1&after=0&until=9",
        "segment=0&after=0&until=1e9",
        "segment=0&after=0&until=" + "9" * 16,
        "segment=x&after=0&until=9",
        "segment=0&after=%D9%A1&until=9",
        "segment=0&after=0&until=9%0A",
    ],
)
def test_rows_are_asked_for_with_numbers_or_not_at_all(live, query):
    with live.stream() as stream:
        stream.events(1)
        answer = live.ask(f"/run/0/rows?{query}")
        assert answer.status == 400
        assert_dressed(answer)


def test_every_iteration_of_a_long_run_can_be_asked_for(monkeypatch):
    monkeypatch.setattr("stepglass.report.live.OVERVIEW_ROWS", 500)
    monkeypatch.setattr("stepglass.report.live.NEW_ROWS", 50)
    monkeypatch.setattr(LiveRows, "most_rows", 1000)
    write_run("out", *(iteration(n) for n in range(6000)))
    with Live() as live:
        live.make_run = LiveRun
        with live.stream() as stream:
            event = stream.events(2)[-1]
            assert json.loads(event["data"])["count"] < 600
            answer = live.ask("/run/0/rows?segment=0&after=3000&until=3100")
            found = json.loads(answer.body)
            assert (found["after"], found["until"], found["count"]) == (3000, 3100, 100)
            assert "num" not in found["columns"]  # each stands for itself alone


def wait_for_rows(stream: Stream, count: int) -> None:
    while True:
        (event,) = stream.events(1)
        if event["event"] == "rows" and json.loads(event["data"])["count"] == count:
            return


# -- the list of runs ----------------------------------------------------------------------------


def write_run(path: str, *records: dict[str, Any], **settings: Any) -> Path:
    folder = Path(path)
    folder.mkdir(parents=True)
    lines = [json.dumps(record) + "\n" for record in records]
    (folder / "run.jsonl").write_text("".join(lines))
    if settings:
        (folder / "config.json").write_text(json.dumps(settings))
    return folder


def listed(live: Live) -> list[dict[str, Any]]:
    entries = json.loads(live.ask("/runs.json").body)
    assert isinstance(entries, list)
    return entries


def test_a_single_run_is_listed_under_0_even_before_it_exists(live):
    entry = {"id": 0, "name": "out", "state": "unknown"}
    unknown = {"step": None, "max_iters": None, "best_val_loss": None}
    assert listed(live) == [entry | unknown]
    write_run("out", {"kind": "iter", "iter": 399}, {"kind": "eval", "iter": 400}, max_iters=2000)
    Path("out/best.json").write_text('{"dir": "step-00000400-000001", "val_loss": 1.9}')
    known = {"step": 400, "max_iters": 2000, "best_val_loss": 1.9}
    run_lock = open_run(Path("out"))
    assert listed(live) == [entry | known | {"state": "running"}]
    run_lock.close()
    assert listed(live) == [entry | known | {"state": "killed"}]


@pytest.mark.parametrize("reason", ["finished", "target", "signal", "failed", "oom", "error"])
def test_a_run_that_has_ended_says_how(live, reason):
    write_run("out", {"kind": "iter", "iter": 5}, {"kind": "end", "reason": reason})
    assert listed(live)[0]["state"] == reason


def test_runs_keep_their_numbers_and_new_ones_get_new_numbers():
    write_run("runs/b")
    with Live(folder=Path("runs"), is_run=False) as live:
        assert [(entry["id"], entry["name"]) for entry in listed(live)] == [(0, "b")]
        assert live.ask("/run/1").status == 404
        write_run("runs/a/deep")
        assert live.ask("/run/1").status == 200  # listed or not
        assert [(e["id"], e["name"]) for e in listed(live)] == [(1, "a/deep"), (0, "b")]
        with live.stream("/run/1/events") as stream:
            stream.events(1)
        assert list(live.runs) == [Path("runs/a/deep")]


def test_a_folder_that_holds_no_run_yet_is_waited_for():
    Path("later").mkdir()
    with Live(folder=Path("later"), is_run=False) as live:
        assert listed(live) == []
        assert live.ask("/").body == PAGE
        assert live.ask("/run/0").status == 404
        Path("later/run.jsonl").write_text("")
        assert [entry["name"] for entry in listed(live)] == ["later"]


def test_hostile_names_and_values_are_listed_as_what_they_are():
    hostile = "runs/<script>alert(1)<\\script>\x1b[31m\udcff"
    write_run(hostile, {"kind": "end", "reason": ["x"]}, {"kind": "iter", "iter": 10**400})
    (Path(hostile) / "config.json").write_text('{"max_iters": true}')
    (Path(hostile) / "best.json").write_text('{"val_loss": 1e999}')
    with Live(folder=Path("runs"), is_run=False) as live:
        (entry,) = listed(live)
        assert entry["name"] == "<script>alert(1)<\\script>?[31m?"
        assert (entry["step"], entry["max_iters"], entry["best_val_loss"]) == (None, None, None)
        assert live.ask("/runs.json").headers["content-type"] == "application/json"


def test_feeds_that_nobody_looks_at_are_dropped_when_there_are_many(monkeypatch):
    monkeypatch.setattr(server, "MOST_FEEDS", 2)
    for name in "abcd":
        write_run(f"runs/{name}")
    with Live(folder=Path("runs"), is_run=False) as live:
        listed(live)
        with live.stream("/run/0/events") as kept:
            kept.events(3)
            for number in (1, 2, 3):
                with live.stream(f"/run/{number}/events") as stream:
                    stream.events(3)
            live.runs[Path("runs/a")].lines.append(b'{"n":3}')
            assert kept.events(1)[0]["id"] == "3"


def test_watching_writes_nothing():
    folder = write_run("runs/a", {"kind": "iter", "iter": 1})
    before = {path: path.stat().st_mtime_ns for path in [folder, *folder.iterdir()]}
    with Live(folder=Path("runs"), is_run=False) as live:
        listed(live)
        with live.stream("/run/0/events") as stream:
            stream.events(3)
    assert before == {path: path.stat().st_mtime_ns for path in [folder, *folder.iterdir()]}


# -- the command ---------------------------------------------------------------------------------


def port_of(sockets: list[socket.socket]) -> int:
    return int(sockets[0].getsockname()[1])


@contextlib.contextmanager
def listening(host: str = "127.0.0.1", port: Any = "auto") -> Iterator[int]:
    sockets = address.listen(host, port)
    try:
        yield port_of(sockets)
    finally:
        for sock in sockets:
            sock.close()


def test_the_first_free_port_is_taken_then_any(monkeypatch):
    with listening() as first:
        monkeypatch.setattr(address, "FIRST_PORT", first)
        monkeypatch.setattr(address, "NUM_PORTS", 1)
        with listening() as other:
            assert other != first


def test_a_port_that_is_taken_is_an_error_that_names_it():
    with listening() as port, pytest.raises(ConfigError, match=f"--port={port}: is taken; choose"):
        address.listen("127.0.0.1", port)


def test_a_port_that_is_taken_for_ipv6_alone_is_taken():
    try:
        other = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("no IPv6 here")
    with other, pytest.raises(ConfigError, match="is taken"):
        address.listen("localhost", other.getsockname()[1])


def test_without_ipv6_there_is_ipv4(monkeypatch):
    real = address._listening

    def without_ipv6(where: str, port: int) -> socket.socket:
        if ":" in where:
            raise OSError(97, "Address family not supported by protocol")
        return real(where, port)

    monkeypatch.setattr(address, "_listening", without_ipv6)
    (only,) = address.listen("localhost", "auto")
    only.close()


@pytest.mark.parametrize("host", ["192.0.2.1", "no-such-host.invalid", "a b", "\udcff", "x" * 300])
def test_a_host_that_is_not_this_machine_is_an_error(host):
    with pytest.raises(ConfigError, match="--host="):
        address.listen(host, "auto")


@pytest.mark.parametrize("port", ["-1", "65536", "x", "1.5", ""])
def test_a_port_that_is_none_is_an_error(port):
    with pytest.raises(ConfigError, match="port"):
        SETTINGS.build(SETTINGS.parse([f"--port={port}"])[1])


def test_a_host_that_others_can_reach_needs_the_token():
    with pytest.raises(ConfigError, match=r"--token=False: others can reach --host=0\.0\.0\.0"):
        SETTINGS.build(SETTINGS.parse(["--host=0.0.0.0", "--token=False"])[1])
    assert needs_token(WatchConfig(host="0.0.0.0"))
    assert not needs_token(WatchConfig(token=False))
    assert needs_token(WatchConfig(token=True))


def account(uid: int, shell: str = "/bin/bash", home: str = "/") -> pwd.struct_passwd:
    return pwd.struct_passwd(("name", "x", uid, uid, "", home, shell))


@pytest.mark.parametrize(
    ("others", "is_asked"),
    [
        ([], False),
        ([account(1001)], True),
        ([account(0), account(33)], False),
        ([account(65534, "/usr/sbin/nologin")], False),
        ([account(1001, "/bin/false")], False),
        ([account(1001, home="no-such-home")], False),
    ],
)
def test_a_token_is_asked_for_where_somebody_else_can_log_in(monkeypatch, others, is_asked):
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    monkeypatch.setattr(pwd, "getpwall", lambda: [account(1000), *others])
    assert needs_token(WatchConfig()) is is_asked


def test_a_token_is_asked_for_where_the_accounts_are_not_known(monkeypatch):
    monkeypatch.setattr(pwd, "getpwall", lambda: [account(0)])
    monkeypatch.setattr(os, "getuid", lambda: 70_000)
    assert needs_token(WatchConfig())


def test_every_address_of_this_machine_is_a_name_where_all_are_listened_to():
    rules = Rules(address.names_of("0.0.0.0"), allows_own_address=True)
    with Live(rules=rules) as live:
        assert live.ask("/", Host=f"{socket.gethostname()}:{live.port}").status == 200
        assert live.ask("/", Host="127.0.0.1").status == 200
        assert live.ask("/", Host="192.0.2.1").status == 403
        assert live.ask("/", Host="evil.example").status == 403


def test_what_can_be_watched(monkeypatch):
    write_run("out/a")
    Path("empty").mkdir()
    Path("begins").mkdir()
    Path("begins/LOCK").touch()
    Path("nanogpt.log").write_text("iter 0: loss 4.2, time 5ms\n")
    assert watch_command.find("out/a") == (Path("out/a"), True)
    assert watch_command.find("out/a/run.jsonl") == (Path("out/a"), True)
    assert watch_command.find("begins") == (Path("begins"), True)
    assert watch_command.find("out") == (Path("out"), False)
    assert watch_command.find("empty") == (Path("empty"), False)
    with pytest.raises(LogError, match=r"stepglass report nanogpt\.log"):
        watch_command.find("nanogpt.log")
    with pytest.raises(LogError, match="nowhere: no such file or directory"):
        watch_command.find("nowhere")


def test_a_browser_gets_a_token_of_its_own(monkeypatch):
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url) or True)
    monkeypatch.setattr(server, "serve", lambda *_: eventually(lambda: bool(opened)))
    Path("runs").mkdir()
    lines: list[str] = []
    cfg = WatchConfig(open=True, token=True)
    watch_command.serve(Path("runs"), False, cfg, lines.append, lines.append, lambda: True)
    assert opened[0].split("=")[0] == lines[0].split("=")[0]
    assert opened != lines


def start_watching(*words: str) -> tuple["subprocess.Popen[str]", str]:
    process = subprocess.Popen(
        command("watch", *words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    return process, line


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_command_with_exit_code_0_and_open_streams(number):
    write_run("out", {"kind": "iter", "iter": 0})
    process, line = start_watching("out", "--token=False")
    match = re.fullmatch(
        r"watching out: http://127\.0\.0\.1:(\d+)/  \(Ctrl-C ends\)", line.strip("\n")
    )
    assert match, (line, process.communicate())
    connection = http.client.HTTPConnection("127.0.0.1", int(match[1]), timeout=60)
    connection.request("GET", "/run/0/events")
    with connection.getresponse() as response:
        assert response.readline() == b"retry: 1000\n"
        process.send_signal(number)
        assert process.communicate(timeout=60) == ("", "")
        assert process.returncode == 0
        response.read()
    connection.close()


def test_the_command_opens_the_page_with_the_token_it_printed():
    write_run("out", {"kind": "iter", "iter": 0})
    process, line = start_watching("out", "--token")
    port, token = re.search(r"http://127\.0\.0\.1:(\d+)/\?token=(\S{22})  ", line).groups()
    connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=60)
    connection.request("GET", f"/?token={token}")
    with connection.getresponse() as response:
        cookie = response.headers["set-cookie"].split(";")[0]
        response.read()
    statuses = []
    for path in ROUTES[:2] + ROUTES[3:]:
        connection.request("GET", path, headers={"Cookie": cookie})
        with connection.getresponse() as response:
            statuses.append(response.status)
            response.read()
    connection.close()
    assert statuses == [200, 200, 200, 200, 200, 204, 404]
    process.terminate()
    assert process.communicate(timeout=60) == ("", "")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["nowhere"], "nowhere: no such file or directory"),
        ([".", "--port=99999"], "--port: port must be at most 65535, found 99999"),
        ([".", "--prt=1"], "unknown setting --prt; did you mean port?"),
        ([".", "x"], "expected one run or folder, found"),
    ],
)
def test_a_mistake_is_one_line(capsys, words, reason):
    assert main(["watch", *words]) == 2
    assert capsys.readouterr().err.startswith(f"error: {reason}")


# -- beside a run --------------------------------------------------------------------------------


def is_listening(url: str) -> bool:
    port = int(re.search(r":(\d+)/", url)[1])
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=20):
        return True
    return False


def test_the_page_beside_a_run_starts_before_the_run_does_and_ends_with_it():
    said: list[str] = []
    with Beside(Path("out"), said.append) as page:
        url = page.address(60)
        assert url is not None
        assert is_listening(url)
        page.announce()
        child = page._process
    assert child.returncode == 0
    assert not is_listening(url)
    again = "the live page has ended with the run; see it again with: stepglass watch out"
    assert said == [f"watch: {url}", again]
    assert not Path("out").exists()


def test_the_page_beside_a_run_is_polite():
    with Beside(Path("out"), print) as page:
        pid = page._process.pid
        own = os.getpriority(os.PRIO_PROCESS, 0)
        assert os.getpriority(os.PRIO_PROCESS, pid) == min(19, own + beside.NICENESS)
        assert os.getpgid(pid) == pid  # a Ctrl-C in the terminal does not reach it
        assert os.getsid(pid) == os.getsid(0)  # priorities are compared within a session
        assert page.address(60)


def test_a_page_that_was_never_announced_ends_in_silence():
    said: list[str] = []
    with Beside(Path("out"), said.append):
        pass
    assert said == []


@pytest.mark.parametrize("program", ["./no-such-program", "/bin/false", "/bin/cat"])
def test_a_page_that_cannot_start_is_one_warning(monkeypatch, program):
    monkeypatch.setattr(sys, "executable", program)
    monkeypatch.setattr(beside, "START_S", 2.0)
    said: list[str] = []
    with Beside(Path("out"), said.append) as page:
        page.announce()
    assert len(said) == 1
    assert said[0].startswith("warning: there is no live page: ")


PARENT = """
import sys, time
from pathlib import Path
from stepglass.watch.beside import Beside
with Beside(Path("out"), print) as page:
    print(page.address(60), page._process.pid, flush=True)
    time.sleep(600)
"""


def test_the_page_ends_with_a_trainer_that_is_killed():
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    url, pid = parent.stdout.readline().split()
    assert is_listening(url)
    parent.kill()
    parent.communicate()
    eventually(lambda: not is_listening(url) and is_gone(int(pid)))


def is_gone(pid: int) -> bool:
    """Ended; whoever inherits an orphan may take its time to bury it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_training_shows_its_page_and_says_where_to_see_it_again(capsys):
    prepare_tiny()
    assert main(["train", *tiny_args(watch=True)]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^watch: http://127\.0\.0\.1:\d+/", out, re.M)
    assert out.index("watch: http") < out.index("iter 0:")
    assert out.endswith("see it again with: stepglass watch out\n")


def test_training_that_cannot_begin_says_nothing_of_a_page(capsys):
    prepare_tiny()
    capsys.readouterr()
    assert main(["train", *tiny_args(watch=True, block_size=10**6)]) == 2
    printed = capsys.readouterr()
    assert "page" not in printed.out + printed.err
    assert "watch" not in printed.out + printed.err
