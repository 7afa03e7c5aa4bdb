"""Open folders, and all functions that change files on disk.

A `Folder` refers to an open folder, not to a path. It stays the same folder when it is moved, and
when another folder gets its old name. Files in it are opened relative to it, one name at a time,
and symlinks are never followed. So nothing outside of a run is ever written to or deleted.

Everything that must survive a crash is written through a `FileOps`. The tests replace it with one
that records calls, fails, or dies at the n-th call. Nothing else in the package exists for tests.

After a crash, a file or a folder is complete or does not exist. It is written under a temporary
name in the same folder, synced and renamed, and then the folder is synced. A rename alone does not
guarantee the order of writes on disk, and a sync of the file alone does not save its name.
"""

import errno
import hashlib
import os
import stat
import sys
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Self

PATIENCE = 100  # a write fails after this many "try again" errors
HAS_FOLDER_DESCRIPTORS = os.open in os.supports_dir_fd  # False on Windows, where paths are used
SAFE_FLAGS = 0
for _name in ("O_NOFOLLOW", "O_CLOEXEC", "O_BINARY", "O_NONBLOCK"):  # O_NONBLOCK: in case of a pipe
    SAFE_FLAGS |= getattr(os, _name, 0)


class Folder:
    """An open folder. `path` is its path at the time it was opened, for messages."""

    def __init__(self, path: Path, fd: int | None) -> None:
        self.path = path
        self.fd = fd

    @classmethod
    def open(cls, path: Path) -> "Folder":
        """Open the folder at a path given by the user. Symlinks in this path are followed."""
        if not HAS_FOLDER_DESCRIPTORS:
            return cls(path, None)
        return cls(path, os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))

    def sub(self, name: str) -> "Folder":
        """Open a folder inside this one. Raises OSError for any symlink."""
        if self.fd is None:
            if (self.path / name).is_symlink():
                raise OSError(errno.ELOOP, "is a symlink")
            return Folder(self.path / name, None)
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW
        return Folder(self.path / name, os.open(name, flags, dir_fd=self.fd))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None

    def at(self, name: str) -> str:
        """The path for a system call that also gets `dir_fd=folder.fd`."""
        return name if self.fd is not None else os.path.join(self.path, name)

    def names(self) -> list[str]:
        """The names of everything in the folder, sorted."""
        if self.fd is None:
            return sorted(os.listdir(self.path))
        # Open a new descriptor: two threads that list the same one would share its position.
        fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self.fd)
        try:
            return sorted(os.listdir(fd))
        finally:
            os.close(fd)

    def status(self, name: str) -> os.stat_result | None:
        """The status of a file in this folder, or None if it does not exist. For a symlink, the
        status of the link itself."""
        try:
            return os.stat(self.at(name), dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def is_folder(self, name: str) -> bool:
        status = self.status(name)
        return status is not None and stat.S_ISDIR(status.st_mode)

    def is_file(self, name: str) -> bool:
        status = self.status(name)
        return status is not None and stat.S_ISREG(status.st_mode)

    def read(self, name: str, max_bytes: int) -> bytes:
        """The bytes of a file in this folder. Raises OSError or ValueError."""
        fd = os.open(self.at(name), os.O_RDONLY | SAFE_FLAGS, dir_fd=self.fd)
        return _read_and_close(fd, max_bytes)

    def is_gone(self) -> bool:
        """True if the folder was deleted, or if its disk was removed."""
        if self.fd is None:
            return not self.path.is_dir()
        try:
            return os.fstat(self.fd).st_nlink == 0
        except OSError:
            return True

    def where(self) -> Path:
        """The folder's current path: the original path if it still leads to this folder, otherwise
        the path that the operating system reports."""
        if self.fd is None:
            return self.path
        try:
            if os.path.samestat(os.stat(self.path), os.fstat(self.fd)):
                return self.path
        except OSError:
            pass
        try:
            return Path(os.readlink(f"/proc/self/fd/{self.fd}"))
        except OSError:
            return self.path


def read_regular(path: Path, max_bytes: int) -> bytes:
    """The bytes of a regular file. Raises OSError or ValueError."""
    # Open the file first and check it afterwards, so that the checked file is the one that is read.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    return _read_and_close(os.open(path, flags), max_bytes)


def _read_and_close(fd: int, max_bytes: int) -> bytes:
    """The bytes of an open file. Raises ValueError if it is not a regular file: a pipe could block
    forever, and a device might never end."""
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("not a regular file")
        if status.st_size > max_bytes:
            raise ValueError(f"larger than {max_bytes} bytes")
        with open(fd, "rb", closefd=False) as file:
            data = file.read(status.st_size + 1)
    finally:
        os.close(fd)
    if data is None or len(data) > status.st_size:
        raise ValueError("it grows while it is read")
    return data


class FileOps:
    """The real disk."""

    def mkdir(self, folder: Folder, name: str) -> None:
        os.mkdir(folder.at(name), dir_fd=folder.fd)

    def create(self, folder: Folder, name: str) -> int:
        """Create and open a file. It must not exist yet, and symlinks are not followed."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | SAFE_FLAGS
        return os.open(folder.at(name), flags, 0o666, dir_fd=folder.fd)

    def allocate(self, fd: int, num_bytes: int) -> None:
        """Reserve the disk space, so that a full disk is noticed before anything is written."""
        if num_bytes and hasattr(os, "posix_fallocate"):
            try:
                os.posix_fallocate(fd, 0, num_bytes)
            except OSError as error:
                if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
                    raise

    def write(self, fd: int, data: memoryview) -> int:
        """Write a part of the data, and return the number of bytes written."""
        return os.write(fd, data)

    def fsync(self, fd: int) -> None:
        """Wait until the file is on disk. Do not try again after an error: the system may have
        dropped the data, and the second call would succeed without writing it."""
        if sys.platform == "darwin":
            import fcntl  # noqa: PLC0415

            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)  # fsync leaves the data in the drive's cache
        else:
            os.fsync(fd)

    def close(self, fd: int) -> None:
        os.close(fd)

    def rename(self, folder: Folder, old: str, new: str) -> None:
        """Rename a file or a folder within the same folder. An existing file is replaced."""
        os.replace(folder.at(old), folder.at(new), src_dir_fd=folder.fd, dst_dir_fd=folder.fd)

    def fsync_directory(self, folder: Folder) -> None:
        """Wait until the names in a folder are on disk. Windows cannot open folders and does not
        need this."""
        if folder.fd is not None:
            os.fsync(folder.fd)

    def unlink(self, folder: Folder, name: str) -> None:
        os.unlink(folder.at(name), dir_fd=folder.fd)

    def rmdir(self, folder: Folder, name: str) -> None:
        os.rmdir(folder.at(name), dir_fd=folder.fd)

    def free_bytes(self, folder: Folder) -> int | None:
        """Free disk space for this user, or None if it is unknown."""
        if folder.fd is None:
            return None
        status = os.fstatvfs(folder.fd)
        return status.f_bavail * status.f_frsize


def write_new_file(
    ops: FileOps, folder: Folder, name: str, num_bytes: int, parts: Iterable[bytes | memoryview]
) -> str:
    """Write a file, wait until it is on disk, and return the sha256 of its contents."""
    digest = hashlib.sha256()
    fd = ops.create(folder, name)
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
    ops.close(fd)  # some file systems report a failed write only here
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


@contextmanager
def appears_whole(ops: FileOps, folder: Folder, temporary: str, name: str) -> Iterator[None]:
    """Context manager. The block must create and sync a file or a folder under its temporary name.
    If the block succeeds, the file gets its final name; otherwise it is deleted."""
    try:
        yield
        ops.rename(folder, temporary, name)
    except BaseException:
        discard(ops, folder, temporary)
        raise
    ops.fsync_directory(folder)


def replace_file(ops: FileOps, folder: Folder, name: str, data: bytes) -> None:
    """Replace a small file. Readers see either the old file or the new one, even after a power
    cut."""
    temporary = _free_temporary_name(ops, folder, name)
    with appears_whole(ops, folder, temporary, name):
        write_new_file(ops, folder, temporary, len(data), [data])


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Context manager that yields a file to write to. If the block succeeds, the file gets the name
    `path`; otherwise it is deleted. A symlink at `path` is replaced, not followed.
    """
    ops = FileOps()
    with Folder.open(path.parent) as folder:
        temporary = _free_temporary_name(ops, folder, path.name)
        with (
            appears_whole(ops, folder, temporary, path.name),
            open(ops.create(folder, temporary), "wb") as file,
        ):
            yield file
            file.flush()
            ops.fsync(file.fileno())


def temporary_name(name: str) -> str:
    """The name of a file while it is written. It contains the process id, so that `remove_stale`
    can tell whether the process still exists."""
    return f".{name}.tmp-{os.getpid()}"


def _free_temporary_name(ops: FileOps, folder: Folder, name: str) -> str:
    temporary = temporary_name(name)
    if folder.status(temporary) is not None:
        ops.unlink(folder, temporary)  # left by a killed process that had the same process id
    return temporary


def remove_stale(folder: Folder, names: Collection[str]) -> None:
    """Remove the temporary files of these names that killed processes have left."""
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
        return True  # another user's process
    return True


def discard(ops: FileOps, folder: Folder, name: str) -> None:
    """Delete a file or a folder, if it exists. Errors are ignored."""
    with suppress(OSError):
        if folder.is_folder(name):
            remove_tree(ops, folder, name)
        elif folder.status(name) is not None:
            ops.unlink(folder, name)


def remove_tree(ops: FileOps, parent: Folder, name: str) -> None:
    """Delete a folder and everything in it. Symlinks in it are deleted, never followed. Raises
    OSError if the folder itself is a symlink."""
    with parent.sub(name) as folder:
        for entry in folder.names():
            if folder.is_folder(entry):
                remove_tree(ops, folder, entry)
            else:
                ops.unlink(folder, entry)
    ops.rmdir(parent, name)
