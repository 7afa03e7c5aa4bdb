"""The runs that a new run in the same folder has moved aside to `earlier-1`, `earlier-2`, ...

`prune` deletes them, and nothing else: a folder is deleted only if everything in it was written by
a run. What a person has put there, a symlink or a run that is in progress keeps the whole folder.
"""

import os
import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from stepglass.errors import CheckpointError, os_reason
from stepglass.files import FileOps, Folder, remove_tree
from stepglass.measure import run_log
from stepglass.run_dir import checkpoints, listing, lock
from stepglass.run_dir.commit import LEFTOVER, PREFIX
from stepglass.run_dir.opening import RUN_FILES

NAME = re.compile(r"earlier-[1-9]\d{0,8}")
FOLDERS = ("ckpt", "tensorboard")
FILES = (*(name for name in RUN_FILES if name not in FOLDERS), lock.NAME, "report.html")
CHECKPOINT_FILES = (*checkpoints.FILES, "MANIFEST.json")
TEMPORARY = re.compile(r"\.(.+)\.tmp-\d+")  # files.temporary_name


@dataclass(frozen=True)
class EarlierRun:
    """A folder `earlier-N`, its size, and why it must stay, if it must."""

    path: Path
    num_bytes: int
    reason_to_stay: str | None


def earlier_paths(runs: Iterable[Path]) -> list[Path]:
    """Those of the runs that were moved aside. The folder above has the lock of the newer run: a
    folder of this name that a person has chosen is none."""
    return [
        path
        for path in runs
        if NAME.fullmatch(path.name) and _is_regular(path.parent / lock.NAME)
        if not NAME.fullmatch(path.parent.name)  # it is part of the folder above
    ]


def earlier_runs(folder: Path) -> list[EarlierRun]:
    """The earlier runs below a folder."""
    paths = earlier_paths(path for path in listing.run_dirs_below(folder) if path != folder)
    found = []
    for path in paths:
        try:
            with _opened(folder, path) as opened:
                reason = _reason_to_stay(opened)
        except OSError as error:
            reason = f"cannot be read: {os_reason(error)}"
        found.append(EarlierRun(path, folder_bytes(path), reason))
    return found


def delete(folder: Path, path: Path) -> None:
    """Delete an earlier run below a folder. Raises CheckpointError if it must stay, or OSError."""
    with _opened(folder, path.parent) as parent:
        with parent.sub(path.name) as earlier:
            held = lock.RunLock(earlier)  # nobody can resume it from now on
            try:
                if not held.is_guarding:
                    raise CheckpointError(
                        f"{path}: cannot be locked here, so it may be running; delete it by hand"
                    )
                # The check of a moment ago may be out of date.
                reason = _reason_to_stay(earlier, is_ours=True)
                if reason is not None:
                    raise CheckpointError(f"{path}: {reason}")
                remove_tree(FileOps(), parent, path.name)
            finally:
                held.release()
        FileOps().fsync_directory(parent)


def folder_bytes(path: Path) -> int:
    """The size of all files in a folder. Symlinks are not followed, and what cannot be read counts
    as nothing."""
    total, folders = 0, [path]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    status = entry.stat(follow_symlinks=False)
                    total += status.st_size if stat.S_ISREG(status.st_mode) else 0
                    if stat.S_ISDIR(status.st_mode):
                        folders.append(Path(entry.path))
        except OSError:
            continue
    return total


def _opened(folder: Path, path: Path) -> Folder:
    """Open a folder below another one, without following a symlink on the way."""
    found = Folder.open(folder)
    for name in path.relative_to(folder).parts:
        with found:
            found = found.sub(name)
    return found


def _reason_to_stay(earlier: Folder, is_ours: bool = False) -> str | None:
    """Why a folder must not be deleted, or None. `is_ours`: this process has locked it."""
    owner = None if is_ours else lock.owner_of(earlier.path)
    if owner is not None:
        return f"running ({owner})"
    foreign = _foreign(earlier)
    if foreign is not None:
        return f"{foreign} in it was not written by a run"
    has_log = bool(listing.first_record(earlier.path / run_log.NAME))
    if not has_log and not checkpoints.committed(earlier.path):
        return "its log does not begin like a run's"
    for name in earlier.names():
        if NAME.fullmatch(name):
            with earlier.sub(name) as inner:
                reason = _reason_to_stay(inner)
            if reason is not None:
                return f"{name} in it: {reason}"
    return None


def _foreign(earlier: Folder) -> str | None:
    """Something in the folder that no run writes, or None."""
    for name in earlier.names():
        if earlier.is_file(name) and _final_name(name) in FILES:
            continue
        if not earlier.is_folder(name) or not (name in FOLDERS or NAME.fullmatch(name)):
            return name
        if name in FOLDERS:
            with earlier.sub(name) as inner:
                found = _foreign_checkpoint(inner) if name == "ckpt" else _foreign_events(inner)
            if found is not None:
                return f"{name}/{found}"
    return None


def _foreign_checkpoint(ckpt: Folder) -> str | None:
    for name in ckpt.names():
        is_name = checkpoints.parse_name(PREFIX.sub("", name)) or LEFTOVER.match(name)
        if not is_name or not ckpt.is_folder(name):
            return name
        with ckpt.sub(name) as checkpoint:
            if not checkpoint.is_file("MANIFEST.json") and not LEFTOVER.match(name):
                return name
            for file in checkpoint.names():
                is_ours = file in CHECKPOINT_FILES or checkpoints.SHARD.fullmatch(file)
                if not is_ours or not checkpoint.is_file(file):
                    return f"{name}/{file}"
    return None


def _foreign_events(folder: Folder) -> str | None:
    for name in folder.names():
        if not name.startswith("events.out.tfevents.") or not folder.is_file(name):
            return name
    return None


def _final_name(name: str) -> str:
    temporary = TEMPORARY.fullmatch(name)
    return temporary[1] if temporary else name


def _is_regular(path: Path) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False
