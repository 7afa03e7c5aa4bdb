"""The live page's server on real sockets, for tests. The run behind the page is a stand-in that
says what it is told to."""

import asyncio
import contextlib
import http.client
import itertools
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stepglass.report.live import LiveEvent
from stepglass.watch.numbered_runs import NumberedRuns
from stepglass.watch.page_app import PageApp
from stepglass.web import address, server
from stepglass.web.bounded_protocol import BoundedProtocol
from stepglass.web.guard import HEADERS, AccessRules

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
    rules: AccessRules = field(default_factory=AccessRules)
    protocol: type[BoundedProtocol] = BoundedProtocol
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
        runs = NumberedRuns(self.folder, self.is_run)
        app = PageApp(runs, PAGE, ASSETS, lambda path: self.make_run(path), stopping).starlette()
        server.answer_calls(
            app, self.rules, self.sockets, stopping, self.stop.is_set, self.protocol
        )

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


def assert_dressed(answer: Answer) -> None:
    for name, value in HEADERS.items():
        assert answer.headers[name] == value
    assert "server" not in answer.headers
    assert not [name for name in answer.headers if name.startswith("access-control-")]


def iteration(number: int) -> dict[str, Any]:
    phases = {"forward_backward": 9.0, "other": 1.0}
    record = {"kind": "iter", "iter": number, "loss": 4.0, "lr": 0.1, "grad_norm": 1.0}
    return record | {"tokens": 32, "wall_ms": 10.0, "step_ms": 9.0, "phases": phases, "mfu": None}


def write_run(path: str, *records: dict[str, Any], **settings: Any) -> Path:
    folder = Path(path)
    folder.mkdir(parents=True)
    lines = [json.dumps(record) + "\n" for record in records]
    (folder / "run.jsonl").write_text("".join(lines))
    if settings:
        (folder / "config.json").write_text(json.dumps(settings))
    return folder
