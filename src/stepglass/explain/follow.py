"""`explain --follow`: prints new lines as they come, and findings as soon as they are true.

Only whole lines are read. Each finding is printed once. Findings that can only be known at the end
(the last line is an evaluation, the run stopped early) are printed at the end.
"""

import os
import time
from collections.abc import Callable, Iterator
from typing import BinaryIO

from stepglass.explain.finding import Finding
from stepglass.explain.render import show
from stepglass.explain.render.languages import Words
from stepglass.explain.render.wrap import text_width
from stepglass.explain.rules import all_rules
from stepglass.explain.study import Study, study
from stepglass.logs.detect import Intake
from stepglass.logs.lines import LONGEST
from stepglass.logs.log import Log

POLL_S = 0.2
EVERY_S = 1.0  # apply the rules at most this often, not at every line


class Follower:
    """Reads the bytes of a log as they arrive, and reports findings."""

    def __init__(
        self,
        words: Words,
        device: str | None,
        say: Callable[[str], None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._words = words
        self._width = text_width() - 2  # each line is marked
        self._device = device
        self._say = say
        self._now = now
        self._intake = Intake()
        self._rest = b""
        self._said: set[tuple[str, str]] = set()
        self._next_look = 0.0

    def feed(self, data: bytes, pass_through: Callable[[bytes], None] | None) -> None:
        """Read new bytes. The last line may be incomplete."""
        if pass_through is not None:
            pass_through(data)
        whole = self._rest + data
        end = whole.rfind(b"\n") + 1
        ready, self._rest = whole[:end], whole[end:]
        if len(self._rest) > LONGEST:  # a progress bar without newlines, or binary data
            ready += self._rest + b"\n"
            self._rest = b""
        if not ready:
            return
        self._intake.feed(ready.replace(b"\r\n", b"\n"))
        is_between_lines = not self._rest  # do not print a finding in the middle of a line
        is_history = pass_through is None  # the existing part of a file is judged once, later
        if is_between_lines and not is_history and self._now() >= self._next_look:
            self.look()

    def look(self) -> None:
        """Report new findings."""
        began = self._now()
        self._look()
        took = self._now() - began
        self._next_look = self._now() + max(EVERY_S, 10 * took)  # use at most a tenth of a core

    def _look(self) -> None:
        result = self.study(is_finished=False)
        if result is None:
            return
        for finding in all_rules.findings(result):
            self._announce(finding)

    def study(self, is_finished: bool) -> Study | None:
        log = self._intake.peek()
        if log is None or all(segment.is_empty() for segment in log.segments):
            return None
        return study(log, self._device, is_finished)

    def finish(self, pass_through: Callable[[bytes], None] | None) -> Study | None:
        """Read the last line and study the complete log."""
        if self._rest:
            if pass_through is not None:
                pass_through(b"\n")
            self._intake.feed(self._rest)
            self._rest = b""
        self._intake.log().finish()
        return self.study(is_finished=True)

    def log(self) -> Log:
        return self._intake.log()

    def _announce(self, finding: Finding) -> None:
        key = (finding.rule, finding.variant)
        if key in self._said:
            return
        self._said.add(key)
        for line in show.finding_lines(finding, self._words, len(self._said), self._width):
            if line:
                self._say(line)


def growing(file: BinaryIO, is_pipe: bool, sleep: Callable[[float], None]) -> Iterator[bytes]:
    """Yield the data of a file or pipe as it grows. A pipe ends. A file never ends: b"" means that
    there is nothing new yet."""
    while True:
        data = file.read1(1 << 16) if hasattr(file, "read1") else file.read(1 << 16)
        if data:
            yield data
        elif is_pipe:
            return
        else:
            yield b""
            if os.fstat(file.fileno()).st_size < file.tell():
                file.seek(0)  # the file was truncated and is being rewritten
            sleep(POLL_S)
