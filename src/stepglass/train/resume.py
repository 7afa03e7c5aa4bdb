"""Resuming a run: checks that a checkpoint fits, and restores its state."""

import re
import shlex
from pathlib import Path
from typing import Any

from stepglass import units
from stepglass.checkpoint import tensors
from stepglass.checkpoint.tensors import Snapshot
from stepglass.data.dataset import Dataset
from stepglass.errors import CheckpointError, ConfigError
from stepglass.files import FileOps
from stepglass.measure.console_lines import resumed_line
from stepglass.measure.event_details import ResumeEvent
from stepglass.measure.shapes import Shape, shape_from_record, shape_record
from stepglass.run_dir import checkpoints, commit
from stepglass.settings.lr_schedule import Rewarm
from stepglass.settings.train import EXACT_KEYS, TrainConfig
from stepglass.train.console import Console
from stepglass.train.environment import environment
from stepglass.train.extended_run import in_iterations, rewarm_if_extended
from stepglass.train.other_processes import changed_processes
from stepglass.train.run import Run, RunState
from stepglass.train.training import Training

COUNTERS = ("step", "tokens", "evaluated_at", "best_val_loss", "best_step")
NEWER_COUNTERS = (
    "evals_since_best",
    "eval_every",
    "spent_ms",
    "last_lr",
)  # checkpoints of earlier versions have none
LEAST_MS = 3000.0  # of a time budget: with less, there is no point in going on
RUN_ID = re.compile(r"[0-9a-f]{1,64}")

Found = tuple[Path, Snapshot]  # a checkpoint: its path and its contents


def newest_resumable(
    run_dir: Path, cfg: TrainConfig, shape: Shape, data: Dataset, console: Console
) -> Found:
    """The checkpoint to resume from. Raises CheckpointError or ConfigError if there is none."""
    path, snapshot = tensors.newest(run_dir, console.say)
    check_resumable(path, snapshot, cfg, shape, data)
    warn_of_lost_log(run_dir / "run.jsonl", snapshot, console)
    return path, snapshot


def check_resumable(
    path: Path, snapshot: Snapshot, cfg: TrainConfig, shape: Shape, data: Dataset
) -> None:
    """Raise an error unless the checkpoint has the model and the data of this run, and there are
    updates or an evaluation left to do."""
    try:  # a checkpoint of an earlier version lacks what was added since
        stored = shape_record(shape_from_record(snapshot.state.get("model_config")))
    except (ValueError, TypeError):
        stored = {}
    expected = shape_record(shape)
    if stored | {"dropout": cfg.dropout} != expected:
        different = next(
            (key for key, value in expected.items() if stored.get(key) != value), "vocab_size"
        )
        raise CheckpointError(
            f"{path}: expected a model with {different}={expected[different]}, found "
            f"{stored.get(different)}"
        )
    if not snapshot.optim:
        raise CheckpointError(
            f"{path}: has no optimizer's state to go on with; train it further as a new run: "
            f"stepglass train DATASET --init_from={cfg.out_dir} --out_dir=out-tuned"
        )
    if "imported_from" not in snapshot.state:  # nobody knows what another program's data was
        data.resume(str(path), snapshot.state.get("data"))
    if cfg.minutes and not cfg.eval_only:
        check_time_is_left(snapshot, cfg)
        return
    is_complete = snapshot.step > cfg.max_iters or snapshot.state.get("evaluated_at") == (
        snapshot.step
    )
    if snapshot.step >= cfg.max_iters and is_complete and not cfg.eval_only:
        raise ConfigError(
            f"--max_iters={cfg.max_iters}: the run in {cfg.out_dir} has done {snapshot.step} "
            f"updates already; for more: stepglass resume {shlex.quote(cfg.out_dir)} "
            f"--max_iters={2 * snapshot.step}"
        )


