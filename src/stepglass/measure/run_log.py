"""The run log, `OUT_DIR/run.jsonl`: one JSON object a line, append-only, one writer.

The trainer hands over a record and goes on; a thread encodes and writes at most twice a second.
Readers follow the file by byte offset and never lock it. The records and their keys are in
records.py. NaN and infinity are not JSON: they become null. Loggers get the same records from the
writer, so that the trainer writes each of them once.

A log that cannot be written must not end a run: the failure is kept in `failure`, and the trainer
reports it. Before every write the run's folder is checked: if it is lost, what is queued stays
queued until `move_to` names another folder.
"""

import errno
import json
import math
import os
import stat
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepglass.errors import CheckpointError, os_reason
from stepglass.files import SAFE_FLAGS, Folder
from stepglass.measure.event_details import ResumeEvent
from stepglass.measure.records import (
    CheckpointRecord,
    EvalRecord,
    EventRecord,
    IterRecord,
    RunRecord,
    StartRecord,
    parse_line,
)

NAME = "run.jsonl"
FLUSH_INTERVAL_S = 0.5


@dataclass
class Mark:
    """A place in the log: how many bytes stand before it, once what was queued is written."""

    position: int | None = None


class RunLogWriter:
    """Appends records from a background thread. Once it is closed, all of them are in the file."""

    def __init__(self, folder: Folder, check: Callable[[], None] = lambda: None) -> None:
        """`check` raises CheckpointError if nothing in the folder may be changed any more."""
        self._folder, self._check = folder, check
        self._queue: list[RunRecord | Mark] = []
        self._lock = threading.Lock()  # held only for a moment: the trainer may be waiting
        self._writing = threading.Lock()  # held while the disk works: keeps records in order
        self._closing = threading.Event()
        self._followers: list[Callable[[list[RunRecord]], None]] = []
        self.failure: str | None = None  # the last one
        self._is_torn = False
        self._start: bytes | None = None  # the line that tells which run this is
        self._heal_torn_line()
        self._thread = threading.Thread(target=self._run, name="run-log")
        self._thread.start()

    def write(self, record: RunRecord) -> None:
        """Queue a record. What it holds must not be changed afterwards."""
        with self._lock:
            self._queue.append(record)

    def follow(self, take: Callable[[list[RunRecord]], None]) -> None:
        """Have `take` called with the records from now on, also with those that the disk refuses.

        A checkpoint may be waiting meanwhile: `take` must return at once and raise nothing.
        """
        self._followers.append(take)

    def mark(self) -> Mark:
        """The place after everything written so far. Its position is known after `flush()`."""
        mark = Mark()
        with self._lock:
            self._queue.append(mark)
        return mark

    def flush(self) -> None:
        """Write what is queued and wait for the disk: a checkpoint must not be ahead of its log."""
        self._write_queue(durably=True)

    def move_to(self, folder: Folder, check: Callable[[], None]) -> None:
        """Go on in another folder, with what could not be written into the one before."""
        with self._writing:
            self._folder, self._check = folder, check
            self._is_torn = False

    def close(self) -> None:
        """Write what is queued and stop the thread."""
        self._closing.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._closing.wait(FLUSH_INTERVAL_S):
            self._write_queue()
        self._write_queue()

    def _write_queue(self, durably: bool = False) -> None:
        with self._writing:
            try:
                self._check()
            except CheckpointError as error:
                self.failure = str(error)
                return
            with self._lock:
                batch, self._queue = self._queue, []
            if not batch and not durably:
                return
            try:
                self._append(batch, durably)
                self._is_torn = False
            except OSError as error:
                self._is_torn = True
                self.failure = f"{self._folder.path / NAME}: {os_reason(error)}"
            records = [item for item in batch if not isinstance(item, Mark)]
            for take in self._followers:
                take(records)

    def _append(self, batch: list[RunRecord | Mark], durably: bool) -> None:
        fd = self._open(os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        with open(fd, "ab") as file:
            if self._is_torn:
                file.write(b"\n")  # the failed write may have left half a line
            end = file.tell()
            lines = []
            if end == 0 and self._start is not None:  # somebody deleted the log, or it moved
                lines.append(self._start)
                end += len(self._start)
            for item in batch:
                if isinstance(item, Mark):
                    item.position = end
                    continue
                lines.append(encode(item.as_dict()))
                end += len(lines[-1])
                if self._start is None and isinstance(item, StartRecord):
                    self._start = lines[-1]
            file.write(b"".join(lines))
            if durably:
                file.flush()
                os.fsync(file.fileno())

    def _open(self, flags: int) -> int:
        """Open the log, but never through a symlink, and only if it is a file: a pipe would swallow
        what is written."""
        flags |= SAFE_FLAGS
        fd = os.open(self._folder.at(NAME), flags, 0o666, dir_fd=self._folder.fd)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise OSError(errno.EINVAL, "not a regular file")
        return fd

    def _heal_torn_line(self) -> None:
        # A killed run may leave half a line; what is appended next must start on a line of its own.
        try:
            fd = self._open(os.O_RDWR)
        except FileNotFoundError:
            return
        with open(fd, "rb+") as file:
            if file.seek(0, os.SEEK_END) == 0:
                return
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                file.write(b"\n")


def encode(record: dict[str, Any]) -> bytes:
    """One line of the log."""
    try:
        text = json.dumps(record, separators=(",", ":"), allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(record), separators=(",", ":"), allow_nan=False)
    return text.encode() + b"\n"


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


def read_records(path: Path) -> Iterator[dict[str, Any]]:
    """Every record in file order, as it stands there. Half-written and foreign lines are passed
    over.
    """
    with open(path, "rb") as file:
        for line in file:
            record = parse_line(line)
            if record is not None:
                yield record


def history(path: Path) -> list[dict[str, Any]]:
    """The run as one story: where a run was resumed, what it did again replaces what stood there
    before.
    """
    story: list[dict[str, Any]] = []
    for record in read_records(path):
        is_event = record["kind"] == EventRecord.kind
        if is_event and record.get("name") == ResumeEvent.event_name:
            back_to = record["iter"]
            story = [before for before in story if not _is_undone(before, back_to)]
        story.append(record)
    return story


def _is_undone(record: dict[str, Any], back_to: int) -> bool:
    # Iteration k is the k-th update: resuming at k does it again. An evaluation or a checkpoint at
    # k describes the weights before that update, so those at k itself remain true.
    if record["kind"] == IterRecord.kind:
        return bool(record["iter"] >= back_to)
    is_counted = record["kind"] in (EvalRecord.kind, CheckpointRecord.kind)
    return is_counted and bool(record["iter"] > back_to)
