"""The run directory: made, locked, and cleared: an earlier run is moved aside, never mixed with."""

import os
import shutil
from contextlib import suppress
from pathlib import Path

from stepglass import atomic, checkpoint_dir
from stepglass.config import TrainConfig
from stepglass.console import Console
from stepglass.errors import ConfigError, os_reason
from stepglass.fileops import FileOps
from stepglass.lock import RunLock

RUN_FILES = ("ckpt", "best.json", "run.jsonl", "config.json", "tokenizer.json", "tensorboard")


def open_run_dir(cfg: TrainConfig, data_folder: Path, console: Console) -> tuple[Path, RunLock]:
    """Make and lock the run directory, and clear the way for what this run will write."""
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
        lock = RunLock(run_dir)
        if not lock.is_guarding:
            console.say(f"note: {run_dir} cannot be locked: start no second run there")
        try:
            checkpoint_dir.sweep(FileOps(), run_dir)
            atomic.remove_stale(run_dir)
            if cfg.init_from == "scratch":
                if cfg.eval_only and checkpoint_dir.committed(run_dir):
                    raise ConfigError(
                        f"{place}: holds a run, and --eval_only would evaluate a new model, not "
                        "that one; add --init_from=resume, or choose another folder"
                    )
                _move_earlier_run_aside(run_dir, console)
        except BaseException:
            lock.release()
            raise
    except (OSError, RuntimeError) as error:  # a loop of symlinks is a RuntimeError to pathlib
        reason = os_reason(error) if isinstance(error, OSError) else str(error)
        raise ConfigError(f"{place}: cannot be written: {reason}") from error
    return run_dir, lock


def remove_unused(run_dir: Path) -> None:
    """Take away a folder that was made for a run which could not begin, if it holds nothing."""
    with suppress(OSError):  # it is empty, and may stay
        if all(path.name in ("LOCK", "run.jsonl") for path in run_dir.iterdir()):
            log = run_dir / "run.jsonl"
            if not log.exists() or log.stat().st_size == 0:
                shutil.rmtree(run_dir)


def make_durably(folder: Path) -> None:
    """Make a folder and those above it, so that a power cut cannot take them away again."""
    if not folder.exists():
        make_durably(folder.parent)
        folder.mkdir(exist_ok=True)
        FileOps().fsync_directory(folder.parent)


def _move_earlier_run_aside(run_dir: Path, console: Console) -> None:
    if not any((run_dir / name).exists() for name in ("run.jsonl", "ckpt")):
        return
    aside = next(p for n in range(1, 100_000) if not (p := run_dir / f"earlier-{n}").exists())
    aside.mkdir()
    for name in RUN_FILES:
        if (run_dir / name).exists():
            shutil.move(run_dir / name, aside / name)
    FileOps().fsync_directory(aside)
    FileOps().fsync_directory(run_dir)
    console.say(f"note: {run_dir} held a run already; it is in {aside} now")
