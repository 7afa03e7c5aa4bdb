"""The runs in a folder. Each has a number that stays the same while the server runs.

URLs contain this number and never a path.
"""

import math
import sys
import time
from itertools import islice
from pathlib import Path
from typing import Any

from stepglass.errors import CheckpointError
from stepglass.measure.clock import step_time
from stepglass.run_dir import checkpoints, listing, lock
from stepglass.run_dir.imported_model import imported_model
from stepglass.run_dir.run_facts import IMPORTED
from stepglass.units import finite, printable

MOST_RUNS = 1000
LEAST_PAUSE_S = 0.5  # between two scans of the folder
PAUSE_SHARE = 10  # the pause is at least this many times as long as the last scan took

Entry = dict[str, Any]


class NumberedRuns:
    """One run, or all runs in a folder. Not thread-safe."""

    def __init__(self, folder: Path, is_run: bool) -> None:
        self._folder = folder
        self._is_run = is_run
        self._paths = [folder] if is_run else []  # by number
        self._numbers = {path: number for number, path in enumerate(self._paths)}
        self._entries: list[Entry] = []
        self._ended: dict[Path, tuple[tuple[int, ...], Entry]] = {}
        self._next_look = -math.inf

    def path(self, number: int) -> Path | None:
        """The directory of a run. For an unknown number, look for new runs first."""
        if number >= len(self._paths):
            self.entries()
        return self._paths[number] if number < len(self._paths) else None

    def entries(self) -> list[Entry]:
        """The name, state and progress of every run."""
        began = time.monotonic()
        if began >= self._next_look:
            found = (
                [self._folder]
                if self._is_run
                else islice(listing.run_dirs_below(self._folder), MOST_RUNS)
            )
            self._entries = [self._entry(path) for path in found]
            took = time.monotonic() - began
            self._next_look = time.monotonic() + max(LEAST_PAUSE_S, PAUSE_SHARE * took)
        return self._entries

    def _entry(self, path: Path) -> Entry:
        if path not in self._numbers:
            self._numbers[path] = len(self._paths)
            self._paths.append(path)
        stamp = _stamp(path / "run.jsonl")
        known = self._ended.get(path)
        is_running = lock.owner_of(path) is not None
        if known and known[0] == stamp and not is_running:
            return known[1]  # most runs have ended: do not read their logs again
        entry = {
            "id": self._numbers[path],
            "name": self._name(path),
            **_state_and_progress(path, is_running),
        }
        if not is_running:
            self._ended[path] = stamp, entry
        return entry

    def _name(self, path: Path) -> str:
        name = path.resolve().name if path == self._folder else str(path.relative_to(self._folder))
        return printable(name.encode("utf-8", "replace").decode())


def _stamp(log: Path) -> tuple[int, ...]:
    try:
        status = log.stat()
    except OSError:
        return ()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _state_and_progress(path: Path, is_running: bool) -> Entry:
    log = path / "run.jsonl"
    last = listing.last_records(log) if log.is_file() else {}
    steps = [_count(record.get("iter")) for record in last.values()]
    newest = last.get("iter", {})
    # Its settings are another program's, or the defaults.
    is_imported = not last and not is_running and imported_model(path) is not None
    return {
        "state": IMPORTED if is_imported else _state(last, is_running),
        "step": max((step for step in steps if step is not None), default=None),
        "max_iters": None if is_imported else _count(listing.setting_of(path, "max_iters")),
        "best_val_loss": _best(path),
        "loss": finite(newest.get("loss")),
        "tok_s": _speed(newest),
        "changed": _changed(log),
    }


def _speed(record: Entry) -> float | None:
    """Tokens per second in the training step of an iteration."""
    step_ms = step_time(_times(record.get("phases")), _times(record.get("device_phases")))
    tokens = finite(record.get("tokens"))
    return 1000 * tokens / step_ms if tokens and step_ms else None


def _times(table: object) -> dict[str, float]:
    named = table.items() if isinstance(table, dict) else ()
    return {name: ms for name, value in named if (ms := finite(value)) is not None}


def _changed(log: Path) -> float | None:
    """When the log was last written to, in seconds since 1970."""
    try:
        return log.stat().st_mtime
    except OSError:
        return None


def _state(last: dict[str, Entry], is_running: bool) -> str:
    if is_running:
        return "running"
    if "end" in last:
        reason = str(last["end"].get("reason"))
        return reason if reason in listing.ENDINGS else "unknown"
    # The log has no end record. On Windows there is no lock to distinguish a killed run from a
    # running one.
    return "killed" if last and sys.platform != "win32" else "unknown"


def _count(value: object) -> int | None:
    """The value if it is a step number that JavaScript can represent, else None."""
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53
    return value if is_count else None  # type: ignore[return-value]


def _best(path: Path) -> float | None:
    try:
        best = checkpoints.best(path)
    except CheckpointError:
        return None
    return best.val_loss if best is not None and math.isfinite(best.val_loss) else None
