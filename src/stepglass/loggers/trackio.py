"""Trackio."""

from typing import Any

from stepglass.loggers.packages import load
from stepglass.loggers.tags import ShownRows
from stepglass.measure.run_log import Record


class Trackio:
    """A run in trackio, which has wandb's way of speaking."""

    def __init__(self, project: str, name: str, config: dict[str, Any], log_interval: int) -> None:
        self._run = load("trackio").init(project=project, name=name, config=config)
        self._rows = ShownRows(log_interval)

    def write(self, records: list[Record]) -> None:
        for step, values in self._rows.of(records):
            self._run.log(values, step=step)

    def close(self) -> None:
        self._run.finish()
