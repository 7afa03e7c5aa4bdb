"""A lock that allows only one trainer at a time in a run directory.

The operating system keeps `OUT_DIR/LOCK` locked as long as the process lives, so a killed run
leaves nothing to clean up. On systems without such locks (Windows), there is no protection.
"""

import json
import os
import socket
import time
from pathlib import Path

from stepglass.errors import CheckpointError
from stepglass.files import SAFE_FLAGS, Folder
from stepglass.units import printable

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

NAME = "LOCK"


class RunLock:
    """The lock of a run directory. Raises CheckpointError if another process holds it."""

    def __init__(self, folder: Folder, run_id: str = "") -> None:
        self._folder = folder
        self._owner = {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "started": time.time(),
            "run": run_id,
        }
        self._fd = -1
        self._take(os.O_CREAT)

    def _take(self, flags: int) -> None:
        path = self._folder.at(NAME)
        fd = os.open(path, os.O_RDWR | SAFE_FLAGS | flags, 0o666, dir_fd=self._folder.fd)
        try:
            self.is_guarding = _lock(fd)
        except BlockingIOError as error:
            who = _describe(os.read(fd, 500))
            os.close(fd)
            raise CheckpointError(
                f"{self._folder.path}: another run is using it ({who}); wait for it, stop it, or "
                f"choose another --out_dir"
            ) from error
        old, self._fd = self._fd, fd
        if old >= 0:
            os.close(old)
        self._write_owner()

    def _write_owner(self) -> None:
        self._written = json.dumps(self._owner).encode() + b"\n"
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, self._written, 0)

    def name_run(self, run_id: str) -> None:
        """Write the id of the run to the lock file, once it is known."""
        self._owner["run"] = run_id
        self._write_owner()

    def is_held(self) -> bool:
        """True if the folder's LOCK is still the file that is locked here, and its text still names
        this process. On a file system without locks, another run may have overwritten the text."""
        there = self._folder.status(NAME)
        if there is None or not os.path.samestat(there, os.fstat(self._fd)):
            return False
        return os.pread(self._fd, len(self._written) + 1, 0) == self._written

    def take_again(self) -> None:
        """Make and lock the file again after it was deleted. Raises FileExistsError if the file
        exists again."""
        self._take(os.O_CREAT | os.O_EXCL)

    def release(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _lock(fd: int) -> bool:
    """Take the lock. Returns False if the file system has no locks. Raises BlockingIOError if
    another process holds the lock. `owner_of` holds it only for a moment, so this tries again a few
    times first."""
    if fcntl is None:
        return False
    for _ in range(10):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            time.sleep(0.03)
        except OSError:
            return False
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return True


def owner_of(run_dir: Path) -> str | None:
    """The process that is training in a run directory now, or None. This takes the lock only for a
    moment."""
    if fcntl is None:
        return None
    try:
        fd = os.open(run_dir / NAME, os.O_RDONLY | SAFE_FLAGS)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _describe(os.read(fd, 500))
    except OSError:
        pass
    finally:
        os.close(fd)
    return None


def describe_owner(folder: Folder) -> str:
    """The process that is named in a folder's LOCK."""
    try:
        fd = os.open(folder.at(NAME), os.O_RDONLY | SAFE_FLAGS, dir_fd=folder.fd)
    except OSError:
        return _describe(b"")
    try:
        return _describe(os.read(fd, 500))
    finally:
        os.close(fd)


def _describe(stored: bytes) -> str:
    try:
        owner = json.loads(stored)
        return f"process {int(owner['pid'])} on {printable(str(owner['host'])[:100])}"
    except (ValueError, KeyError, TypeError):
        return "process unknown"
