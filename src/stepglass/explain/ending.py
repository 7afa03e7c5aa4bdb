"""What `train` says at its end: the few findings worth acting on, by the rules of `explain`."""

from pathlib import Path

from stepglass.explain import rules, show
from stepglass.explain.study import study
from stepglass.explain.words import Words
from stepglass.logs import recognise

LARGEST_BYTES = 64_000_000  # beyond that, reading the log again would keep people waiting


def top_findings(run_dir: Path) -> list[str]:
    """Lines for the console; none if there is nothing to change."""
    path = run_dir / "run.jsonl"
    if not path.is_file() or path.stat().st_size > LARGEST_BYTES:
        return []
    with open(path, "rb") as file:
        log = recognise.read(file, str(path))
    return show.top(rules.findings(study(log)), Words("en"), str(run_dir))
