"""Serves the live page of a training run in a separate process while the run lasts.

    with Beside(run_dir, say) as page:   # starts at once and loads while torch loads
        page.announce()                  # prints one line: the address, or a warning

The page must not slow the run down, so its process has a low priority and shares only the run's
directory with the trainer. The process ends when its standard input is closed. That is a pipe that
only the trainer holds, so the page ends even if the trainer is killed.
"""

import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from stepglass.errors import StepglassError, os_reason
from stepglass.units import printable

NICENESS = 10
# Training waits at most this long for the page to start. It takes a second on an idle machine, but
# a process of low priority can take half a minute beside busy ones.
START_S = 60.0
END_S = 3.0  # the page gets this long to show how the run ended


class Beside:
    """Starts the page, and ends it at the end of the `with` block. Never raises, because the run is
    more important than the page."""

    def __init__(self, run_dir: Path, say: Callable[[str], None]) -> None:
        self._run_dir = run_dir
        self._say = say
        self._process: subprocess.Popen[bytes] | None = None
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._line = ""
        self._is_announced = False

    def __enter__(self) -> Self:
        # -P: do not import files of the current folder as modules. The page gets its own process
        # group, so that Ctrl-C in the terminal reaches only the trainer. It does not get its own
        # session, because Linux shares the CPU equally among sessions before it considers
        # priorities.
        command = [sys.executable, "-P", "-m", "stepglass.watch.beside", os.fspath(self._run_dir)]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                process_group=0,
            )
            if hasattr(os, "setpriority"):
                # Set by the parent: the child would first load everything at full priority.
                niceness = min(19, os.getpriority(os.PRIO_PROCESS, 0) + NICENESS)
                os.setpriority(os.PRIO_PROCESS, self._process.pid, niceness)
        except OSError as error:
            self._line = os_reason(error)
        if self._process is not None:
            self._reader.start()
        return self

    def _read(self) -> None:
        """Read output up to the address. If none comes, keep the last line: it is the error."""
        assert self._process is not None
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._line = line.decode(errors="replace").strip()
            if _is_address(self._line):
                return

    def address(self, timeout_s: float) -> str | None:
        """The address of the page, or None if it did not start."""
        if self._process is not None:
            self._reader.join(timeout_s)
        return self._line if _is_address(self._line) else None

    def announce(self) -> None:
        """Print the address of the page, or why it did not start."""
        found = self.address(START_S)
        self._is_announced = found is not None
        reason = printable(self._line) or f"no answer within {START_S:g} s"
        self._say(
            f"watch: {found}"
            if found
            else f"warning: there is no live page: {reason}; to try again: {self._command()}"
        )

    def _command(self) -> str:
        return f"stepglass watch {shlex.quote(printable(str(self._run_dir)))}"

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None:
            self._end(self._process)
        if self._is_announced:
            self._say(f"the live page has ended with the run; see it again with: {self._command()}")

    def _end(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._reader.join()
        process.stdout.close()


def _is_address(line: str) -> bool:
    return line.startswith("http://")


def run_page(argv: list[str]) -> int:
    """The main function of the page's process."""
    from stepglass.watch.command import WatchConfig, serve_page  # noqa: PLC0415

    is_over = threading.Event()

    def wait_for_the_end() -> None:
        while os.read(0, 4096):
            pass
        is_over.set()

    threading.Thread(target=wait_for_the_end, daemon=True).start()
    try:
        serve_page(
            Path(argv[0]), True, WatchConfig(), print_once, lambda line: None, is_over.is_set
        )
    except StepglassError as error:
        print_once(str(error))
        return error.exit_code
    return 0


def print_once(line: str) -> None:
    """Print one line, then discard all later output, because the trainer stops reading."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    os.close(nowhere)


if __name__ == "__main__":
    sys.exit(run_page(sys.argv[1:]))
