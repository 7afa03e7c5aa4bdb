"""The run log, `OUT_DIR/run.jsonl`: one JSON object per line, append-only, with one writer.

The trainer only queues a record. A thread encodes and writes the records, at most twice a second.
Readers follow the file by byte offset and never lock it. The records and their keys are defined in
records.py. NaN and infinity are not valid JSON, so they are written as null. The writer also passes
the records on to the loggers, so that the trainer has to write each record only once.

If the log cannot be written, the run goes on. The error is stored in `failure`, and the trainer
reports it. Before every write the run's folder is checked. If the folder is lost, the records stay
in the queue until `move_to` sets another folder.
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
    """A position in the log in bytes. It is set when the records queued before it are written."""

    position: int | None = None


class RunLogWriter:
    """Appends records in a background thread. After `close`, all of them are in the file."""

    def __init__(self, folder: Folder, check: Callable[[], None] = lambda: None) -> None:
        """`check` must raise CheckpointError if this run must not change the folder any more."""
        self._folder, self._check = folder, check
        self._queue: list[RunRecord | Mark] = []
        self._lock = threading.Lock()  # for the queue; held only briefly, as the trainer needs it
        self._writing = threading.Lock()  # held during a write, to keep the records in order
        self._closing = threading.Event()
        self._followers: list[Callable[[list[RunRecord]], None]] = []
        self.on_write: Callable[[RunRecord], None] | None = None  # called by the trainer's thread
        self.start: StartRecord | None = None  # the one of this process, once it is written
        self.failure: str | None = None  # the last error
        self._is_torn = False
        self._start: bytes | None = None  # the line of the start record, which has the run's id
        self._heal_torn_line()
        self._thread = threading.Thread(target=self._run, name="run-log")
        self._thread.start()

    def write(self, record: RunRecord) -> None:
        """Queue a record. Its contents must not be changed afterwards."""
        with self._lock:
            self._queue.append(record)
        if isinstance(record, StartRecord):
            self.start = record
        if self.on_write is not None:
            self.on_write(record)

    def follow(self, take: Callable[[list[RunRecord]], None]) -> None:
        """Call `take` with all records from now on, even with those that cannot be written to disk.

        `take` must return at once and must not raise, because a checkpoint may wait for it.
        """
        self._followers.append(take)

    def mark(self) -> Mark:
        """The position after all records so far. It is known after `flush()`."""
        mark = Mark()
        with self._lock:
            self._queue.append(mark)
        return mark

    def flush(self) -> None:
        """Write all queued records and wait until they are on disk. Called before a checkpoint is
        written, so that the log on disk reaches at least to the checkpoint."""
        self._write_queue(durably=True)

    def move_to(self, folder: Folder, check: Callable[[], None]) -> None:
        """Write to another folder from now on, starting with the records that are still queued."""
        with self._writing:
            self._folder, self._check = folder, check
            self._is_torn = False

    def close(self) -> None:
        """Write all queued records and stop the thread."""
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
            # The log was deleted, or the run now writes to another folder: repeat the start record.
            if end == 0 and self._start is not None:
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
        """Open the log. Raises OSError if it is a symlink or not a regular file: what is written to
        a pipe would be lost."""
        flags |= SAFE_FLAGS
        fd = os.open(self._folder.at(NAME), flags, 0o666, dir_fd=self._folder.fd)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise OSError(errno.EINVAL, "not a regular file")
        return fd

    def _heal_torn_line(self) -> None:
        # A killed run may have left half a line. End it, so that the next record is a line itself.
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
    """Every record, unchanged and in file order. Incomplete lines and lines of other programs are
    skipped.
    """
    with open(path, "rb") as file:
        for line in file:
            record = parse_line(line)
            if record is not None:
                yield record


def history(path: Path) -> list[dict[str, Any]]:
    """The records of a run without repetitions: if a resumed run repeated some iterations, only the
    newer records of these iterations are kept.
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
    # A run that is resumed at k repeats update k, so the old record of iteration k is replaced. An
    # evaluation or a checkpoint at k describes the weights before update k, so it is still valid.
    if record["kind"] == IterRecord.kind:
        return bool(record["iter"] >= back_to)
    is_counted = record["kind"] in (EvalRecord.kind, CheckpointRecord.kind)
    return is_counted and bool(record["iter"] > back_to)
