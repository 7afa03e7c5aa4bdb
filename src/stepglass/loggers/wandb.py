"""Logs to Weights & Biases."""

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
    """A run in wandb, set up as nanoGPT does it."""

    def __init__(self, project: str, name: str, config: dict[str, Any], log_interval: int) -> None:
        settings = {
            "console": "off",  # otherwise the training thread would copy the output for wandb
            "finish_timeout": CLOSE_S - 5,  # wandb gives up before us and says how to sync the rest
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
            # wandb requires steps that never decrease. A checkpoint is logged when it is written,
            # which is some steps later.
            self._last_step = max(self._last_step, step)
            self._run.log(values, step=self._last_step)
        ends = [record.reason for record in records if isinstance(record, EndRecord)]
        if ends and ends[-1] in GOOD_ENDINGS:
            self._exit_code = 0

    def close(self) -> None:
        self._run.finish(exit_code=self._exit_code)
