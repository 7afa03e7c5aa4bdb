"""The folder of a run in progress: known by what it is, whatever becomes of its name.

    run = RunFolder(Folder.open(path))
    run.check()        # before anything in it is changed, by whichever thread
    run.where()        # its path now

A run follows its folder when that is moved, for everything in it is reached from the open folder.
If the folder is deleted, or if another run has begun in it, nothing in it is touched any more:
`check` raises FolderLost, and the loop, which looks at `lost`, saves elsewhere and stops.
"""

import json
import os
import secrets
import threading
from pathlib import Path
from typing import NoReturn

from stepglass.errors import CheckpointError
from stepglass.files import SAFE_FLAGS, Folder
from stepglass.run_dir import lock
from stepglass.run_dir.lock import RunLock

MAX_HEAD = 1 << 20  # bytes of the log's first line


class FolderLost(CheckpointError):
    """The run's folder is gone, or another run's."""


class RunFolder:
    """An open, locked run directory. Raises CheckpointError if another process has it."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.run_id = secrets.token_hex(8)
        self.lost: str | None = None  # why nothing in it may be changed any more
        try:
            self._lock = RunLock(folder, self.run_id)
        except BaseException:
            folder.close()
            raise
        self._changing = threading.Lock()
        self._log_owner = ""

    @property
    def is_guarded(self) -> bool:
        return self._lock.is_guarding

    def where(self) -> Path:
        """Its path now."""
        return self.folder.where()

    def belongs_to(self, run_id: str | None) -> None:
        """Say which run it holds: a new one, or one that goes on and had a name already."""
        self.run_id = run_id or self.run_id
        self._lock.name_run(self.run_id)
        # Logs of earlier versions name no run.
        self._log_owner = owner_of_log(self.folder) or self.run_id

    def check(self) -> None:
        """Make sure that the folder is there and still this run's. Raises FolderLost."""
        with self._changing:
            if self.lost is not None:
                raise FolderLost(self.lost)
            if self.folder.is_gone():
                self._lose("was deleted while the run was going on")
            if self._lock.is_held():
                return
            if self.folder.status(lock.NAME) is not None:
                self._lose(f"is used by another run now ({lock.describe_owner(self.folder)})")
            # Somebody deleted the LOCK alone, or everything, or has begun another run since.
            owner = owner_of_log(self.folder)
            if owner is None:
                self._lose("was emptied while the run was going on")
            if owner != self._log_owner:
                self._lose("holds another run now")
            try:
                self._lock.take_again()
            except (FileExistsError, CheckpointError):
                self._lose(f"is used by another run now ({lock.describe_owner(self.folder)})")

    def _lose(self, why: str) -> NoReturn:
        self.lost = f"{self.folder.path} {why}"
        raise FolderLost(self.lost)

    def close(self) -> None:
        """Let others have it."""
        self.folder.path = self.where()  # for what is said of it afterwards
        self._lock.release()
        self.folder.close()


def owner_of_log(folder: Folder) -> str | None:
    """The run that the log in a folder belongs to, "unknown" if it does not say, None if there is
    no log."""
    try:
        fd = os.open(folder.at("run.jsonl"), os.O_RDONLY | SAFE_FLAGS, dir_fd=folder.fd)
    except OSError:
        return None
    with open(fd, "rb") as file:
        line = file.readline(MAX_HEAD)
    try:
        return str(json.loads(line)["run_id"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return "unknown" if line else None
