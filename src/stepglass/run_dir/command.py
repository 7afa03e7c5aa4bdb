"""The `runs` command: compares runs, checks their checkpoints, and deletes earlier runs if told."""

import json
import shutil
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from stepglass import units
from stepglass.errors import CheckpointError, ConfigError, os_reason
from stepglass.run_dir import earlier, listing
from stepglass.run_dir.earlier import EarlierRun
from stepglass.run_dir.run_facts import (
    CheckpointFacts,
    RunFacts,
    checkpoint_facts,
    differing_settings,
    run_facts,
    sorted_runs,
)
from stepglass.settings.schema import Config, Settings, setting

Say = Callable[[str], None]
Ask = Callable[[str], bool]
WITHOUT_TERMINAL = 120  # columns
NARROWEST = 40


@dataclass(frozen=True, kw_only=True)
class RunsConfig(Config):
    """The settings of `stepglass runs`."""

    sort: Literal[
        "best_val_loss",
        "bits_per_byte",
        "run",
        "dataset",
        "parameters",
        "started",
        "iterations",
        "state",
    ] = setting(
        "best_val_loss",
        "the column to sort by: the lowest first, but the newest first for started; best_val_loss "
        "keeps the runs of a data set together",
    )
    json: bool = setting(False, "write JSON (docs/runs.md) instead of a table")
    verify: bool = setting(False, "read every checkpoint and compare it with its manifest")
    yes: bool = setting(False, "prune: delete without asking")


USAGE = """\
usage: stepglass runs [DIR] [--key=value ...]
       stepglass runs prune [DIR] [--yes]

prune lists the runs that newer runs have moved aside (earlier-N), and deletes them if you say so.
"""
SETTINGS = Settings(RunsConfig)


def run(argv: list[str], say: Say) -> None:
    """Run the `runs` command."""
    words, given = SETTINGS.parse(argv)
    cfg: RunsConfig = SETTINGS.build(given)
    is_prune = words[:1] == ["prune"]
    words = words[1:] if is_prune else words
    if len(words) > 1:
        raise ConfigError(f"expected one folder, found {words}")
    folder = Path(words[0] if words else ".")
    for key in given:
        if (key == "yes") != is_prune:
            needed = "only `stepglass runs prune` deletes" if key == "yes" else "prune has only yes"
            raise ConfigError(f"--{key}: {needed}; leave it out")
    if is_prune:
        prune_earlier(folder, cfg.yes, say, ask_on_terminal if _is_terminal() else None)
    else:
        show(folder, cfg, say)


# -- list ---------------------------------------------------------------------------------------


def show(folder: Path, cfg: RunsConfig, say: Say) -> None:
    """Print every run in a folder. Raises CheckpointError if there is none, or if a checkpoint is
    damaged. Names and errors may contain any character, so `say` must make them printable."""
    paths = runs_in(folder)
    runs = sorted_runs([run_facts(path) for path in paths], cfg.sort)
    saved = {run.path: checkpoint_facts(run.path, cfg.verify) for run in runs}
    aside = earlier.earlier_paths(paths)
    if cfg.json:
        say_json(runs, saved, aside, say)
    else:
        say_table(runs, differing_settings(runs), say)
        for run in runs:
            say_checkpoints(run, saved[run.path], cfg.verify, say)
        if aside:
            size = units.size(sum(map(earlier.folder_bytes, aside)))
            where = "" if folder == Path() else f" {folder}"
            say_wrapped(
                f"{len(aside)} earlier {'run' if len(aside) == 1 else 'runs'} (earlier-N) of "
                f"{size} in all; to delete: stepglass runs prune{where}",
                say,
            )
    found = [checkpoint for run in runs for checkpoint in saved[run.path]]
    num_damaged = sum(checkpoint.problem is not None for checkpoint in found)
    if num_damaged:
        raise CheckpointError(
            f"{num_damaged} of {len(found)} checkpoints in {folder} are damaged; a run that "
            f"is resumed passes over them"
        )


def runs_in(folder: Path) -> list[Path]:
    """The runs in a folder. Raises CheckpointError if there is none."""
    if not folder.is_dir():
        found = "a file" if folder.exists() else "nothing"
        raise CheckpointError(f"{folder}: expected a folder, found {found}")
    runs = list(listing.run_dirs_below(folder))
    if not runs:
        raise CheckpointError(f"{folder}: no runs here; train one with `stepglass train`")
    return runs


def say_table(runs: list[RunFacts], differing: list[str], say: Say) -> None:
    """Print the table, and below it what has no room in a column."""
    from stepglass.run_dir import runs_table  # noqa: PLC0415  it imports rich

    for line in runs_table.table_lines(runs, differing, table_width()):
        say(line)
    for run in runs:
        if run.owner is not None:
            say_wrapped(f"{run.path}: running ({run.owner})", say)
        for problem in run.problems:
            say_wrapped(f"{run.path}: {problem}", say)


