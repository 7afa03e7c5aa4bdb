"""`train` and `prepare` for programs, with the names of the command line."""

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepglass.api.sampling import TrainedRun
from stepglass.errors import naming_missing_packages
from stepglass.measure.records import RunRecord
from stepglass.process import let_segments_grow

if TYPE_CHECKING:
    from stepglass.train.run import Run

Setting = bool | int | float | str
# Gets each record of the run log as a dict. If it returns True, the run stops and saves its state.
Callback = Callable[[dict[str, Any]], object]


def train(
    *words: str | Path,
    on_record: Callback | None = None,
    quiet: bool = False,
    **settings: Setting,
) -> TrainedRun:
    """Train a model, as `stepglass train` does: `words` are a data set or a text, and config files;
    `settings` are those of docs/config.md.

    `on_record` is called from the thread that trains, after every update, evaluation, checkpoint
    and event, with what the run log gets (docs/run-log.md). The clock counts its time as `log`.
    """
    let_segments_grow(os.environ)  # before torch is imported
    with naming_missing_packages():
        from stepglass.api.train_run import read_settings, train_run  # noqa: PLC0415
        from stepglass.measure.clock import PhaseClock  # noqa: PLC0415
        from stepglass.train.console import Console  # noqa: PLC0415

        clock, console = PhaseClock(), Console(io.StringIO() if quiet else None)
        argv = [*map(str, words), *_flags(settings)]
        with clock.phase("warmup"):
            cfg, command, notes = read_settings(argv)
        for note in notes:
            console.say(note)

        def attach(run: "Run") -> None:
            if on_record is not None:
                if run.log.start is not None:  # it is written while the run is set up
                    _tell(run, run.log.start, on_record)
                run.log.on_write = lambda record: _tell(run, record, on_record)

        return TrainedRun(train_run(cfg, command, argv, clock, console, attach))


def _tell(run: "Run", record: RunRecord, on_record: Callback) -> None:
    if on_record(record.as_dict()) is True:
        run.stop.request("the callback")


def prepare(*sources: str | Path, quiet: bool = False, **settings: Setting) -> Path:
    """Make a data set from text, as `stepglass prepare` does, and return its folder."""
    with naming_missing_packages():
        from stepglass.data.command import run  # noqa: PLC0415

        argv = [*map(str, sources), *_flags(settings)]
        return run(argv, (lambda line: None) if quiet else print)


def _flags(settings: dict[str, Setting]) -> list[str]:
    """The settings as on the command line.

    >>> _flags({"max_iters": 200, "compile": False})
    ['--max_iters=200', '--compile=False']
    """
    return [f"--{name}={value}" for name, value in settings.items()]
