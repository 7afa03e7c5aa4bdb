"""Logs to Trackio."""

from typing import Any

from stepglass.loggers.logger import LoggedRun, OptionalPackage
from stepglass.loggers.tags import ShownRows
from stepglass.measure.records import RunRecord

PACKAGE = OptionalPackage("trackio", module="trackio", needed="init")
HINT = "leave it out of --log_to"


def start(run: LoggedRun) -> "Trackio":
    return Trackio(run.project, run.name, run.config, run.log_interval)


class Trackio:
    """A run in trackio, whose functions are the same as wandb's."""

    def __init__(self, project: str, name: str, config: dict[str, Any], log_interval: int) -> None:
        self._run = PACKAGE.load().init(project=project, name=name, config=config)
        self._rows = ShownRows(log_interval)

    def write(self, records: list[RunRecord]) -> None:
        for step, values in self._rows.of(records):
            self._run.log(values, step=step)

    def close(self) -> None:
        self._run.finish()
