"""The `report` command: writes one HTML file that shows runs and logs."""

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from stepglass import units
from stepglass.errors import ConfigError, LogError, os_reason
from stepglass.explain.log_source import checked_device, opened
from stepglass.explain.render.languages import Language, Words
from stepglass.explain.study import study
from stepglass.files import replacing
from stepglass.logs import detect
from stepglass.process import collector_paused
from stepglass.report import folders_of_runs, pack, page, story, stream
from stepglass.report.chart_table import ChartTable
from stepglass.report.stream import Place
from stepglass.report.to_tensorboard import to_tensorboard
from stepglass.settings.schema import Config, Settings, setting

MOST_RUNS = 8  # the number of colours that are easy to distinguish
MOST_ROWS = 1 << 19  # rows of a very long run in a page: about 25 MB


@dataclass(frozen=True, kw_only=True)
class ReportConfig(Config):
    """Settings of `report`."""

    out: str = setting(
        "",
        "the file to write; by default RUN/report.html, DIR/report.html or LOG.html",
        is_path=True,
    )
    lang: Literal["auto", Language] = setting(
        "auto", "language the page opens in; auto: the browser's. It can be switched there"
    )
    device: str = setting("", "the device the run was on, if the log does not say (RTX 4090)")
    to: Literal["html", "tensorboard"] = setting(
        "html", "tensorboard: write a run's numbers as TensorBoard events, into a folder"
    )


USAGE = "usage: stepglass report RUN|LOG|DIR|-... [-o FILE.html] [--key=value ...]\n"
SETTINGS = Settings(ReportConfig)

Say = Callable[[str], None]


def run(argv: list[str], say: Say) -> None:
    """Write the page that a command line asks for."""
    words, given = SETTINGS.parse(["--out" if word == "-o" else word for word in argv])
    if not words:
        raise ConfigError("expected a run directory or a log file; try: stepglass report out")
    write_report(words, SETTINGS.build(given), say)


def write_report(targets: list[str], cfg: ReportConfig, say: Say) -> None:
    """Write a page that shows these runs or logs; several are compared."""
    if cfg.to == "tensorboard":
        write_tensorboard(targets, cfg, say)
        return
    path = Path(cfg.out) if cfg.out else default_path(targets)
    targets = [run for target in targets for run in folders_of_runs.runs_of(target, MOST_RUNS, say)]
    if len(targets) > MOST_RUNS:
        raise ConfigError(f"expected at most {MOST_RUNS} runs to compare, found {len(targets)}")
    device = checked_device(cfg.device)
    words = story.all_words()
    names = unique_names(targets)
    runs = [
        read_run(target, name, device, words) for target, name in zip(targets, names, strict=True)
    ]
    if path.exists() and not path.is_file():
        found = "a folder" if path.is_dir() else "a device or a pipe"
        raise ConfigError(f"--out={path}: expected the name of a file, found {found}")
    if any(path.exists() and is_log_of(path, target) for target in targets):
        raise ConfigError(f"--out={path}: is the log itself; choose another name for the page")
    title = " / ".join(run["story"]["name"] for run in runs)
    try:
        with replacing(path) as file:
            for piece in page.report_pieces(runs, f"{title} · Stepglass", cfg.lang):
                file.write(piece.encode("utf-8", "replace"))  # a log may contain lone surrogates
    except OSError as error:
        raise ConfigError(f"--out={path}: cannot be written: {os_reason(error)}") from error
    say(f"{units.printable(str(path))}: {units.size(path.stat().st_size)}")


def write_tensorboard(targets: list[str], cfg: ReportConfig, say: Say) -> None:
    """Write a run's numbers for TensorBoard, to the place that `--log_to=tensorboard` uses."""
    if len(targets) != 1:
        raise ConfigError(f"--to=tensorboard expects one run, found {len(targets)}: {targets}")
    run = Path(targets[0])
    folder = run if run.is_dir() else run.parent
    out = Path(cfg.out) if cfg.out else folder / "tensorboard"
    count = to_tensorboard(run, out)
    place = units.printable(str(out))
    say(f"{place}: {count:,} numbers; look at them with: tensorboard --logdir={shlex.quote(place)}")


def read_run(target: str, name: str, device: str | None, words: dict[str, Words]) -> dict[str, Any]:
    """One run: its story, and its rows as messages."""
    with collector_paused():  # a long log creates many small objects without cycles
        path, file = opened(target)
        with file:
            try:
                log = detect.read_log(file, path, ChartTable)
            except OSError as error:
                raise LogError(f"{path}: {os_reason(error)}") from error
        known = study(log, device)
        run_dir = Path(path).parent if Path(path).name == "run.jsonl" else None
        if not log.format.is_run_log:
            run_dir = None
        end = stream.place_of(log)
        # A very long log was already thinned while it was read. It is thinned again to the size
        # that a page should have.
        most = MOST_ROWS if stream.num_hidden(log) else None
        return {
            "story": story.story_of(known, name, run_dir, words),
            "messages": list(stream.run_messages(log, Place(), end, pack.small, known.parts, most)),
        }


def unique_names(targets: list[str]) -> list[str]:
    """Names for the runs, as short as possible and all different.

    >>> unique_names(["a/out", "b/out", "x.log"]), unique_names(["runs/a/run.jsonl"])
    (['a/out', 'b/out', 'x.log'], ['a'])
    """
    paths = [Path(target) for target in targets]
    folders = [path.parent if path.name == "run.jsonl" else path for path in paths]
    short = [folder.resolve().name if is_here(folder) else folder.name for folder in folders]
    return short if len(set(short)) == len(short) else [str(folder) for folder in folders]


def is_log_of(path: Path, target: str) -> bool:
    """Is the file `path` the log that the page will show?"""
    found = Path(target)
    logs = [found, found / "run.jsonl"] if found.is_dir() else [found]
    return any(log.is_file() and path.samefile(log) for log in logs)


def is_here(folder: Path) -> bool:
    return folder.name in ("", ".", "..")


def default_path(targets: list[str]) -> Path:
    """A path next to the log or in the run's folder, different from the log's own path."""
    first = Path(targets[0])
    if len(targets) > 1 or targets[0] == "-":
        return Path("report.html")
    if first.is_dir():
        return first / "report.html"
    return first.parent / "report.html" if first.name == "run.jsonl" else Path(f"{first}.html")
