"""A run that is being written, as events for a page: what `run.jsonl` has gained since the last.

    run = LiveRun(run_dir)
    while run.advance():                  # reads a piece of the file; False when there is no more
        ...
    run.has_news(after=None)              # is it worth while to read on? A glance, no more
    for event in run.events(after=None):  # or after the id of the last event a page has seen
        ...

An event's id is a place in the file, so that a page can go on where it was, even with a server that
was started anew: what it gets twice replaces what it had. The file is only ever read, and only
whole lines of it.
"""

import json
import os
import stat
import time
import zlib
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from stepglass import lock
from stepglass.explain.study import Study, study
from stepglass.logs.log import Log
from stepglass.logs.recognise import Intake
from stepglass.logs.stepglass_log import RunLog
from stepglass.report import pack, story, stream
from stepglass.report.rows import AllRows
from stepglass.report.stream import Place

PIECE = 1 << 22  # bytes read at once
LONGEST_LINE = 1 << 20
LONGEST_HEAD = (
    256  # of its first line: a file is known by it, since numbers of files are used again
)
LARGEST_BATCH = 1 << 20  # bytes of events handed out at once
MOST_ROWS = 16_384  # in a message
# Between two looks of the rules: short at first, when much changes, and longer each time; and never
# less than so many times what a look costs. Training needs the machine.
FIRST_PAUSE_S = 3.0
LONGEST_PAUSE_S = 60.0
PAUSE_SHARE = 1000
END = b'"kind":"end"'


@dataclass(frozen=True)
class LiveEvent:
    """One server-sent event."""

    id: str
    name: str
    data: bytes


@dataclass(frozen=True)
class Seen:
    """What a page has: the file up to an offset, and which story."""

    file: int
    offset: int
    story: int

    @property
    def id(self) -> str:
        return f"{self.file}-{self.offset}-{self.story}"


