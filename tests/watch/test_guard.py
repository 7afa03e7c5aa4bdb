"""Who the live page answers, and who not."""

import itertools
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from live_server import ROUTES, Live, assert_dressed, eventually, read_answer
from stepglass.watch.numbered_runs import NumberedRuns
from stepglass.web.guard import HEADERS, AccessRules, Key


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
    monkeypatch.setattr(NumberedRuns, "entries", lambda self: 1 / 0)
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
    with Live(rules=AccessRules(key=Key(8770))) as running:
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
