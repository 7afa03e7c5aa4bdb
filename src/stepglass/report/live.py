"""A run that is being written, as events for a page: what `run.jsonl` has gained since the last.

    run = LiveRun(run_dir)
    while run.advance():                  # reads a piece of the file; False when there is no more
        ...
    run.has_news(after=None)              # is it worth while to read on? A glance, no more
    for event in run.events(after=None):  # or after the id of the last event a page has seen
        ...
    run.detail(0, 1000, 2000)             # the rows of these lines, where a page looks closer

Of a long run a page gets no more than it can draw, and the server keeps no more than it needs for
that; whoever looks closer gets the rows of that part, which are read from the file again. So what
is kept does not grow with the run.

An event's id is a place in the file, so that a page can go on where it was, even with a server that
was started anew: what it gets twice replaces what it had. The file is only ever read, and only
whole lines of it.
"""

import json
import os
import stat
import time
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from stepglass.explain.study import Study, study
from stepglass.logs.detect import Intake
from stepglass.logs.formats.stepglass_log import RunLog
from stepglass.logs.log import Log
from stepglass.report import pack, story, stream
from stepglass.report.rows import AllRows, Columns, LiveRows, num_hidden, thinned
from stepglass.report.stream import Place
from stepglass.run_dir import lock

PIECE = 1 << 22  # bytes read at once
LONGEST_LINE = 1 << 20
LONGEST_HEAD = (
    256  # of its first line: a file is known by it, since numbers of files are used again
)
# Of a run a page gets so many rows at first, thinned if it has more: some 2 MB. Later it gets every
# row, unless it has been away for longer than this.
OVERVIEW_ROWS = 32_000
NEW_ROWS = 2048
LEAST_SHARE = 64  # of a long file that is still being read, a page is told in so many parts
DETAIL_ROWS = 16_000
MOST_READ_AGAIN = 24 << 20  # bytes, for one who looks closer: a second's work
MOST_MARKS = 4096
MARK_BYTES = 1 << 18  # between two places of the file whose line is known, or more in a long one
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
        self._is_behind = False
        self._intake = Intake(LiveRows, RunLog())
        self._marks: list[tuple[int, Place]] = [(0, Place())]
        self._lines: list[tuple[int, int]] = [(0, 0)]  # places in the file, and the lines before
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
                self._is_behind = is_more = self._read(file)
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
        identity = identity_of(file)
        if identity != self._file or status.st_size < self._offset:
            self._begin(file=identity)
        self._size = status.st_size
        file.seek(self._offset)
        data = file.read(PIECE)
        end = data.rfind(b"\n") + 1
        if not end and len(data) < LONGEST_LINE:
            return False
        end = end or len(data)  # no log has such a line: what it holds is passed over
        self._mark_lines(data[:end])
        self._intake.feed(data[:end].replace(b"\r\n", b"\n"))
        self._marks.append((self._offset + end, stream.place_of(self._log())))
        if len(self._marks) > MOST_MARKS:  # the older half may be known less finely
            del self._marks[1 : MOST_MARKS // 2 : 2]
        self._is_stale = True
        if END in data:
            self._next_look = 0.0  # the last word should not wait
        return len(data) == PIECE

    def _mark_lines(self, data: bytes) -> None:
        """Where lines begin in what is about to be read, now and then."""
        line, done = self._log().num_lines, 0
        while (cut := data.find(b"\n", done + MARK_BYTES) + 1) or done < len(data):
            cut = cut or len(data)
            line += data.count(b"\n", done, cut)
            self._lines.append((self._offset + cut, line))
            done = cut
        if len(self._lines) > MOST_MARKS:
            del self._lines[1:-1:2]

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
        if self._is_worth_telling(seen.offset):
            result += self._rows(seen)
            seen = Seen(self._file, self._offset, seen.story)
        is_all = seen.offset == self._offset
        if is_all and self._story and seen.story != self._story_number:
            seen = Seen(self._file, seen.offset, self._story_number)
            result.append(LiveEvent(seen.id, "story", self._story))
        return result

    def _is_worth_telling(self, offset: int) -> bool:
        """Is there more than a page has? Of a long file not after every piece of it."""
        new = self._offset - offset
        return new > 0 and (not self._is_behind or new * LEAST_SHARE >= self._size)

    def _rows(self, seen: Seen) -> list[LiveEvent]:
        """What was read since: all of it, or of a long run its share of the overview."""
        index = bisect_right(self._marks, seen.offset, key=lambda mark: mark[0]) - 1
        (start, here), (end, there) = self._marks[index], self._marks[-1]
        most = -(-OVERVIEW_ROWS * (end - start) // max(self._size, end))
        if not self._is_behind:
            most = max(most, NEW_ROWS)
        is_long = stream.num_rows(self._log(), here, there) > most
        # Made small they take longer than on the loopback line, except where much is sent.
        how = pack.small if is_long else pack.plain
        messages = stream.messages(self._log(), here, there, how, most=most)
        batch = [LiveEvent(seen.id, "rows", as_json(message)) for message in messages]
        has_now = Seen(self._file, end, seen.story)
        # Only with the last of them has a page all of it.
        return [*batch[:-1], LiveEvent(has_now.id, "rows", batch[-1].data)]

    # -- looking closer ----------------------------------------------------------------------------

    def detail(self, segment: int, after: int, until: int) -> bytes | None:
        """The rows of these lines as a message, as many as can be drawn; None if there are none."""
        log = self._log()
        if segment >= len(log.segments):
            return None
        columns = stream.rows_of(log.segments[segment]).between(after, until)
        if num_hidden([columns]) and len(columns["iter"]) < DETAIL_ROWS:
            columns = self._read_again(after, until) or columns
        columns = thinned(columns, DETAIL_ROWS)
        if not columns or not len(columns["iter"]):
            return None
        message = stream.rows_message(segment, after, columns, pack.plain, has_lines=True)
        return as_json({**message, "until": until})

    def _read_again(self, after: int, until: int) -> Columns | None:
        """Every row of these lines, from the file; None if that is too much, or no longer there."""
        first = bisect_right(self._lines, after, key=lambda mark: mark[1]) - 1
        last = bisect_left(self._lines, until, key=lambda mark: mark[1])
        if last == len(self._lines):
            return None
        (start, line), (end, _) = self._lines[first], self._lines[last]
        if end - start > MOST_READ_AGAIN:
            return None
        intake = Intake(AllRows, RunLog(), num_lines=line)
        try:
            with open(self._path, "rb", opener=without_waiting) as file:
                if identity_of(file) != self._file:
                    return None
                for data in pieces_of(file, start, end):
                    intake.feed(data)
        except OSError:
            return None
        segments = intake.log().segments
        found = [stream.rows_of(segment).between(after, until) for segment in segments]
        # All of these lines are of one segment: what else there may be is no run's.
        return max(found, key=lambda columns: len(columns.get("iter", ())))


def identity_of(file: BinaryIO) -> int:
    """A number for the file, and another for one that takes its place."""
    status = os.fstat(file.fileno())
    file.seek(0)
    return zlib.crc32(b"%d " % status.st_ino + file.readline(LONGEST_HEAD))


def pieces_of(file: BinaryIO, start: int, end: int) -> Iterator[bytes]:
    """Whole lines between two places where lines begin, a piece at a time."""
    file.seek(start)
    rest = b""
    while start < end and (data := file.read(min(PIECE, end - start))):
        start += len(data)
        whole = rest + data
        cut = whole.rfind(b"\n") + 1
        rest = whole[cut:]
        if cut:
            yield whole[:cut].replace(b"\r\n", b"\n")


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
