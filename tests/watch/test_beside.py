"""The live page beside a training run."""

import contextlib
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from helpers import prepare_tiny, tiny_args
from live_server import eventually
from stepglass.cli import main
from stepglass.watch import beside
from stepglass.watch.beside import Beside


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
    assert child.returncode == 0  # and so it listens no more; its port may be another test's by now
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
    assert said[0].endswith("; to try again: stepglass watch out")


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
    eventually(lambda: is_gone(int(pid)))


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
