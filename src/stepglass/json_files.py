"""Writes that a crash cannot tear.

A file appears whole or not at all: temporary name in the same folder, fsync, rename, fsync of the
folder. A rename alone orders nothing on disk, and an fsync of the file alone does not save its
name.
"""

import json
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from stepglass import files
from stepglass.files import FileOps, Folder, temporary_name


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to that becomes `path` when the block ends well, and vanishes when it does
    not. A symlink at `path` is replaced, not followed.
    """
    temporary = path.with_name(temporary_name(path.name))
    temporary.unlink(missing_ok=True)
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    with Folder.open(path.parent) as folder:
        FileOps().fsync_directory(folder)


def remove_stale(folder: Folder, names: Collection[str]) -> None:
    """Remove temporary files, of these names, of processes that were killed while they wrote."""
    for found in folder.names():
        for name in names:
            pid = found.removeprefix(f".{name}.tmp-")
            is_ours = pid != found and pid.isdecimal() and folder.is_file(found)
            if is_ours and not _is_alive(int(pid)):
                FileOps().unlink(folder, found)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True  # not ours to signal, but there
    return True


def json_bytes(value: Any) -> bytes:
    """JSON for people and programs: sorted, indented, and strict (no NaN)."""
    return (json.dumps(value, indent=1, sort_keys=True, allow_nan=False) + "\n").encode()


def write_json(path: Path, value: Any) -> None:
    """Replace a JSON file; readers see the old one or the new one."""
    with replacing(path) as file:
        file.write(json_bytes(value))


def read_regular(path: Path, max_bytes: int) -> bytes:
    """The bytes of a regular file. Raises OSError or ValueError."""
    # Opened first and looked at then, so that what is looked at is what is read.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    return files.read_regular(os.open(path, flags), max_bytes)


def read_json(path: Path, max_bytes: int = 1 << 28) -> Any:
    """Read a JSON file. Raises OSError or ValueError; the caller knows what the file was for."""
    return parse_json(read_regular(path, max_bytes))


def parse_json(data: bytes) -> Any:
    """Strict JSON: no NaN, no key twice. Raises ValueError."""
    try:
        return json.loads(data, parse_constant=_refuse_constant, object_pairs_hook=_unique)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = dict(pairs)
    if len(keys) != len(pairs):
        raise ValueError("a key stands twice")
    return keys
