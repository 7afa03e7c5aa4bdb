"""Opens a run directory: creates and locks it, and moves an earlier run in it aside."""

import os
import stat
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path

from stepglass.errors import ConfigError, os_reason
from stepglass.files import FileOps, Folder, remove_stale
from stepglass.measure import run_log
from stepglass.run_dir import checkpoints, commit, lock
from stepglass.run_dir.folder import RunFolder
from stepglass.settings.train import TrainConfig

Say = Callable[[str], None]

RUN_FILES = ("ckpt", "best.json", "run.jsonl", "config.json", "tokenizer.json", "tensorboard")
REPLACED = ("best.json", "config.json", "tokenizer.json")  # written to a temporary file first


def open_run_dir(cfg: TrainConfig, data_folder: Path, say: Say) -> RunFolder:
    """Create and lock the run directory, and remove leftovers. A new run moves an earlier one
    aside."""
    run_dir = Path(cfg.out_dir)
    place = f"--out_dir={cfg.out_dir}"
    try:
        if run_dir.exists() and not run_dir.is_dir():
            raise ConfigError(f"{place}: expected a folder, found a file; choose another")
        if data_folder.resolve() in (run_dir.resolve(), *run_dir.resolve().parents):
            raise ConfigError(f"{place}: lies inside the data set {data_folder}; choose another")
        make_durably(run_dir)
        if not os.access(run_dir, os.W_OK):
            raise PermissionError(13, "permission denied")
        run = RunFolder(_open_without_links(run_dir))
        if not run.is_guarded:
            say(f"note: {run_dir} cannot be locked: start no second run there")
        try:
            commit.sweep(FileOps(), run.folder)
            remove_stale(run.folder, REPLACED)
            if cfg.init_from != "resume":
                if cfg.eval_only and checkpoints.committed(run_dir):
                    raise ConfigError(
                        f"{place}: holds a run, and --eval_only would evaluate a new model, not "
                        "that one; add --init_from=resume, or choose another folder"
                    )
                _move_earlier_run_aside(run.folder, say)
        except BaseException:
            run.close()
            raise
    except (OSError, RuntimeError) as error:  # pathlib raises RuntimeError for a symlink loop
        reason = os_reason(error) if isinstance(error, OSError) else str(error)
        raise ConfigError(f"{place}: cannot be written: {reason}") from error
    return run


def _open_without_links(run_dir: Path) -> Folder:
    """Open the folder. Raises ConfigError if a file of the run is a symlink or of the wrong kind,
    because the run would then write somewhere else."""
    folder = Folder.open(run_dir)
    for name in (*RUN_FILES, lock.NAME):
        status = folder.status(name)
        if status is None:
            continue
        is_folder = name in ("ckpt", "tensorboard")
        kind = "a folder" if is_folder else "a file"
        is_right = (stat.S_ISDIR if is_folder else stat.S_ISREG)(status.st_mode)
        if not is_right:
            folder.close()
            found = "a symlink" if stat.S_ISLNK(status.st_mode) else "something else"
            raise ConfigError(
                f"{run_dir / name}: expected {kind} of the run's own, found {found}; nothing is "
                "written through it: put what it stands for in its place, or choose another "
                "--out_dir"
            )
    return folder


def remove_unused(run_dir: Path) -> None:
    """Remove the new folder of a run that could not start, if the folder is empty."""
    with suppress(OSError), Folder.open(run_dir) as folder:  # an empty folder may also stay
        log = folder.status(run_log.NAME)
        is_empty = log is None or (stat.S_ISREG(log.st_mode) and log.st_size == 0)
        if is_empty and set(folder.names()) <= {lock.NAME, run_log.NAME}:
            for name in folder.names():
                FileOps().unlink(folder, name)
            os.rmdir(run_dir)


def make_durably(folder: Path) -> None:
    """Create a folder and its parents, and sync them, so that they survive a power cut."""
    if not folder.exists():
        make_durably(folder.parent)
        folder.mkdir(exist_ok=True)
        with Folder.open(folder.parent) as parent:
            FileOps().fsync_directory(parent)


def _move_earlier_run_aside(run: Folder, say: Say) -> None:
    if not any(run.status(name) for name in ("run.jsonl", "ckpt")):
        return
    ops = FileOps()
    aside = next(name for n in count(1) if run.status(name := f"earlier-{n}") is None)
    ops.mkdir(run, aside)
    with run.sub(aside) as folder:
        for name in RUN_FILES:
            if run.status(name) is not None:
                os.rename(run.at(name), folder.at(name), src_dir_fd=run.fd, dst_dir_fd=folder.fd)
        ops.fsync_directory(folder)
    ops.fsync_directory(run)
    say(f"note: {run.path} held a run already; it is in {run.path / aside} now")


def open_elsewhere(lost: RunFolder) -> RunFolder:
    """A new folder for a run whose folder is gone or is used by another run. It has the same path
    if that is free, otherwise a new name in the same parent folder. Raises OSError if no folder can
    be made."""
    path = lost.folder.path
    path = path if path.name else path.absolute()
    names = (path.name, *(f"{path.name}-rescued-{n}" for n in range(1, 1000)))
    make_durably(path.parent)
    for name in names:
        try:
            (path.parent / name).mkdir()
        except FileExistsError:
            continue
        with Folder.open(path.parent) as parent:
            FileOps().fsync_directory(parent)
        run = RunFolder(Folder.open(path.parent / name))
        run.belongs_to(lost.run_id)
        return run
    raise OSError(17, "all names beside it are taken")
