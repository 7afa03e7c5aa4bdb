"""Lists runs, how they ended, and whether their checkpoints are intact.

This module only reads, needs no torch, and can be used while a run is in progress.
"""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepglass import json_files, units
from stepglass.errors import CheckpointError, ConfigError
from stepglass.measure import run_log
from stepglass.measure.records import EndRecord, parse_line
from stepglass.run_dir import checkpoints, lock
from stepglass.settings.schema import Config, Settings, setting

DEPTH = 3  # levels of folders to search below the given one
TAIL_BYTES = 1 << 16
NO_WAITING = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
ENDINGS = {
    "finished": "finished",
    "target": "reached its target",
    "patience": "ended, no more improvement",
    "signal": "stopped by a signal",
    "failed": "failed",
    "oom": "out of memory",
    "error": "ended with an error",
}


@dataclass(frozen=True, kw_only=True)
class RunsConfig(Config):
    """The settings of `stepglass runs`."""

    verify: bool = setting(False, "read every checkpoint and compare it with its manifest")


USAGE = "usage: stepglass runs [DIR] [--verify]\n"
SETTINGS = Settings(RunsConfig)


def run(argv: list[str], say: Callable[[str], None]) -> None:
    """Run the `runs` command."""
    words, given = SETTINGS.parse(argv)
    if len(words) > 1:
        raise ConfigError(f"expected one folder, found {words}")
    show(Path(words[0] if words else "."), SETTINGS.build(given).verify, say)


def show(folder: Path, verify: bool, say: Callable[[str], None]) -> None:
    """Print every run in a folder. Raises CheckpointError if there is none, or if a checkpoint is
    damaged. Names and errors may contain any character, so `say` must make them printable."""
    if not folder.is_dir():
        found = "a file" if folder.exists() else "nothing"
        raise CheckpointError(f"{folder}: expected a folder, found {found}")
    runs = list(run_dirs_below(folder))
    if not runs:
        raise CheckpointError(f"{folder}: no runs here; train one with `stepglass train`")
    num_checkpoints = num_damaged = 0
    for run_dir in runs:
        say(f"{run_dir}: {run_summary(run_dir)}")
        best = None
        with suppress(CheckpointError):  # `run_summary` has reported it
            best = checkpoints.best_path(run_dir)
        paths = checkpoints.committed(run_dir)
        for path in paths:
            marks = ["newest"] if path == paths[0] else []
            marks += ["best"] if path == best else []
            num_checkpoints += 1
            try:
                size = checkpoints.verify(path) if verify else checkpoints.checkpoint_bytes(path)
                marks += ["verified"] if verify else []
                say(f"  {path.name}  {units.size(size):>9}  {', '.join(marks)}".rstrip())
            except CheckpointError as error:
                if not path.exists():
                    continue  # the run is in progress and has just deleted it
                num_damaged += 1
                say(f"  {path.name}    damaged  {error}")
    if num_damaged:
        raise CheckpointError(
            f"{num_damaged} of {num_checkpoints} checkpoints in {folder} are damaged; a run that "
            f"is resumed passes over them"
        )


def run_dirs_below(folder: Path, depth: int = DEPTH) -> Iterator[Path]:
    """Run directories at or below a folder, sorted by name. Symlinks are not followed."""
    try:
        is_run = (folder / run_log.NAME).is_file() or bool(checkpoints.committed(folder))
    except OSError:
        return  # no permission to read it
    if is_run:
        yield folder
    if depth == 0:
        return
    try:
        children = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
    except OSError:
        return
    for name in children:
        if not (folder / name).is_symlink() and not (is_run and name == "ckpt"):
            yield from run_dirs_below(folder / name, depth - 1)


def run_summary(run_dir: Path) -> str:
    """The state of a run, in one line."""
    last = last_records(run_dir / run_log.NAME)
    owner = lock.owner_of(run_dir)
    if owner is not None:
        ending = f"running ({owner})"
    elif EndRecord.kind in last:
        end = EndRecord.from_dict(last[EndRecord.kind])
        ending = ENDINGS.get(str(end.reason), "ended")
    else:
        ending = "killed" if last else "no log"
    steps = [record["iter"] for record in last.values() if isinstance(record.get("iter"), int)]
    parts = [ending]
    if steps:
        limit = setting_of(run_dir, "max_iters")
        of_limit = f" of {units.shown(limit)}" if isinstance(limit, int) else ""
        parts.append(f"step {units.shown(max(steps))}{of_limit}")
    try:
        best = checkpoints.best(run_dir)
        parts += [f"best val loss {units.loss(best.val_loss)}"] if best is not None else []
    except CheckpointError:
        parts.append("best.json is damaged")
    return ", ".join(parts)


def setting_of(run_dir: Path, key: str) -> Any:
    try:
        return json_files.read_json(run_dir / "config.json").get(key)
    except (OSError, ValueError, AttributeError):
        return None


def last_records(path: Path) -> dict[str, dict[str, Any]]:
    """The last record of each kind near the end of a log. An `end` record that is followed by other
    records is ignored, because the run was resumed after it."""
    last: dict[str, dict[str, Any]] = {}
    for line in tail(path).splitlines():
        record = parse_line(line)
        if record is not None:
            last.pop(EndRecord.kind, None)
            last[record["kind"]] = record
    return last


def tail(path: Path) -> bytes:
    """The last bytes of a file, or b"" if it cannot be read. Never blocks on a pipe."""
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | NO_WAITING)) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                return b""
            file.seek(max(0, status.st_size - TAIL_BYTES))
            return file.read(min(TAIL_BYTES, status.st_size))
    except OSError:
        return b""
