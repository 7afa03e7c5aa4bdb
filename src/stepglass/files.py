"""Folders held open, and the calls by which a run changes the disk.

A `Folder` is known by what it is, not by its name: it stays the same one when it is moved, and when
another takes its name. Everything in it is reached from it by one name at a time, and no symlink is
followed on the way, so that nothing outside a run is ever written to or deleted.

Whatever must survive a crash is written through a `FileOps`. The tests put one in its place that
records, fails, or dies at the n-th call; nothing else in the package is made for tests.

A crash cannot tear what is written here: a file or a folder appears whole or not at all. It has a
temporary name in the same folder, is synced, renamed, and then the folder is synced. A rename alone
orders nothing on disk, and a sync of the file alone does not save its name.
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

PATIENCE = 100  # how often a disk may say "try again" before a write fails
HAS_FOLDER_DESCRIPTORS = os.open in os.supports_dir_fd  # not on Windows, where paths must do
SAFE_FLAGS = 0
for _name in ("O_NOFOLLOW", "O_CLOEXEC", "O_BINARY", "O_NONBLOCK"):  # a pipe must not be waited for
    SAFE_FLAGS |= getattr(os, _name, 0)


class Folder:
    """An open folder. `path` is where it was when it was opened, for messages."""

    def __init__(self, path: Path, fd: int | None) -> None:
        self.path = path
        self.fd = fd

    @classmethod
    def open(cls, path: Path) -> "Folder":
        """The folder at a path that the user chose. Symlinks on the way to it are followed."""
        if not HAS_FOLDER_DESCRIPTORS:
            return cls(path, None)
        return cls(path, os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))

    def sub(self, name: str) -> "Folder":
        """A folder in this one. A symlink is refused with an OSError, whatever it points at."""
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
        """The path to give to a system call, together with `dir_fd=folder.fd`."""
        return name if self.fd is not None else os.path.join(self.path, name)

    def names(self) -> list[str]:
        """Everything in it, in order."""
        if self.fd is None:
            return sorted(os.listdir(self.path))
        # A descriptor of its own: two threads that list one descriptor share its position.
        fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self.fd)
        try:
            return sorted(os.listdir(fd))
        finally:
            os.close(fd)

    def status(self, name: str) -> os.stat_result | None:
        """The status of what has a name, or None. For a symlink it is that of the link itself."""
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
        """True once the folder itself was deleted, or what it lay on was taken away."""
        if self.fd is None:
            return not self.path.is_dir()
        try:
            return os.fstat(self.fd).st_nlink == 0
        except OSError:
            return True

    def where(self) -> Path:
        """Its path now: the one it was opened by if that still leads here, else the one the system
        knows."""
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
    # The file is opened first and examined then, so that what is examined is what is read.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    return _read_and_close(os.open(path, flags), max_bytes)


def _read_and_close(fd: int, max_bytes: int) -> bytes:
    """The bytes of an open file. Raises ValueError for anything but a regular file: a pipe would
    wait for ever, and a device might never end."""
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
        """Open a new file. The name must be free, and no symlink is followed."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | SAFE_FLAGS
        return os.open(folder.at(name), flags, 0o666, dir_fd=folder.fd)

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

    def rename(self, folder: Folder, old: str, new: str) -> None:
        """Give a file or folder another name in the same folder. A file of that name is
        replaced."""
        os.replace(folder.at(old), folder.at(new), src_dir_fd=folder.fd, dst_dir_fd=folder.fd)

    def fsync_directory(self, folder: Folder) -> None:
        """Make the names in a folder durable. Windows cannot open folders and needs no such
        call."""
        if folder.fd is not None:
            os.fsync(folder.fd)

    def unlink(self, folder: Folder, name: str) -> None:
        os.unlink(folder.at(name), dir_fd=folder.fd)

    def rmdir(self, folder: Folder, name: str) -> None:
        os.rmdir(folder.at(name), dir_fd=folder.fd)

    def free_bytes(self, folder: Folder) -> int | None:
        """Space left for this user, or None where it is unknown."""
        if folder.fd is None:
            return None
        status = os.fstatvfs(folder.fd)
        return status.f_bavail * status.f_frsize


def write_new_file(
    ops: FileOps, folder: Folder, name: str, num_bytes: int, parts: Iterable[bytes | memoryview]
) -> str:
    """Write a file, wait until the disk has it, and return its sha256, taken on the way."""
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


@contextmanager
def appears_whole(ops: FileOps, folder: Folder, temporary: str, name: str) -> Iterator[None]:
    """The block makes and syncs a file or a folder under its temporary name. When the block ends
    well, that gets its final name for good; when it does not, nothing is left of it."""
    try:
        yield
        ops.rename(folder, temporary, name)
    except BaseException:
        discard(ops, folder, temporary)
        raise
    ops.fsync_directory(folder)


def replace_file(ops: FileOps, folder: Folder, name: str, data: bytes) -> None:
    """Write a small file so that readers, and power cuts, see the old one or the new one."""
    temporary = _free_temporary_name(ops, folder, name)
    with appears_whole(ops, folder, temporary, name):
        write_new_file(ops, folder, temporary, len(data), [data])


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to that becomes `path` when the block ends well, and vanishes when it does
    not. A symlink at `path` is replaced, not followed.
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
    """What a file is called while it is written. The name has the number of the process, so that
    the next one knows whether anybody is still writing."""
    return f".{name}.tmp-{os.getpid()}"


def _free_temporary_name(ops: FileOps, folder: Folder, name: str) -> str:
    temporary = temporary_name(name)
    if folder.status(temporary) is not None:
        ops.unlink(folder, temporary)  # left by a killed process that had this one's number
    return temporary


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
        return True  # another user's process
    return True


def discard(ops: FileOps, folder: Folder, name: str) -> None:
    """Delete a file or a folder, if there is one and the disk allows it."""
    with suppress(OSError):
        if folder.is_folder(name):
            remove_tree(ops, folder, name)
        elif folder.status(name) is not None:
            ops.unlink(folder, name)


def remove_tree(ops: FileOps, parent: Folder, name: str) -> None:
    """Delete a folder and what is in it. Symlinks in it are removed, never followed, and one in its
    place is refused with an OSError."""
    with parent.sub(name) as folder:
        for entry in folder.names():
            if folder.is_folder(entry):
                remove_tree(ops, folder, entry)
            else:
                ops.unlink(folder, entry)
    ops.rmdir(parent, name)
