"""Real processes of `stepglass`, forked from a server that has imported everything already."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, Any

SERVER = Path(__file__).parent / "fork_server.py"
PARENT, GROUP = 1, 2  # fields of a process's status, after its name


class Forked:
    """A command that has been started, with the part of `subprocess.Popen` that tests use."""

    def __init__(self, output: int | None, errors: int, status: int) -> None:
        self.stdout = None if output is None else os.fdopen(output, encoding="utf-8")
        self.stderr = os.fdopen(errors, encoding="utf-8")
        self._status = os.fdopen(status, "rb", buffering=0)
        self.pid = int(self._status.readline())
        self.returncode: int | None = None

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def poll(self) -> int | None:
        if self.returncode is None and select.select([self._status], [], [], 0)[0]:
            self.returncode = int(self._status.readline())
        return self.returncode

    def wait(self, timeout: float = 120) -> int:
        if self.returncode is None:
            select.select([self._status], [], [], timeout)
        code = self.poll()
        assert code is not None, f"process {self.pid} did not end within {timeout} s"
        return code

    def communicate(self, timeout: float = 120) -> tuple[str, str]:
        """The rest of its output and of its errors, when it has ended."""
        out = self.stdout.read() if self.stdout is not None and not self.stdout.closed else ""
        self.wait(timeout)
        error = self.stderr.read()
        self.close()
        return out, error

    def close(self) -> None:
        for file in (self.stdout, self.stderr, self._status):
            if file is not None:
                file.close()


class ForkServer:
    """Talks to fork_server.py."""

    def __init__(self) -> None:
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, str(SERVER), str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                env=os.environ | {"OMP_NUM_THREADS": "1"},
            )
        self._started: list[Forked] = []

    def start(
        self,
        *argv: str,
        cwd: Path | None = None,
        stdout: IO[Any] | None = None,
        threads: int = 1,
        encoding: str = "utf-8",
        new_session: bool = False,
        rest_s: float = 0.0,
        may_gather: bool = True,
        env: dict[str, str] | None = None,
    ) -> Forked:
        """Start a command. Its output goes to a pipe, or to a given file together with errors."""
        order = {
            "argv": argv,
            "cwd": str((cwd or Path()).resolve()),
            "threads": threads,
            "encoding": encoding,
            "new_session": new_session,
            "rest_s": rest_s,
            "may_gather": may_gather,
            "env": env or {},
        }
        output, its_output = os.pipe() if stdout is None else (None, os.dup(stdout.fileno()))
        errors, its_errors = os.pipe()
        status, its_status = os.pipe()
        if stdout is not None:
            os.dup2(its_output, its_errors)
        files = [its_output, its_errors, its_status]
        socket.send_fds(self._orders, [json.dumps(order).encode()], files)
        for file in files:
            os.close(file)
        self._started.append(Forked(output, errors, status))
        return self._started[-1]

    def run(self, *argv: str, **options: Any) -> "subprocess.CompletedProcess[str]":
        """Run a command to its end."""
        forked = self.start(*argv, **options)
        out, error = forked.communicate()
        return subprocess.CompletedProcess(argv, forked.wait(), out, error)

    def end_all(self) -> None:
        """End what a test has left running."""
        for forked in self._started:
            if forked.returncode is None:
                forked.kill()
            forked.close()
        self._started.clear()

    def close(self) -> None:
        self._orders.close()
        self._process.wait()


def status_of_all(field: int, value: int) -> dict[int, str]:
    """The processes that have a value in a field of their status, each with its state."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if int(fields[field]) == value:
            found[int(path.parent.name)] = fields[0]
    return found


def pid_of_rank(launcher: Forked, rank: int) -> int:
    """The process that torchrun has started as a rank."""
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == launcher.pid and f"RANK={rank}\0" in (path / "environ").read_text():
                return int(path.name)
        except OSError:  # it has just ended
            continue
    raise AssertionError(f"no process is rank {rank}")


def wait_until(is_true: Any, within_s: float = 60, every_s: float = 0.01) -> None:
    deadline = time.monotonic() + within_s
    while not is_true():
        assert time.monotonic() < deadline, f"it did not come about within {within_s} s"
        time.sleep(every_s)
