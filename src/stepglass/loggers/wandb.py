"""Weights & Biases."""

from typing import Any

from stepglass.loggers.feed import CLOSE_S
from stepglass.loggers.logger import LoggedRun, OptionalPackage
from stepglass.loggers.tags import ShownRows
from stepglass.measure.records import GOOD_ENDINGS, EndRecord, RunRecord

PACKAGE = OptionalPackage("wandb", module="wandb", needed="init")
HINT = "type `wandb login`, or set WANDB_MODE=offline to keep it on this machine"


def start(run: LoggedRun) -> "Wandb":
    return Wandb(run.project, run.name, run.config, run.log_interval)


class Wandb:
    """A run on wandb, as nanoGPT makes it."""

    def __init__(self, project: str, name: str, config: dict[str, Any], log_interval: int) -> None:
        settings = {
            "console": "off",  # its copy of the output would be made by the thread that trains
            "finish_timeout": CLOSE_S - 5,  # it gives up first, and says how to send the rest
            "finish_timeout_raises": True,
        }
        self._run = PACKAGE.load().init(
            project=project, name=name, config=config, settings=settings
        )
        self._rows = ShownRows(log_interval)
        self._last_step = 0
        self._exit_code = 1

    def write(self, records: list[RunRecord]) -> None:
        for step, values in self._rows.of(records):
            # Steps must not go back: a checkpoint is logged once it is written, some steps late.
            self._last_step = max(self._last_step, step)
            self._run.log(values, step=self._last_step)
        ends = [record.reason for record in records if isinstance(record, EndRecord)]
        if ends and ends[-1] in GOOD_ENDINGS:
            self._exit_code = 0

    def close(self) -> None:
        self._run.finish(exit_code=self._exit_code)
