"""The folder of a run in progress. It stays open, so it can be renamed or moved during the run.

    run = RunFolder(Folder.open(path))
    run.check()        # call this before changing anything in it, in any thread
    run.where()        # its current path

All files are opened relative to the open folder, so the run goes on when its folder is moved. If
the folder is deleted, or if another run has started in it, this run must not change it any more.
Then `check` raises FolderLost and sets `lost`. The loop sees that, saves elsewhere and stops.
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

MAX_HEAD = 1 << 20  # the most bytes to read of the log's first line


class FolderLost(CheckpointError):
    """The run's folder is gone, or another run uses it."""


class RunFolder:
    """An open, locked run directory. Raises CheckpointError if another process has locked it."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.run_id = secrets.token_hex(8)
        self.lost: str | None = None  # why this run must not change the folder any more
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
        """The current path of the folder."""
        return self.folder.where()

    def belongs_to(self, run_id: str | None) -> None:
        """Set the id of the run: `run_id` for a resumed run, or None for a new run."""
        self.run_id = run_id or self.run_id
        self._lock.name_run(self.run_id)
        # Logs of earlier versions have no run id.
        self._log_owner = owner_of_log(self.folder) or self.run_id

    def check(self) -> None:
        """Raise FolderLost unless the folder exists and still belongs to this run."""
        with self._changing:
            if self.lost is not None:
                raise FolderLost(self.lost)
            if self.folder.is_gone():
                self._lose("was deleted while the run was going on")
            if self._lock.is_held():
                return
            if self.folder.status(lock.NAME) is not None:
                self._lose(f"is used by another run now ({lock.describe_owner(self.folder)})")
            # LOCK is missing. Either only LOCK was deleted, or everything was deleted, or another
            # run has started in the folder since. The log shows which.
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
        """Release the lock and close the folder."""
        self.folder.path = self.where()  # for later messages
        self._lock.release()
        self.folder.close()


def owner_of_log(folder: Folder) -> str | None:
    """The id of the run that the log in a folder belongs to: "unknown" if the log has no id, None
    if there is no log."""
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
