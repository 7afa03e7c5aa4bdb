"""Follows a run while it is written, and makes events for a page from new lines of `run.jsonl`.

    run = LiveRun(run_dir)
    while run.advance():                  # reads a piece of the file; False at its end
        ...
    run.has_news(after=None)              # a cheap test: is there anything new?
    for event in run.events(after=None):  # or after the id of the last event a page has seen
        ...
    run.detail(0, 1000, 2000)             # the rows of these lines, for zooming in

A page of a long run gets only as many rows as it can draw, and the server keeps only what it needs
for that. When a page zooms in, the rows of that part are read from the file again. So memory does
not grow with the length of the run.

The id of an event is a position in the file. So a page can continue where it stopped, even after
the server was restarted: rows that it gets twice replace the old ones. The file is only read, never
written, and only whole lines are used.
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
from stepglass.logs.formats.run_log_reader import RunLogReader
from stepglass.logs.log import Log
from stepglass.report import pack, story, stream
from stepglass.report.chart_table import ChartTable, LiveChartTable
from stepglass.report.columns import Columns
from stepglass.report.stream import Place
from stepglass.report.thinning import num_dropped, thinned
from stepglass.run_dir import lock

PIECE = 1 << 22  # bytes read at once
LONGEST_LINE = 1 << 20
# A file is identified by its inode and the start of its first line, because inodes are reused.
LONGEST_HEAD = 256
OVERVIEW_ROWS = 32_000  # rows that a page gets at first, thinned if there are more: about 2 MB
NEW_ROWS = 2048  # new rows are thinned only if there are more than this
LEAST_SHARE = 64  # while a long file is being read, it is sent in at most this many parts
DETAIL_ROWS = 16_000
MOST_READ_AGAIN = 24 << 20  # bytes to read again for zooming in: about one second
MOST_MARKS = 4096
MARK_BYTES = 1 << 18  # between two marks of a line number; more in a long file
# The pause between two studies of the run doubles each time, because a run changes most at its
# start. It is also at least PAUSE_SHARE times as long as the study took, to leave the CPU to
# training.
FIRST_PAUSE_S = 3.0
LONGEST_PAUSE_S = 60.0
PAUSE_SHARE = 1000
END = b'"kind":"end"'
PEAK = b'"name":"peak"'  # which changes the MFU of the whole run


@dataclass(frozen=True)
class LiveEvent:
    """One server-sent event."""

    id: str
    name: str
    data: bytes


@dataclass(frozen=True)
class Seen:
    """What a page already has: the file up to an offset, and a story."""

    file: int
    offset: int
    story: int

    @property
    def id(self) -> str:
        return f"{self.file}-{self.offset}-{self.story}"


class LiveRun:
    """Follows one run directory. Not thread-safe."""

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
        """Start reading a new file from its beginning."""
        self._file = file
        self._size = 0
        self._is_behind = False
        self._intake = Intake(LiveChartTable, RunLogReader())
        self._marks: list[tuple[int, Place]] = [(0, Place())]
        self._lines: list[tuple[int, int]] = [(0, 0)]  # (offset in the file, lines before it)
        self._is_stale = True
        self._next_look = 0.0
        self._pause_s = FIRST_PAUSE_S

    @property
    def _offset(self) -> int:
        return self._marks[-1][0]

    # -- reading ---------------------------------------------------------------------------------

    def has_news(self, after: str | None) -> bool:
        """Is there anything new, or to be read, for a page that has seen the event `after`?"""
        if after != Seen(self._file, self._offset, self._story_number).id:
            return True  # news that was read for another page
        try:
            size = os.stat(self._path).st_size
        except OSError:
            size = 0
        return size != self._size or self._is_due()

    def advance(self) -> bool:
        """Read the next piece. True if there is more to read right now."""
        try:
            with open(self._path, "rb", opener=open_nonblocking) as file:
                self._is_behind = is_more = self._read(file)
        except FileNotFoundError:
            is_more = False
            if self._offset:
                self._begin(file=0)
        except OSError:
            return False  # the next try may succeed
        if not is_more and self._is_due():
            self._look()
        return is_more

    def _read(self, file: BinaryIO) -> bool:
        """Read one piece. True if there is probably more."""
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
        end = end or len(data)  # no real line is that long: it may be cut anywhere
        self._mark_lines(data[:end])
        self._intake.feed(data[:end].replace(b"\r\n", b"\n"))
        self._marks.append((self._offset + end, stream.place_of(self._log())))
        if len(self._marks) > MOST_MARKS:  # drop every second mark of the older half
            del self._marks[1 : MOST_MARKS // 2 : 2]
        self._is_stale = True
        if END in data or PEAK in data:
            self._next_look = 0.0  # show it without delay
        return len(data) == PIECE

    def _mark_lines(self, data: bytes) -> None:
        """Store the line numbers at some offsets of a piece that will be read next."""
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
        """Has the run changed since it was last studied, and is the pause over?"""
        if self._is_running and lock.owner_of(self._run_dir) is None:
            # The run has ended, perhaps without an end record.
            self._is_stale, self._next_look = True, 0.0
        return self._is_stale and self._now() >= self._next_look

    def _look(self) -> None:
        """Study the run and update its story."""
        began, self._is_stale = self._worked(), False
        told = self._new_story()
        self._is_running = told["state"]["name"] == "running"
        self._story = event_data(told)
        self._story_number = zlib.crc32(self._story)
        self._next_look = self._now() + max(self._pause_s, PAUSE_SHARE * (self._worked() - began))
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)

    def _new_story(self) -> story.Story:
        log = self._log()
        has_rows = any(not segment.is_empty() for segment in log.segments)
        known = study(log, is_finished=False) if has_rows else Study(log, None)
        return story.story_of(known, self._run_dir.resolve().name, self._run_dir, self._words)

    # -- telling ---------------------------------------------------------------------------------

    def events(self, after: str | None) -> list[LiveEvent]:
        """The events after the event `after`, the oldest first. If there are many, only a part of
        them."""
        seen = read_id(after)
        result: list[LiveEvent] = []
        if seen is None or seen.file != self._file or seen.offset > self._size:
            seen = Seen(self._file, 0, 0)
            result.append(LiveEvent(seen.id, "reset", b"{}"))
        if seen.offset > self._offset:
            return []  # the server was restarted and has not yet read that far
        if self._is_worth_sending(seen.offset):
            result += self._rows(seen)
            seen = Seen(self._file, self._offset, seen.story)
        is_all = seen.offset == self._offset
        if is_all and self._story and seen.story != self._story_number:
            seen = Seen(self._file, seen.offset, self._story_number)
            result.append(LiveEvent(seen.id, "story", self._story))
        return result

    def _is_worth_sending(self, offset: int) -> bool:
        """Are there enough new rows to send? A long file is not sent after every piece."""
        new = self._offset - offset
        return new > 0 and (not self._is_behind or new * LEAST_SHARE >= self._size)

    def _rows(self, seen: Seen) -> list[LiveEvent]:
        """The new rows: all of them, or for a long run, this part's share of the overview."""
        index = bisect_right(self._marks, seen.offset, key=lambda mark: mark[0]) - 1
        (start, here), (end, there) = self._marks[index], self._marks[-1]
        most = -(-OVERVIEW_ROWS * (end - start) // max(self._size, end))
        if not self._is_behind:
            most = max(most, NEW_ROWS)
        is_long = stream.num_rows(self._log(), here, there) > most
        # On this machine, compressing rows takes longer than sending them, unless there are many.
        how = pack.small if is_long else pack.as_is
        messages = stream.run_messages(self._log(), here, there, how, most=most)
        batch = [LiveEvent(seen.id, "rows", event_data(message)) for message in messages]
        has_now = Seen(self._file, end, seen.story)
        # Only the id of the last event means that the page has all these rows.
        return [*batch[:-1], LiveEvent(has_now.id, "rows", batch[-1].data)]

    # -- zooming in --------------------------------------------------------------------------------

    def detail(self, segment: int, after: int, until: int) -> bytes | None:
        """A message with the rows of these lines, thinned if necessary. None if there are none."""
        log = self._log()
        if segment >= len(log.segments):
            return None
        columns = stream.rows_of(log.segments[segment]).between(after, until)
        if num_dropped([columns]) and len(columns["iter"]) < DETAIL_ROWS:
            columns = self._read_again(after, until) or columns
        columns = thinned(columns, DETAIL_ROWS)
        if not columns or not len(columns["iter"]):
            return None
        message = stream.rows_message(segment, after, columns, pack.as_is, has_lines=True)
        return event_data({**message, "until": until})

    def _read_again(self, after: int, until: int) -> Columns | None:
        """All rows of these lines, read from the file. None if that is too much to read, or if the
        file was replaced."""
        first = bisect_right(self._lines, after, key=lambda mark: mark[1]) - 1
        last = bisect_left(self._lines, until, key=lambda mark: mark[1])
        if last == len(self._lines):
            return None
        (start, line), (end, _) = self._lines[first], self._lines[last]
        if end - start > MOST_READ_AGAIN:
            return None
        intake = Intake(ChartTable, RunLogReader(), num_lines=line)
        try:
            with open(self._path, "rb", opener=open_nonblocking) as file:
                if identity_of(file) != self._file:
                    return None
                for data in pieces_of(file, start, end):
                    intake.feed(data)
        except OSError:
            return None
        segments = intake.log().segments
        found = [stream.rows_of(segment).between(after, until) for segment in segments]
        # All these lines belong to one segment. If others appear, it is only because reading
        # started in the middle of the file.
        return max(found, key=lambda columns: len(columns.get("iter", ())))


def identity_of(file: BinaryIO) -> int:
    """A number that identifies the file. A file that replaces it has another number."""
    status = os.fstat(file.fileno())
    file.seek(0)
    return zlib.crc32(b"%d " % status.st_ino + file.readline(LONGEST_HEAD))


def pieces_of(file: BinaryIO, start: int, end: int) -> Iterator[bytes]:
    """The lines between two offsets, in pieces. Both offsets are starts of lines."""
    file.seek(start)
    rest = b""
    while start < end and (data := file.read(min(PIECE, end - start))):
        start += len(data)
        whole = rest + data
        cut = whole.rfind(b"\n") + 1
        rest = whole[cut:]
        if cut:
            yield whole[:cut].replace(b"\r\n", b"\n")


def event_data(value: object) -> bytes:
    """JSON on one line, as server-sent events require."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")


def open_nonblocking(path: str, flags: int) -> int:
    """Open a file without blocking, because opening a named pipe would wait for a writer."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def read_id(text: str | None) -> Seen | None:
    """Parse the id of an event. None if it is not valid."""
    try:
        file, offset, told = (int(part) for part in (text or "").split("-"))
    except ValueError:
        return None
    return Seen(file, offset, told) if file >= 0 and offset >= 0 else None
