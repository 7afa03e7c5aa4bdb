"""One trainer at a time in a run directory.

`OUT_DIR/LOCK` is locked by the operating system for as long as the process lives, so a killed run
leaves nothing to clean up. Where the system has no such locks (Windows), there is no guard.
"""

import json
import os
import socket
import time
from pathlib import Path

from stepglass.errors import CheckpointError

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]


class RunLock:
    """Holds a run directory. Raises CheckpointError if another process has it."""

    def __init__(self, run_dir: Path) -> None:
        self._run_dir = run_dir
        self._path = run_dir.resolve() / "LOCK"
        self._fd = -1
        self._take()

    def _take(self) -> None:
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        try:
            self.is_guarding = _lock(fd)
        except BlockingIOError as error:
            who = _describe(os.read(fd, 500))
            os.close(fd)
            raise CheckpointError(
                f"{self._run_dir}: another run is using it ({who}); wait for it, stop it, or "
                f"choose another --out_dir"
            ) from error
        owner = {"pid": os.getpid(), "host": socket.gethostname(), "started": time.time()}
        os.ftruncate(fd, 0)
        os.write(fd, json.dumps(owner).encode() + b"\n")
        self._fd = fd

    def renew(self) -> None:
        """Make sure the lock is still in place: somebody may have removed the folder meanwhile,
        and somebody else may have begun a run there."""
        try:
            there, mine = os.stat(self._path, follow_symlinks=False), os.fstat(self._fd)
            if (there.st_dev, there.st_ino) == (mine.st_dev, mine.st_ino):
                return
        except FileNotFoundError:
            pass
        old = self._fd
        self._take()
        os.close(old)

    def release(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _lock(fd: int) -> bool:
    """Take the lock; False where the file system has none. Raises BlockingIOError if somebody has
    it for longer than a moment: `owner_of` holds it for one."""
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
    """Who trains in a run directory right now, or None. Looks without taking the lock for longer
    than a moment."""
    if fcntl is None:
        return None
    try:
        fd = os.open(run_dir / "LOCK", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
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


def _describe(stored: bytes) -> str:
    try:
        owner = json.loads(stored)
        return f"process {int(owner['pid'])} on {str(owner['host'])[:100]}"
    except (ValueError, KeyError, TypeError):
        return "process unknown"
