"""Finds the runs in a folder, and reads the beginning and the end of their logs.

This module only reads, never waits for a pipe, and can be used while a run is in progress.
"""

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from stepglass import json_files
from stepglass.measure import run_log
from stepglass.measure.records import EndRecord, StartRecord, parse_line
from stepglass.run_dir import checkpoints

DEPTH = 3  # levels of folders to search below the given one
TAIL_BYTES = 1 << 16
HEAD_BYTES = 1 << 20  # the longest first line of a log, and the largest config.json, to read
NO_WAITING = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
ENDINGS = {  # the reasons of an end record, as a word or two
    "finished": "finished",
    "target": "target reached",
    "patience": "no more gain",
    "signal": "stopped",
    "failed": "failed",
    "oom": "out of memory",
    "error": "error",
}


def run_dirs_below(folder: Path, depth: int = DEPTH) -> Iterator[Path]:
    """Run directories at or below a folder, sorted by name. Symlinks are not followed."""
    try:
        is_run = (folder / run_log.NAME).is_file() or bool(checkpoints.committed(folder))
    except OSError:
        return  # no permission to read it
    if is_run:
        yield folder
    if depth == 0:
        return
    try:
        children = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
    except OSError:
        return
    for name in children:
        if not (folder / name).is_symlink() and not (is_run and name == "ckpt"):
            yield from run_dirs_below(folder / name, depth - 1)


def settings_in(run_dir: Path) -> dict[str, Any]:
    """The settings in a run's config.json, or {} if it cannot be read."""
    try:
        found = json_files.read_json(run_dir / "config.json", HEAD_BYTES)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def setting_of(run_dir: Path, key: str) -> Any:
    return settings_in(run_dir).get(key)


def first_record(path: Path) -> dict[str, Any]:
    """The start record that a log begins with, or {} if it begins with something else."""
    record = parse_line(_read_part(path, lambda file, size: file.readline(HEAD_BYTES)))
    return record if record is not None and record["kind"] == StartRecord.kind else {}


def last_records(path: Path) -> dict[str, dict[str, Any]]:
    """The last record of each kind near the end of a log, written by the last process. An `end`
    record that is followed by other records is ignored, because the run went on after it."""
    last: dict[str, dict[str, Any]] = {}
    for line in _read_part(path, _tail).splitlines():
        record = parse_line(line)
        if record is not None:
            if record["kind"] == StartRecord.kind:
                last.clear()  # it may have gone back to an earlier iteration
            last.pop(EndRecord.kind, None)
            last[record["kind"]] = record
    return last


def _tail(file: IO[bytes], size: int) -> bytes:
    file.seek(max(0, size - TAIL_BYTES))
    return file.read(min(TAIL_BYTES, size))


def _read_part(path: Path, read: Callable[[IO[bytes], int], bytes]) -> bytes:
    """What `read` returns for the open file and its size, or b"" if it is not a file that can be
    read."""
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | NO_WAITING)) as file:
            status = os.fstat(file.fileno())
            return read(file, status.st_size) if stat.S_ISREG(status.st_mode) else b""
    except OSError:
        return b""
