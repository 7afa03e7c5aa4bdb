"""Identifies the data of a run, and checks that it has not changed.

A file is identified by the sha256 of all its bytes. For a large file, the hash is computed once, in
a thread during training, and stored in the user's cache folder. The name of the cache entry
contains the file's device, inode, size and times. A write to the file changes these, so a run that
uses the file notices it.
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
from stepglass.units import shown

AT_ONCE_BYTES = 1 << 26  # smaller files are hashed in a tenth of a second, without thread or cache
HASH = re.compile(rb"[0-9a-f]{64}")


class Version(NamedTuple):
    """The device and inode of a file, and its size and time, which a write changes."""

    device: int
    inode: int
    num_bytes: int
    modified_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> "Version":
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


class OpenFile:
    """An open file. It knows whether the file has changed, and its sha256 once it is computed."""

    def __init__(self, path: Path, fd: int) -> None:
        self.path = path
        self._fd = fd
        status = os.fstat(fd)
        self.version = Version.of(status)
        # The name contains the change time of the inode (ctime), because a user cannot set it back.
        self._cached_at = "-".join(f"{n:x}" for n in (*self.version, status.st_ctime_ns))
        self.sha256: str | None = None
        if self.version.num_bytes <= AT_ONCE_BYTES:
            self.sha256 = self._digest()
        else:
            self.sha256 = _look_up(self._cached_at)
        self.thread: threading.Thread | None = None

    def hash_in_background(self) -> None:
        """Compute the sha256 in a daemon thread, if it is not known."""
        if self.sha256 is None and self.thread is None:
            self.thread = threading.Thread(target=self._hash, name="data-hash", daemon=True)
            self.thread.start()

    def _hash(self) -> None:
        with suppress(OSError):  # training will get the same error and report it
            digest = self._digest()
            if Version.of(os.fstat(self._fd)) == self.version:  # else it has changed meanwhile
                self.sha256 = digest
                _keep(self._cached_at, digest)

    def _digest(self) -> str:
        # Do not map the file: mapped pages count as memory of the process, and reading a mapped
        # file that has shrunk kills the process.
        with open(os.dup(self._fd), "rb", buffering=0) as file:
            file.seek(0)
            return hashlib.file_digest(file, "sha256").hexdigest()

    def require_unchanged(self) -> None:
        """Raise DataError if the file was written to. It is no error if the file was replaced by
        another of the same name, because the open file stays the same."""
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
        """True if only the time has changed, but not the bytes, as a backup or a copy may do."""
        if now.num_bytes != self.version.num_bytes or self.sha256 != self._digest():
            return False
        self.version = now
        return True


def open_regular(path: Path) -> int:
    """Open a regular file and return its descriptor. Raises OSError, or ValueError for anything
    else, such as a pipe or a device."""
    flags = os.O_RDONLY
    for name in ("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY"):
        flags |= getattr(os, name, 0)
    if not stat.S_ISREG(os.stat(path).st_mode):  # check first: opening a device may affect it
        raise ValueError("not a regular file")
    fd = os.open(path, flags)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise ValueError("not a regular file")
    return fd


def _look_up(name: str) -> str | None:
    """The hash in the cache, or None if there is no valid one."""
    # A user without a home folder has no cache (DataError). Then the hash is computed again.
    with suppress(OSError, ValueError, DataError):
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
    """True if the data fingerprint in a checkpoint matches the current data. Only keys that both
    have are compared: earlier versions stored only the sha256 of both ends of a file, and the
    sha256 of a large file is computed during the run."""
    if not isinstance(stored, dict) or stored.get("vocab_size") != found["vocab_size"]:
        return False
    return all(_is_same_file(stored.get(split), found[split]) for split in ("train", "val"))


def _is_same_file(before: Any, now: dict[str, Any]) -> bool:
    if not isinstance(before, dict) or not {"tokens", "dtype"} <= before.keys():
        return False
    if ("mask" in before) != ("mask" in now):
        return False
    both = (before.keys() & now.keys()) - {"mask"}
    if not both & {"sha256", "edges_sha256"} or any(before[key] != now[key] for key in both):
        return False
    return "mask" not in now or _is_same_file(before["mask"], now["mask"])


def difference(stored: Any, found: dict[str, Any]) -> str:
    """The first difference between two data fingerprints that are not the same, in words."""
    if not isinstance(stored, dict):
        return "the checkpoint does not say which"
    for name in ("train", "val"):
        before, now = stored.get(name), found[name]
        if not isinstance(before, dict):
            return f"the checkpoint does not describe its {name}.bin"
        for key, what in (("tokens", "tokens"), ("dtype", "token format")):
            if before.get(key) != now[key]:
                return f"{name}.bin: {what}: expected {shown(before.get(key))}, found {now[key]}"
        if any(before.get(key) != now.get(key) for key in ("sha256", "edges_sha256")):
            return f"{name}.bin: as many tokens, but others"
        if not _is_same_file(before, now):
            return f"{name}.mask: other tokens count"
    return f"vocab_size: expected {shown(stored.get('vocab_size'))}, found {found['vocab_size']}"
