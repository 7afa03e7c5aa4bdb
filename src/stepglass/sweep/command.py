"""The `sweep` command: trains with all combinations of settings, and says which is best."""

import shlex
from dataclasses import replace
from pathlib import Path

from stepglass import units
from stepglass.errors import ConfigError, StepglassError, TrainingFailed, os_reason
from stepglass.files import Folder
from stepglass.process import StopRequest
from stepglass.report.command import ReportConfig, write_report
from stepglass.run_dir.command import say_table
from stepglass.run_dir.listing import run_dirs_below
from stepglass.run_dir.lock import RunLock
from stepglass.run_dir.opening import make_durably
from stepglass.run_dir.run_facts import RunFacts, run_facts, sorted_runs
from stepglass.sweep.grid import SWEEP_SETTINGS, Grid, SweepConfig, read_sweep
from stepglass.sweep.jobs import Jobs, Say, Start, num_cores, start_training, threads_of_each
from stepglass.sweep.planned_run import Action, PlannedRun, plan_runs, with_data

USAGE = """\
usage: stepglass sweep [DATASET] [CONFIG.toml|CONFIG.py ...] --key=value,value ... [--key=value ...]

Trains with every combination of the values. All settings of `stepglass train` can be given; commas
separate values, so a value that contains a comma cannot be swept. The same command a second time
goes on: finished runs are passed over, the others are resumed. Settings of its own:
"""
SETTINGS = SWEEP_SETTINGS

DOING = {
    "new": "to be trained",
    "resume": "to be resumed",
    "finished": "finished already",
    "running": "running already",
}


def run(argv: list[str], say: Say) -> None:
    """Run the `sweep` command."""
    train_sweep(argv, say, start_training)


def train_sweep(argv: list[str], say: Say, start: Start) -> None:
    """Train all runs of a sweep that are not finished, and compare them."""
    cfg, grid = read_sweep(argv)
    out_dir = Path(cfg.out_dir)
    planned = with_data(plan_runs(grid, out_dir), say)
    lock = locked_folder(out_dir)
    try:
        for one in planned:
            one.require_same_settings()
        todo = say_plan(planned, grid, cfg, say)
        with StopRequest() as stop:
            jobs = Jobs(cfg.jobs, stop, say, start=start)
            if cfg.minutes:
                jobs.deadline_s = jobs.now() + 60 * cfg.minutes
            left_out = jobs.train_all(todo)
    finally:
        lock.release()
    say_ending(planned, left_out, out_dir, argv, say)


def locked_folder(out_dir: Path) -> RunLock:
    """Make the folder of a sweep, and lock it against a second sweep."""
    place = f"--out_dir={out_dir}"
    try:
        if out_dir.exists() and not out_dir.is_dir():
            raise ConfigError(f"{place}: expected a folder, found a file; choose another")
        if out_dir in run_dirs_below(out_dir, depth=0):
            raise ConfigError(f"{place}: holds a run; a sweep needs a folder for its runs")
        make_durably(out_dir)
        with Folder.open(out_dir) as folder:
            return RunLock(folder)
    except OSError as error:
        raise ConfigError(f"{place}: cannot be written: {os_reason(error)}") from error


def say_plan(planned: list[PlannedRun], grid: Grid, cfg: SweepConfig, say: Say) -> list[PlannedRun]:
    """Print what will be done, and return the runs to train."""
    values = " ".join(f"{key}={','.join(texts)}" for key, texts in grid.swept.items())
    say(f"sweep: {len(planned)} runs in {cfg.out_dir}: {values}")
    actions: list[tuple[PlannedRun, Action]] = [(one, one.action()) for one in planned]
    for one, action in actions:
        say(f"  {one.name}: {DOING[action]}")
    threads = threads_of_each(cfg.jobs)
    if threads:
        each = f"{threads} {'thread' if threads == 1 else 'threads'}"
        say(f"{cfg.jobs} at a time with {each} each, on {num_cores()} cores")
    todo = [one for one, action in actions if action in ("new", "resume")]
    if todo:
        place = shlex.quote(cfg.out_dir)
        say(f"what they print is in {place}/*.log; to watch them: stepglass watch {place}")
    return todo


# -- the end ------------------------------------------------------------------------------------


def say_ending(
    planned: list[PlannedRun], left_out: list[PlannedRun], out_dir: Path, argv: list[str], say: Say
) -> None:
    """Print the table, write the page, and print how to go on and which run was best. Raises
    TrainingFailed if there is no result at all."""
    facts = {one.name: run_facts(one.folder) for one in planned if one.folder.is_dir()}
    begun = [found for found in facts.values() if found.iterations is not None]
    if begun:
        say_table(sorted_runs(begun), [], say)  # the names say what differs
        write_page(out_dir, say)
    states = {name: found.state_shown for name, found in facts.items() if not found.is_finished}
    states |= {one.name: "not started" for one in planned if one.name not in facts}
    if states:
        not_finished = ", ".join(f"{name} ({state})" for name, state in states.items())
        say(f"not finished: {not_finished}; to go on, type:")
        say(f"  {shlex.join(['stepglass', 'sweep', *argv])}")
    best = best_name({one.name: facts[one.name] for one in planned if one.name in facts})
    if best is not None:
        winner = next(one for one in planned if one.name == best)
        loss = units.loss(facts[best].best_val_loss)
        say(f"best: {best}, val loss {loss}; to train it by itself:")
        say(f"  {shlex.join(['stepglass', 'train', *winner.train_argv])}")
    elif begun and any(found.best_val_loss is not None for found in begun):
        say(
            "best: n/a: losses on different data cannot be compared, and the bits per byte of some "
            "runs are unknown"
        )
    if not begun and not left_out:
        raise TrainingFailed(f"none of the {len(planned)} runs has trained; see {out_dir}/*.log")


def best_name(facts: dict[str, RunFacts]) -> str | None:
    """The name of the best run: that with the lowest validation loss or, if their data differ, with
    the lowest bits per byte. None if that is unknown."""
    known = {name: found for name, found in facts.items() if found.best_val_loss is not None}
    are_alike = len({found.dataset for found in known.values()}) == 1
    scores = {
        name: found.best_val_loss if are_alike else found.bits_per_byte
        for name, found in known.items()
    }
    numbers = {name: score for name, score in scores.items() if score is not None}
    if not numbers or len(numbers) < len(known):
        return None
    return min(numbers, key=lambda name: numbers[name])


def write_page(out_dir: Path, say: Say) -> None:
    """Write the page that compares the runs. If that fails, the runs are there all the same."""
    cfg: ReportConfig = replace(ReportConfig(), out=str(out_dir / "report.html"))
    try:
        write_report([str(out_dir)], cfg, say)
    except StepglassError as error:
        say(f"note: no page: {error}")
