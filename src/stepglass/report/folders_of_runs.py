"""The runs that `stepglass report DIR` compares, if DIR is a folder of runs."""

from collections.abc import Callable
from pathlib import Path

from stepglass.errors import LogError
from stepglass.explain.log_source import NoLogYet, log_in
from stepglass.run_dir import earlier, listing
from stepglass.run_dir.run_facts import IMPORTED, RunFacts, run_facts, sorted_runs


def runs_of(target: str, most: int, say: Callable[[str], None]) -> list[str]:
    """The target itself if it is a log or has one, else the runs in it: at most `most`, and then
    those with the lowest validation loss. Runs that were moved aside, runs without an iteration,
    and models that were only imported are left out."""
    folder = Path(target)
    if target == "-" or not folder.is_dir():
        return [target]
    try:
        log_in(folder)
        return [target]
    except LogError as error:
        paths = list(listing.run_dirs_below(folder))
        if isinstance(error, NoLogYet) and paths == [folder]:
            raise
        aside = set(earlier.earlier_paths(paths))
        runs = [run_facts(path) for path in paths if path not in aside]
        if not runs:
            raise LogError(f"{error}, or a folder of runs") from None
    drawn = []
    for run in runs:
        if run.state == IMPORTED:
            say(f"note: {run.path}: left out: an imported model, not trained here yet")
        elif not run.iterations:
            say(f"note: {run.path}: left out: its log has no iteration")
        else:
            drawn.append(run)
    if not drawn:
        raise LogError(f"{folder}: none of the {len(runs)} runs in it has an iteration to show")
    if len(drawn) > most:
        say(
            f"note: {folder}: the {most} of {len(drawn)} runs with the lowest validation loss; to "
            "compare others, name them"
        )
        drawn = sorted(drawn, key=_loss)[:most]
    return [str(run.path) for run in sorted_runs(drawn, "run")]


def _loss(run: RunFacts) -> float:
    return run.best_val_loss if run.best_val_loss is not None else float("inf")