def check_time_is_left(snapshot: Snapshot, cfg: TrainConfig) -> None:
    """Raise ConfigError if the time of a run with a time budget is over."""
    stored = snapshot.state.get("config")
    before = units.finite(stored.get("minutes")) if isinstance(stored, dict) else None
    is_longer = cfg.minutes > (before or 0.0)
    # When the time is up, the number of updates becomes the length of the run.
    is_complete = snapshot.step >= cfg.max_iters and not is_longer
    spent_ms = units.finite(snapshot.state.get("spent_ms")) or 0.0
    if is_complete or spent_ms > cfg.minutes * 60_000 - LEAST_MS:
        raise ConfigError(
            f"--minutes={cfg.minutes:g}: the time of the run in {cfg.out_dir} is over, after "
            f"{snapshot.step} updates; for more: stepglass resume {shlex.quote(cfg.out_dir)} "
            f"--minutes={2 * cfg.minutes:g}"
        )


def warn_of_lost_log(path: Path, snapshot: Snapshot, console: Console) -> None:
    """Warn if the log is shorter than it was at the checkpoint: then somebody has truncated it."""
    expected = snapshot.state.get("log_bytes")
    found = path.stat().st_size if path.is_file() else 0
    if isinstance(expected, int) and found < expected:
        console.say(
            f"warning: {path}: expected at least {expected} bytes, found {found}: iterations "
            f"before step {snapshot.step} are missing from the log"
        )


def run_id_of(snapshot: Snapshot) -> str | None:
    """The id that the run got when it started. Checkpoints of the first versions have none."""
    stored = snapshot.state.get("run_id")
    return stored if isinstance(stored, str) and RUN_ID.fullmatch(stored) else None


def was_compiled(snapshot: Snapshot) -> bool | None:
    """Whether the run's model was compiled when it was saved, if the checkpoint says so."""
    before = snapshot.state.get("environment")
    compiled = before.get("compile") if isinstance(before, dict) else None
    return compiled if isinstance(compiled, bool) else None


def restore(t: Training, path: Path, snapshot: Snapshot) -> None:
    """Restore the state of a checkpoint. The random generators must be restored after building and
    warming up, because both draw random numbers."""
    run = t.run
    try:
        run.engine.restore(snapshot, str(path))
        run.state = read_state(snapshot.state)
        tensors.load_rng(snapshot.rng)
    except (
        KeyError,
        TypeError,
        ValueError,
        RuntimeError,
        AttributeError,
        OverflowError,
    ) as error:
        raise CheckpointError(f"{path}: its state does not fit this run: {error}") from error
    run.first_step = run.state.step
    if run.out_of_patience():
        run.state.evals_since_best = 0  # the run was ended by it, and is to go on
    t.saves.resumed(path.name)
    if run.cfg.eval_only:
        run.state.evaluated_at = -1  # evaluate again, with the settings of this command
    else:
        repair_best(run, path)
    run.console.say(resumed_line(run.cfg.out_dir, path.name, run.state.step))
    different = []
    if "imported_from" not in snapshot.state:
        different = changed(snapshot.state.get("environment"), environment(run.device))
        shapes = [tuple(weight.shape) for weight in run.engine.model.parameters()]
        different += changed_processes(snapshot.state, run.cfg, shapes)
    stored = snapshot.state.get("config")
    # Settings that did not exist when the checkpoint was written have their defaults.
    known = set(stored) if isinstance(stored, dict) else set(EXACT_KEYS)
    now = run.cfg.in_iterations()
    different += changed(
        in_iterations(stored), {k: getattr(now, k) for k in EXACT_KEYS if k in known}
    )
    if different:
        run.console.say(f"note: not the same bits as an unbroken run: {', '.join(different)}")
    rewarm_if_extended(run, stored, t.place())
    keep_eval_interval(t, stored)
    run.event(ResumeEvent(path=str(path.relative_to(run.run_dir)), changed=different))


