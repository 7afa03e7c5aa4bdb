"""The calls by which a run changes the disk, in one object.

Whatever must survive a crash is written through a `FileOps`. The tests put one in its place that
records, fails, or dies at the n-th call; nothing else in the package is made for tests.
"""

import errno
import hashlib
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path

PATIENCE = 100  # how often a disk may say "try again" before it is taken to mean no


class FileOps:
    """The real disk."""

    def mkdir(self, path: Path) -> None:
        os.mkdir(path)

    def create(self, path: Path) -> int:
        """Open a new file. The name must be free, and no symlink is followed."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        for name in ("O_NOFOLLOW", "O_CLOEXEC", "O_BINARY"):
            flags |= getattr(os, name, 0)
        return os.open(path, flags, 0o666)

    def allocate(self, fd: int, num_bytes: int) -> None:
        """Take the space first: a full disk is found before anything is written."""
        if num_bytes and hasattr(os, "posix_fallocate"):
            try:
                os.posix_fallocate(fd, 0, num_bytes)
            except OSError as error:
                if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
                    raise

    def write(self, fd: int, data: memoryview) -> int:
        """Write some of the data; returns how many bytes."""
        return os.write(fd, data)

    def fsync(self, fd: int) -> None:
        """Wait until the disk has the file. An error here is final: the system may have dropped
        the data, and a second call would lie."""
        if sys.platform == "darwin":
            import fcntl  # noqa: PLC0415

            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)  # fsync alone leaves it in the drive's cache
        else:
            os.fsync(fd)

    def close(self, fd: int) -> None:
        os.close(fd)

    def rename(self, old: Path, new: Path) -> None:
        os.rename(old, new)

    def replace(self, old: Path, new: Path) -> None:
        os.replace(old, new)

    def fsync_directory(self, path: Path) -> None:
        """Make the names in a folder durable. Windows cannot open folders and needs no such
        call."""
        if os.name == "nt":
            return
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def unlink(self, path: Path) -> None:
        os.unlink(path)

    def rmdir(self, path: Path) -> None:
        os.rmdir(path)

    def free_bytes(self, path: Path) -> int | None:
        """Space left for this user, where it can be told."""
        if not hasattr(os, "statvfs"):
            return None
        status = os.statvfs(path)
        return status.f_bavail * status.f_frsize


def write_new_file(
    ops: FileOps, path: Path, num_bytes: int, parts: Iterable[bytes | memoryview]
) -> str:
    """Write a file, wait until the disk has it, and return its sha256, taken on the way."""
    digest = hashlib.sha256()
    fd = ops.create(path)
    try:
        ops.allocate(fd, num_bytes)
        for part in parts:
            view = memoryview(part).cast("B")
            digest.update(view)
            _write_all(ops, fd, view)
        ops.fsync(fd)
    except BaseException:
        os.close(fd)
        raise
    ops.close(fd)  # a disk may report a failed write as late as here
    return digest.hexdigest()


def _write_all(ops: FileOps, fd: int, data: memoryview) -> None:
    refusals = 0
    while len(data):
        try:
            data = data[ops.write(fd, data) :]
        except BlockingIOError:
            refusals += 1
            if refusals == PATIENCE:
                raise
            time.sleep(0.01)


def remove_tree(ops: FileOps, path: Path) -> None:
    """Delete a folder and what is in it. Symlinks are removed, never followed."""
    for entry in sorted(os.scandir(path), key=lambda entry: entry.name):
        if entry.is_dir(follow_symlinks=False):
            remove_tree(ops, Path(entry.path))
        else:
            ops.unlink(Path(entry.path))
    ops.rmdir(path)