def say_wrapped(text: str, say: Say) -> None:
    """Print a sentence in lines that fit the terminal."""
    for line in textwrap.wrap(
        units.one_line(text),
        table_width(),
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    ):
        say(line)


def table_width() -> int:
    """The columns of the terminal, or enough for every column if there is none."""
    return max(NARROWEST, shutil.get_terminal_size((WITHOUT_TERMINAL, 24)).columns)


def say_checkpoints(run: RunFacts, saved: list[CheckpointFacts], verify: bool, say: Say) -> None:
    """Print the checkpoints if all of them were read, else only the damaged ones."""
    if verify and saved:
        say(f"{run.path}:")
    for checkpoint in saved:
        name = checkpoint.path.name if verify else checkpoint.path
        if checkpoint.problem is not None:
            say(f"  {name}    damaged  {checkpoint.problem}")
        elif verify:
            marks = ["newest"] if checkpoint.is_newest else []
            marks += ["best"] if checkpoint.is_best else []
            size = units.size(checkpoint.num_bytes)
            say(f"  {name}  {size:>9}  {', '.join([*marks, 'verified'])}")


def say_json(
    runs: list[RunFacts],
    saved: dict[Path, list[CheckpointFacts]],
    aside: list[Path],
    say: Say,
) -> None:
    """Print a list with an object on each line. docs/runs.md describes the keys."""
    differing = differing_settings(runs)
    lines = []
    for run in runs:
        entry = {
            "run": str(run.path),
            "dataset": run.dataset,
            "parameters": run.parameters,
            "started": run.started.isoformat() if run.started is not None else None,
            "iterations": run.iterations,
            "planned_iterations": run.planned_iterations,
            "best_val_loss": run.best_val_loss,
            "bits_per_byte": run.bits_per_byte,
            "state": run.state,
            "owner": run.owner,
            "problems": list(run.problems),
            "differs": {key: run.settings.get(key) for key in differing} if run.settings else {},
            "is_earlier": run.path in aside,
            "bytes": earlier.folder_bytes(run.path),
            "checkpoints": [
                {
                    "name": checkpoint.path.name,
                    "bytes": checkpoint.num_bytes,
                    "is_newest": checkpoint.is_newest,
                    "is_best": checkpoint.is_best,
                    "problem": checkpoint.problem,
                }
                for checkpoint in saved[run.path]
            ],
        }
        lines.append(json.dumps(entry, allow_nan=False))
    say("[")
    for number, line in enumerate(lines, 1):
        say(line + ("," if number < len(lines) else ""))
    say("]")


# -- prune --------------------------------------------------------------------------------------


def prune_earlier(folder: Path, yes: bool, say: Say, ask: Ask | None) -> None:
    """Print the earlier runs below a folder, and delete them if told. `ask` is None if there is
    nobody to ask. Raises CheckpointError if one could not be deleted."""
    runs_in(folder)
    found = earlier.earlier_runs(folder)
    for run in found:
        stays = f"  stays: {run.reason_to_stay}" if run.reason_to_stay is not None else ""
        say(f"{run.path}  {units.size(run.num_bytes):>9}{stays}")
    ours = [run for run in found if run.reason_to_stay is None]
    if not ours:
        say(f"{folder}: no earlier runs to delete")
        return
    total = units.size(sum(run.num_bytes for run in ours))
    these = f"{len(ours)} earlier {'run' if len(ours) == 1 else 'runs'}, {total}"
    if not yes and ask is None:
        say(f"{these}: nothing was deleted; add --yes to delete")
        return
    if not yes and ask is not None and not ask(f"delete {these}? [y/N] "):
        say("nothing was deleted")
        return
    delete_all(folder, ours, say)


def delete_all(folder: Path, runs: list[EarlierRun], say: Say) -> None:
    """Delete earlier runs. One that cannot be deleted does not keep the others."""
    problems = []
    for run in runs:
        try:
            earlier.delete(folder, run.path)
            say(f"deleted {run.path}")
        except CheckpointError as error:
            problems.append(str(error))
        except OSError as error:
            problems.append(f"{run.path}: cannot be deleted: {os_reason(error)}")
    if problems:
        more = f"; and {len(problems) - 1} more" if len(problems) > 1 else ""
        raise CheckpointError(f"{problems[0]}{more}")


def ask_on_terminal(question: str) -> bool:
    try:
        return input(question).strip().lower() in ("y", "yes")
    except EOFError:
        return False


def _is_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
