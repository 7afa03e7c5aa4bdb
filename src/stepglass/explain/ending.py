"""The few important findings of `explain` that `train` prints at its end."""

from pathlib import Path

from stepglass.errors import LogError
from stepglass.explain.render import show
from stepglass.explain.render.languages import Words
from stepglass.explain.rules import all_rules
from stepglass.explain.study import study
from stepglass.logs import detect

LARGEST_BYTES = 64_000_000  # reading a larger log again would take too long


def top_findings(run_dir: Path) -> list[str]:
    """Lines for the console. Empty if there is nothing to change."""
    path = run_dir / "run.jsonl"
    if not path.is_file() or path.stat().st_size > LARGEST_BYTES:
        return []
    with open(path, "rb") as file:
        log = detect.read_log(file, str(path))
    return show.top(all_rules.findings(study(log)), Words("en"), str(run_dir))


def closing_findings(run_dir: Path) -> list[str]:
    """The important findings in a run log. Never raises: the run has already succeeded."""
    try:
        return top_findings(run_dir)
    except LogError:
        return []  # no iteration was recorded
    except Exception as error:  # noqa: BLE001
        return [f"note: the run could not be explained ({type(error).__name__}: {error})"]
