"""What runs there are, how they ended, and whether their checkpoints are whole.

Reads and never writes, needs no torch, and may be used while a run goes on.
"""

import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepglass import json_files, units
from stepglass.errors import CheckpointError, ConfigError
from stepglass.run_dir import checkpoints, lock
from stepglass.settings.schema import Settings, setting

DEPTH = 3  # folders below the one asked about
TAIL_BYTES = 1 << 16
NO_WAITING = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
ENDINGS = {
    "finished": "finished",
    "target": "reached its target",
    "signal": "stopped by a signal",
    "failed": "failed",
    "oom": "out of memory",
    "error": "ended with an error",
}


@dataclass(frozen=True, kw_only=True)
class RunsConfig:
    """Everything `stepglass runs` can be told."""

    verify: bool = setting(False, "read every checkpoint and hold it against its manifest")

    def used(self) -> list[str]:
        return ["verify"]

    def check(self) -> None:
        """There is nothing to hold against anything."""


USAGE = "usage: stepglass runs [DIR] [--verify]\n"
SETTINGS = Settings(RunsConfig)


def run(argv: list[str], say: Callable[[str], None]) -> None:
    """List the runs that a command line asks for."""
    words, given = SETTINGS.parse(argv)
    if len(words) > 1:
        raise ConfigError(f"expected one folder, found {words}")
    show(Path(words[0] if words else "."), SETTINGS.build(given).verify, say)


def show(folder: Path, verify: bool, say: Callable[[str], None]) -> None:
    """Print every run in a folder. Raises CheckpointError if there is none, or one is damaged.
    `say` has to make names and errors fit to print."""
    if not folder.is_dir():
        found = "a file" if folder.exists() else "nothing"
        raise CheckpointError(f"{folder}: expected a folder, found {found}")
    runs = list(find(folder))
    if not runs:
        raise CheckpointError(f"{folder}: no runs here; train one with `stepglass train`")
    num_checkpoints = num_damaged = 0
    for run_dir in runs:
        say(f"{run_dir}: {summary(run_dir)}")
        best = None
        with suppress(CheckpointError):  # the summary has said so
            best = checkpoints.best_path(run_dir)
        paths = checkpoints.committed(run_dir)
        for path in paths:
            marks = ["newest"] if path == paths[0] else []
            marks += ["best"] if path == best else []
            num_checkpoints += 1
            try:
                size = checkpoints.verify(path) if verify else checkpoints.size(path)
                marks += ["verified"] if verify else []
                say(f"  {path.name}  {units.size(size):>9}  {', '.join(marks)}".rstrip())
            except CheckpointError as error:
                if not path.exists():
                    continue  # the run goes on, and has deleted it meanwhile
                num_damaged += 1
                say(f"  {path.name}    damaged  {error}")
    if num_damaged:
        raise CheckpointError(
            f"{num_damaged} of {num_checkpoints} checkpoints in {folder} are damaged; a run that "
            f"is resumed passes over them"
        )


def find(folder: Path, depth: int = DEPTH) -> Iterator[Path]:
    """Run directories at or below a folder, in order of name. Symlinks are not followed."""
    try:
        is_run = (folder / "run.jsonl").is_file() or bool(checkpoints.committed(folder))
    except OSError:
        return  # not ours to read
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
            yield from find(folder / name, depth - 1)


def summary(run_dir: Path) -> str:
    """How a run stands, in a line."""
    last = last_records(run_dir / "run.jsonl")
    owner = lock.owner_of(run_dir)
    if owner is not None:
        ending = f"running ({owner})"
    elif "end" in last:
        ending = ENDINGS.get(str(last["end"].get("reason")), "ended")
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
    """The last record of each kind near the end of a log. An `end` that is followed by more is
    none: the run was resumed."""
    last: dict[str, dict[str, Any]] = {}
    for line in tail(path).splitlines():
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict) and isinstance(record.get("kind"), str):
            last.pop("end", None)
            last[record["kind"]] = record
    return last


def tail(path: Path) -> bytes:
    """The end of a file, or nothing where there is none to be read. A pipe is not waited for."""
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | NO_WAITING)) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                return b""
            file.seek(max(0, status.st_size - TAIL_BYTES))
            return file.read(min(TAIL_BYTES, status.st_size))
    except OSError:
        return b""
