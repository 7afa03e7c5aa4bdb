"""What is known about a run from its folder: how far it got, how well it did, how it ended.

Everything is read from small files and both ends of the log, so that a folder with a thousand runs
is listed in a moment. Any file may be missing, damaged or hostile; what it would say is unknown.
"""

import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from stepglass.errors import CheckpointError
from stepglass.measure import bits_per_byte, run_log
from stepglass.run_dir import checkpoints, listing, lock
from stepglass.run_dir.imported_model import ImportedModel, imported_model
from stepglass.settings.train import TRAIN_SETTINGS
from stepglass.units import finite

NOT_COMPARED = ("out_dir", "dataset", "init_from", "eval_only", "watch")
IMPORTED = "imported"  # a state that no end record has
MOST = 2**53  # no number of iterations or parameters is larger


@dataclass(frozen=True)
class CheckpointFacts:
    """A checkpoint of a run. `problem` is None if it is whole as far as it was checked."""

    path: Path
    num_bytes: int | None
    is_newest: bool
    is_best: bool
    problem: str | None


@dataclass(frozen=True)
class RunFacts:
    """A run. None stands for what is not known."""

    path: Path
    dataset: str | None
    parameters: int | None
    started: datetime | None
    iterations: int | None
    planned_iterations: int | None
    best_val_loss: float | None
    bits_per_byte: float | None
    state: str  # running, the reason of the end record, killed, imported or unknown
    owner: str | None  # the process that is training it now
    settings: dict[str, Any]
    problems: tuple[str, ...]  # files that cannot be used

    @property
    def is_finished(self) -> bool:
        return self.state in ("finished", "target")

    @property
    def state_shown(self) -> str:
        return listing.ENDINGS.get(self.state, self.state)


def run_facts(path: Path) -> RunFacts:
    """Read what is known about the run in a folder."""
    log = path / run_log.NAME
    first, last = listing.first_record(log), listing.last_records(log)
    start = last.get("start") or first  # a resumed run may know more than its first process
    owner = lock.owner_of(path)
    settings = listing.settings_in(path) or _dict(start.get("config"))
    best = None
    if not last and (imported := imported_model(path)):
        return _imported(imported)
    problems: tuple[str, ...] = () if last else ("its log cannot be read, or has no records",)
    try:
        found = checkpoints.best(path)
        best = finite(found.val_loss) if found is not None else None
    except CheckpointError:
        problems += ("best.json is damaged",)
    dataset = settings.get("dataset")
    return RunFacts(
        path=path,
        dataset=dataset if isinstance(dataset, str) else None,
        parameters=_count(_dict(start.get("model")).get("parameters")),
        started=_moment(first.get("time", start.get("time"))),
        iterations=_iterations(last),
        planned_iterations=_count(settings.get("max_iters")),
        best_val_loss=best,
        bits_per_byte=bits_per_byte.bits_per_byte(
            best, _dict(start.get("data")).get(bits_per_byte.KEY)
        ),
        state=_state(last, owner),
        owner=owner,
        settings={key: settings[key] for key in TRAIN_SETTINGS.names() if key in settings},
        problems=problems,
    )


def _imported(found: ImportedModel) -> RunFacts:
    """A model of another program that was not trained here: that it has no log is no fault."""
    settings, step = listing.settings_in(found.path), _count(found.step)
    return RunFacts(
        path=found.path,
        # Only a run of nanoGPT's says what it was trained on.
        dataset=str(settings.get("dataset")) if step and "dataset" in settings else None,
        parameters=_count(found.parameters),
        started=None,
        iterations=step,
        planned_iterations=None,
        best_val_loss=found.best_val_loss,
        bits_per_byte=None,
        state=IMPORTED,
        owner=lock.owner_of(found.path),
        settings={key: settings[key] for key in TRAIN_SETTINGS.names() if key in settings},
        problems=(),
    )


def checkpoint_facts(run_dir: Path, verify: bool) -> list[CheckpointFacts]:
    """The checkpoints of a run, newest first. Without `verify`, only their sizes are checked."""
    try:
        best = checkpoints.best_path(run_dir)
    except CheckpointError:
        best = None
    paths = checkpoints.committed(run_dir)
    found = []
    for path in paths:
        size, problem = None, None
        try:
            size = checkpoints.verify(path) if verify else checkpoints.checkpoint_bytes(path)
        except CheckpointError as error:
            if not path.exists():
                continue  # the run is in progress and has just deleted it
            problem = str(error)
        found.append(CheckpointFacts(path, size, path == paths[0], path == best, problem))
    return found


def differing_settings(runs: list[RunFacts]) -> list[str]:
    """The settings in which these runs differ, in the order of `stepglass train --help`."""
    known = [run.settings for run in runs if run.settings]
    return [
        key
        for key in TRAIN_SETTINGS.names()
        if key not in NOT_COMPARED
        if any(settings.get(key) != known[0].get(key) for settings in known)
    ]


def sorted_runs(runs: list[RunFacts], key: str = "best_val_loss") -> list[RunFacts]:
    """The runs sorted by a column; those for which it is unknown come last. Losses on different
    data cannot be compared, so runs with the same data set stay together."""

    def place(run: RunFacts) -> tuple[Any, ...]:
        value: Any = str(run.path) if key == "run" else getattr(run, key)
        if key == "started" and value is not None:
            value = -value.timestamp()
        group = (run.dataset or "") if key == "best_val_loss" else ""
        return group, value is None, value if value is not None else 0, str(run.path)

    return sorted(runs, key=place)


def _state(last: dict[str, dict[str, Any]], owner: str | None) -> str:
    if owner is not None:
        return "running"
    if "end" in last:
        reason = last["end"].get("reason")
        return reason if isinstance(reason, str) and reason in listing.ENDINGS else "unknown"
    # Windows has no lock that would tell a killed run from one that is running.
    return "killed" if last and sys.platform != "win32" else "unknown"


def _iterations(last: dict[str, dict[str, Any]]) -> int | None:
    """The number of updates done. The other records count updates; an `iter` record has the number
    of its own update, which counts from 0."""
    done = []
    for kind, record in last.items():
        count = _count(record.get("iter"))
        if count is not None:
            done.append(count + 1 if kind == "iter" else count)
    return max(done, default=None)


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: object) -> int | None:
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MOST
    return value if is_count else None  # type: ignore[return-value]


def _moment(value: object) -> datetime | None:
    seconds = finite(value)
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None