class LiveRun:
    """Follows one run directory. Not to be used from two threads at once."""

    def __init__(
        self,
        run_dir: Path,
        now: Callable[[], float] = time.monotonic,
        worked: Callable[[], float] = time.thread_time,
    ) -> None:
        self._run_dir = run_dir
        self._path = run_dir / "run.jsonl"
        self._now = now
        self._worked = worked
        self._words = story.all_words()
        self._story = b""
        self._story_number = 0
        self._is_running = False
        self._begin(file=0)

    def _begin(self, file: int) -> None:
        """Nothing is read yet of this file."""
        self._file = file
        self._size = 0
        self._intake = Intake(AllRows, RunLog())
        self._marks: list[tuple[int, Place]] = [(0, Place())]
        self._is_stale = True
        self._next_look = 0.0
        self._pause_s = FIRST_PAUSE_S

    @property
    def _offset(self) -> int:
        return self._marks[-1][0]

    # -- reading ---------------------------------------------------------------------------------

    def has_news(self, after: str | None) -> bool:
        """Is there something that a page which has seen `after` is missing, or about to be?"""
        if after != Seen(self._file, self._offset, self._story_number).id:
            return True  # another page had it read
        try:
            size = os.stat(self._path).st_size
        except OSError:
            size = 0
        return size != self._size or self._is_due()

    def advance(self) -> bool:
        """Read on. True if there is more to read at once."""
        try:
            with open(self._path, "rb", opener=without_waiting) as file:
                is_more = self._read(file)
        except FileNotFoundError:
            is_more = False
            if self._offset:
                self._begin(file=0)
        except OSError:
            return False  # for now: the next try may do better
        if not is_more and self._is_due():
            self._look()
        return is_more

    def _read(self, file: BinaryIO) -> bool:
        """Read a piece; is there likely more?"""
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            return False
        identity = zlib.crc32(b"%d " % status.st_ino + file.readline(LONGEST_HEAD))
        if identity != self._file or status.st_size < self._offset:
            self._begin(file=identity)
        self._size = status.st_size
        file.seek(self._offset)
        data = file.read(PIECE)
        end = data.rfind(b"\n") + 1
        if not end and len(data) < LONGEST_LINE:
            return False
        end = end or len(data)  # no log has such a line: what it holds is passed over
        self._intake.feed(data[:end].replace(b"\r\n", b"\n"))
        self._marks.append((self._offset + end, stream.place_of(self._log())))
        self._is_stale = True
        if END in data:
            self._next_look = 0.0  # the last word should not wait
        return len(data) == PIECE

    def _log(self) -> Log:
        log = self._intake.peek()
        assert log is not None, "the reader is known"
        return log

    def _is_due(self) -> bool:
        """Is there more to tell, and is it not too soon?"""
        if self._is_running and lock.owner_of(self._run_dir) is None:
            self._is_stale, self._next_look = True, 0.0  # it is over, and perhaps without a word
        return self._is_stale and self._now() >= self._next_look

    def _look(self) -> None:
        """Tell the story again."""
        began, self._is_stale = self._worked(), False
        told = self._tell()
        self._is_running = told["state"]["name"] == "running"
        self._story = as_json(told)
        self._story_number = zlib.crc32(self._story)
        self._next_look = self._now() + max(self._pause_s, PAUSE_SHARE * (self._worked() - began))
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)

    def _tell(self) -> story.Story:
        log = self._log()
        has_rows = any(not segment.is_empty() for segment in log.segments)
        known = study(log, is_finished=False) if has_rows else Study(log, None)
        return story.tell(known, self._run_dir.resolve().name, self._run_dir, self._words)

    # -- telling ---------------------------------------------------------------------------------

    def events(self, after: str | None) -> list[LiveEvent]:
        """What a page that has seen the event `after` is missing, the oldest first; not all at
        once if it is much."""
        seen = read_id(after)
        result: list[LiveEvent] = []
        if seen is None or seen.file != self._file or seen.offset > self._size:
            seen = Seen(self._file, 0, 0)
            result.append(LiveEvent(seen.id, "reset", b"{}"))
        if seen.offset > self._offset:
            return []  # a server that was started anew has not read so far yet
        size = 0
        index = bisect_right(self._marks, seen.offset, key=lambda mark: mark[0]) - 1
        while index < len(self._marks) - 1 and size < LARGEST_BATCH:
            end = self._end_of_batch(index)
            has_now = Seen(self._file, self._marks[end][0], seen.story)
            messages = stream.messages(
                self._log(), self._marks[index][1], self._marks[end][1], pack.plain
            )
            batch = [LiveEvent(seen.id, "rows", as_json(message)) for message in messages]
            # Only with the last of them has a page all of it.
            result += [*batch[:-1], LiveEvent(has_now.id, "rows", batch[-1].data)]
            size += sum(len(event.data) for event in batch)
            index, seen = end, has_now
        is_all = index == len(self._marks) - 1
        if is_all and self._story and seen.story != self._story_number:
            seen = Seen(self._file, seen.offset, self._story_number)
            result.append(LiveEvent(seen.id, "story", self._story))
        return result

    def _end_of_batch(self, start: int) -> int:
        """As many pieces as go well into one message."""
        first = self._marks[start][1]
        end = start + 1
        while end < len(self._marks) - 1:
            place = self._marks[end + 1][1]
            if place.segment != first.segment or place.rows - first.rows > MOST_ROWS:
                break
            end += 1
        return end


def as_json(value: object) -> bytes:
    """One line, as an event needs it."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")


def without_waiting(path: str, flags: int) -> int:
    """Open a file. A pipe of that name would keep us until somebody wrote to it."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def read_id(text: str | None) -> Seen | None:
    """What a page says it has. It may say anything."""
    try:
        file, offset, told = (int(part) for part in (text or "").split("-"))
    except ValueError:
        return None
    return Seen(file, offset, told) if file >= 0 and offset >= 0 else None