def keep_eval_interval(t: Training, stored: Any) -> None:
    """Evaluate at the same steps as an unbroken run, so that the same one is the best, unless the
    length of the run has changed."""
    state, cfg = t.run.state, t.run.cfg
    is_as_long = isinstance(stored, dict) and stored.get("max_iters") == cfg.max_iters
    if state.eval_every is None or cfg.eval_interval != "auto" or not is_as_long:
        state.eval_every = None
    elif not cfg.eval_only:
        t.run.console.say(t.evals.schedule.keep(state.eval_every))


def repair_best(run: Run, path: Path) -> None:
    """Make best.json point at the best checkpoint again, if it does not. The process may have been
    killed between saving the best checkpoint and writing best.json, or best.json may be damaged.
    The checkpoint's own state says which step was the best."""
    state = run.state
    if state.best_step is None or state.best_val_loss is None:
        return
    try:
        named = checkpoints.best_path(run.run_dir)
    except CheckpointError as error:
        run.console.say(f"warning: {error}")
        named = None
    of_best_step = (
        p for p in checkpoints.committed(run.run_dir) if checkpoints.step_of(p) == state.best_step
    )
    best = path if state.best_step == state.step else next(of_best_step, None)
    if best is not None and (named is None or (best == path and named != path)):
        commit.mark_best(FileOps(), run.folder.folder, best.name, state.best_val_loss)


def read_state(stored: dict[str, Any]) -> RunState:
    """The counters of a checkpoint. Raises ValueError if they are not valid."""
    counters = {key: stored[key] for key in COUNTERS}
    newer = {key: stored[key] for key in NEWER_COUNTERS if key in stored}
    state = RunState(**counters, **newer, rewarm=read_rewarm(stored.get("rewarm")))
    for name in ("step", "tokens", "evaluated_at"):
        if type(getattr(state, name)) is not int:
            raise ValueError(f"{name} is {units.shown(getattr(state, name))}")
    every, since = state.eval_every, state.evals_since_best
    if type(since) is not int or since < 0 or not (every is None or type(every) is int):
        raise ValueError(
            f"evals_since_best is {units.shown(since)}, eval_every {units.shown(every)}"
        )
    if (units.finite(state.spent_ms) or 0.0) < 0 or units.finite(state.spent_ms) is None:
        raise ValueError(f"spent_ms is {units.shown(state.spent_ms)}")
    if state.last_lr is not None and units.finite(state.last_lr) is None:
        raise ValueError(f"last_lr is {units.shown(state.last_lr)}")
    if every is not None and every < 1:
        raise ValueError(f"eval_every is {every}")
    if state.step < 0 or state.tokens < 0 or not -1 <= state.evaluated_at <= state.step:
        raise ValueError(f"step {state.step}, {state.tokens} tokens, {state.evaluated_at=}")
    best = state.best_val_loss, state.best_step
    is_best = units.finite(best[0]) is not None and type(best[1]) is int
    if best != (None, None) and not (is_best and 0 <= (best[1] or 0) <= state.step):
        raise ValueError(f"the best is {units.shown(best[0])} at {units.shown(best[1])}")
    if not isinstance(stored["scaler"], dict):
        raise ValueError(f"scaler is {units.shown(stored['scaler'])}")
    return state


def read_rewarm(stored: Any) -> Rewarm | None:
    """Where the learning rate of an extended run began to rise again, if it did."""
    if stored is None:
        return None
    step, share = stored
    is_place = units.finite(step) is not None and step >= 0
    if not is_place or units.finite(share) is None or not 0 <= share <= 1:
        raise ValueError(f"rewarm is {units.shown(stored)}")
    return Rewarm(step, share)


def changed(before: Any, now: dict[str, Any]) -> list[str]:
    """The values that differ between a checkpoint and this process, in words."""
    if not isinstance(before, dict):
        return ["its environment is unknown"]
    return [
        f"{key} was {before.get(key, 'unknown')}, is {value}"
        for key, value in now.items()
        if before.get(key) != value
    ]
