"""Which data a run is trained on, and whether they are still the same.

A file is known by its sha256, all of it. A large one is read for that in a thread beside training,
once: the hash is kept in the user's cache folder, under the file's place on disk, size and times.
Whoever writes to the file changes those, and a run that has it open notices.
"""

import hashlib
import os
import re
import stat
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from stepglass.data.cache import cache_dir
from stepglass.errors import DataError, os_reason
from stepglass.files import read_regular, replacing

AT_ONCE_BYTES = 1 << 26  # read in a tenth of a second: not worth a thread or a cache
HASH = re.compile(rb"[0-9a-f]{64}")


class Version(NamedTuple):
    """A file's place on disk, and what a write to it changes."""

    device: int
    inode: int
    num_bytes: int
    modified_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> "Version":
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


class OpenFile:
    """A file held open: whether it has changed since, and its sha256 once that is known."""

    def __init__(self, path: Path, fd: int) -> None:
        self.path = path
        self._fd = fd
        status = os.fstat(fd)
        self.version = Version.of(status)
        # The name holds the time of the last change to the inode: nobody can set that back.
        self._cached_at = "-".join(f"{n:x}" for n in (*self.version, status.st_ctime_ns))
        self.sha256: str | None = None
        if self.version.num_bytes <= AT_ONCE_BYTES:
            self.sha256 = self._digest()
        else:
            self.sha256 = _look_up(self._cached_at)
        self.thread: threading.Thread | None = None

    def hash_beside(self) -> None:
        """Work out the sha256 in a thread, if it is not known. It ends with the process."""
        if self.sha256 is None and self.thread is None:
            self.thread = threading.Thread(target=self._hash, name="data-hash", daemon=True)
            self.thread.start()

    def _hash(self) -> None:
        with suppress(OSError):  # training meets the same error and reports it
            digest = self._digest()
            if Version.of(os.fstat(self._fd)) == self.version:  # else the file changed meanwhile
                self.sha256 = digest
                _keep(self._cached_at, digest)

    def _digest(self) -> str:
        # Read, not mapped: a mapped gigabyte counts as memory, and one that shrinks is fatal.
        with open(os.dup(self._fd), "rb", buffering=0) as file:
            file.seek(0)
            return hashlib.file_digest(file, "sha256").hexdigest()

    def require_unchanged(self) -> None:
        """Raise DataError if the file was written to. If another file takes its name, the open one
        stays as it was."""
        try:
            now = Version.of(os.fstat(self._fd))
        except OSError as error:
            raise DataError(f"{self.path}: cannot be read: {os_reason(error)}") from error
        if now.num_bytes < self.version.num_bytes:
            raise DataError(
                f"{self.path}: expected {self.version.num_bytes} bytes, found {now.num_bytes}: it "
                f"shrank during the run"
            )
        if now != self.version and not self._has_only_been_touched(now):
            raise DataError(f"{self.path}: was written to during the run; restore it and resume")

    def _has_only_been_touched(self, now: Version) -> bool:
        """Another time, and the same bytes: a backup or a copy of the folder may do that."""
        if now.num_bytes != self.version.num_bytes or self.sha256 != self._digest():
            return False
        self.version = now
        return True


def open_regular(path: Path) -> int:
    """A descriptor of a regular file. Nothing else is opened or waited for. Raises OSError, or
    ValueError if it is not a regular file."""
    flags = os.O_RDONLY
    for name in ("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY"):
        flags |= getattr(os, name, 0)
    if not stat.S_ISREG(os.stat(path).st_mode):  # first: opening a device may do something
        raise ValueError("not a regular file")
    fd = os.open(path, flags)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise ValueError("not a regular file")
    return fd


def _look_up(name: str) -> str | None:
    """The hash in the cache, if there is a good one."""
    with suppress(
        OSError, ValueError, DataError
    ):  # without a home there is no cache, and the hash is worked out again
        found = read_regular(cache_dir() / "hashes" / name, 100)
        if HASH.fullmatch(found):
            return found.decode()
    return None


def _keep(name: str, digest: str) -> None:
    with suppress(OSError, ValueError, DataError):
        folder = cache_dir() / "hashes"
        folder.mkdir(parents=True, exist_ok=True)
        with replacing(folder / name) as file:
            file.write(digest.encode())


def is_same_data(stored: Any, found: dict[str, Any]) -> bool:
    """Whether a checkpoint's record of its data describes the data that are there now. A fact that
    only one of the two has is not compared: earlier versions kept the sha256 of both ends of a
    file, and the sha256 of a whole large file is worked out while a run goes on."""
    if not isinstance(stored, dict) or stored.get("vocab_size") != found["vocab_size"]:
        return False
    for split in ("train", "val"):
        before, now = stored.get(split), found[split]
        if not isinstance(before, dict) or not {"tokens", "dtype"} <= before.keys():
            return False
        both = before.keys() & now.keys()
        if not both & {"sha256", "edges_sha256"} or any(before[k] != now[k] for k in both):
            return False
    return True
