"""The run directory: one trainer at a time, and an earlier run is moved aside, never mixed with.

`OUT_DIR/LOCK` is locked by the operating system for as long as the process lives, so a killed run
leaves nothing to clean up. Where the system has no such locks (Windows), there is no guard.
"""

import os
import shutil
from pathlib import Path

from stepglass import checkpoint
from stepglass.config import TrainConfig
from stepglass.console import Console
from stepglass.errors import CheckpointError, ConfigError, os_reason

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

RUN_FILES = ("run.jsonl", "config.json", "tokenizer.json", "best.json", "ckpt")


class RunLock:
    """Holds a run directory. Raises CheckpointError if another process has it."""

    def __init__(self, run_dir: Path) -> None:
        self._fd = os.open(run_dir / "LOCK", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        try:
            if fcntl is not None:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = os.read(self._fd, 20).decode(errors="replace").strip()
            self.release()
            raise CheckpointError(
                f"{run_dir}: another run is using it (process {owner}); wait for it, stop it, or "
                f"choose another --out_dir"
            ) from error
        os.ftruncate(self._fd, 0)
        os.write(self._fd, f"{os.getpid()}\n".encode())

    def release(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def open_run_dir(cfg: TrainConfig, data_folder: Path, console: Console) -> tuple[Path, RunLock]:
    """Make and lock the run directory, and clear the way for what this run will write."""
    run_dir = Path(cfg.out_dir)
    place = f"--out_dir={cfg.out_dir}"
    try:
        if run_dir.exists() and not run_dir.is_dir():
            raise ConfigError(f"{place}: expected a folder, found a file; choose another")
        if data_folder.resolve() in (run_dir.resolve(), *run_dir.resolve().parents):
            raise ConfigError(f"{place}: lies inside the data set {data_folder}; choose another")
        run_dir.mkdir(parents=True, exist_ok=True)
        if not os.access(run_dir, os.W_OK):
            raise PermissionError(13, "permission denied")
        lock = RunLock(run_dir)
        try:
            checkpoint.sweep(run_dir)
            if cfg.init_from == "scratch":
                _move_earlier_run_aside(run_dir, console)
        except BaseException:
            lock.release()
            raise
    except (OSError, RuntimeError) as error:  # a loop of symlinks is a RuntimeError to pathlib
        reason = os_reason(error) if isinstance(error, OSError) else str(error)
        raise ConfigError(f"{place}: cannot be written: {reason}") from error
    return run_dir, lock


def _move_earlier_run_aside(run_dir: Path, console: Console) -> None:
    if not any((run_dir / name).exists() for name in ("run.jsonl", "ckpt")):
        return
    aside = next(p for n in range(1, 100_000) if not (p := run_dir / f"earlier-{n}").exists())
    aside.mkdir()
    for name in RUN_FILES:
        if (run_dir / name).exists():
            shutil.move(run_dir / name, aside / name)
    console.say(f"note: {run_dir} held a run already; it is in {aside} now")
