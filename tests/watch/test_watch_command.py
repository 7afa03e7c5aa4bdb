"""The `watch` command: what it finds, where it listens, and that it ends when it should."""

import contextlib
import http.client
import os
import pwd
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers import command
from live_server import ROUTES, Live, eventually, write_run
from stepglass.cli import main
from stepglass.errors import ConfigError, LogError
from stepglass.watch import command as watch_command
from stepglass.watch.command import SETTINGS, WatchConfig
from stepglass.web import address, server
from stepglass.web.access import needs_token
from stepglass.web.guard import AccessRules


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
    rules = AccessRules(address.names_of("0.0.0.0"), allows_own_address=True)
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
    assert watch_command.find_runs("out/a") == (Path("out/a"), True)
    assert watch_command.find_runs("out/a/run.jsonl") == (Path("out/a"), True)
    assert watch_command.find_runs("begins") == (Path("begins"), True)
    assert watch_command.find_runs("out") == (Path("out"), False)
    assert watch_command.find_runs("empty") == (Path("empty"), False)
    with pytest.raises(LogError, match=r"stepglass report nanogpt\.log"):
        watch_command.find_runs("nanogpt.log")
    with pytest.raises(LogError, match="nowhere: no such file or directory"):
        watch_command.find_runs("nowhere")


def test_a_browser_gets_a_token_of_its_own(monkeypatch):
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url) or True)
    monkeypatch.setattr(server, "answer_calls", lambda *_: eventually(lambda: bool(opened)))
    Path("runs").mkdir()
    lines: list[str] = []
    cfg = WatchConfig(open=True, token=True)
    watch_command.serve_page(Path("runs"), False, cfg, lines.append, lines.append, lambda: True)
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
