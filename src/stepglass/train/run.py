"""A training run in progress: the data that all parts of training share."""

from dataclasses import dataclass, field
from pathlib import Path

from stepglass.data.dataset import Dataset
from stepglass.hardware.device import Device
from stepglass.loggers.feed import LoggerFeed, close_feeds
from stepglass.measure.clock import PhaseClock
from stepglass.measure.event_details import EventDetail, event_record
from stepglass.measure.run_log import RunLogWriter
from stepglass.process import StopRequest
from stepglass.run_dir.folder import RunFolder
from stepglass.settings.lr_schedule import Rewarm
from stepglass.settings.train import TrainConfig
from stepglass.train.console import Console
from stepglass.train.engines.engine import Engine
from stepglass.train.eval_schedule import LOOK_AT
from stepglass.train.time_budget import TimeBudget


class NotFinite(Exception):
    """A loss, a gradient or a weight is NaN or infinite. `spoilt_step` is the step with the bad
    weights, if a checkpoint of that step may already have been written."""

    def __init__(self, what: str, spoilt_step: int | None) -> None:
        super().__init__(what)
        self.spoilt_step = spoilt_step


@dataclass
class RunState:
    """What changes during a run, besides weights and optimizer. Checkpoints store it."""

    step: int = 0  # updates done
    tokens: int = 0
    evaluated_at: int = -1  # the step of the last evaluation
    best_val_loss: float | None = None
    best_step: int | None = None
    evals_since_best: int = 0
    eval_every: int | None = None  # the interval that eval_interval=auto has decided on
    rewarm: Rewarm | None = None  # set if the run was extended after its learning rate had fallen
    spent_ms: float = 0.0  # the time of a run with a time budget so far
    last_lr: float | None = None  # of the last update


@dataclass
class Run:
    """A run's settings, folder, data, engine, counters and logs."""

    cfg: TrainConfig
    folder: RunFolder
    data: Dataset
    engine: Engine
    clock: PhaseClock
    log: RunLogWriter
    console: Console
    stop: StopRequest
    state: RunState = field(default_factory=RunState)
    first_step: int = 0  # of this process
    rows_before_compiling: int | None = None  # of a batch that fit then; None: all of them
    last_val_loss: float | None = None  # of this process's last evaluation
    budget: TimeBudget | None = None  # set by `--minutes`
    feeds: list[LoggerFeed] = field(default_factory=list)  # the loggers of log_to
    _said: set[str] = field(default_factory=set)

    @property
    def device(self) -> Device:
        return self.engine.device

    @property
    def warm_up_rows(self) -> int:
        """How many rows of a batch the warm-up uses."""
        if self.device.compile or self.rows_before_compiling is None:
            return self.cfg.batch_size
        return self.rows_before_compiling

    @property
    def run_dir(self) -> Path:
        """The current path of the run's folder, which may have been moved."""
        return self.folder.where()

    def iter_ms(self) -> float | None:
        """The mean time of an iteration of this process, without evaluations and start-up. None
        during the first iterations, when the mean is not reliable yet."""
        return self.mean_iter_ms() if self.state.step - self.first_step >= LOOK_AT else None

    def mean_iter_ms(self) -> float | None:
        """The same from the first iteration on, for those who can live with a rough number."""
        steps = self.state.step - self.first_step
        if steps < 1:
            return None
        aside_ns = self.clock.spent_ns("eval") + self.clock.spent_ns("warmup")
        return (self.clock.elapsed_ms() - aside_ns / 1e6) / steps

    def out_of_patience(self) -> bool:
        """Whether there were `patience` evaluations without a new best."""
        limit = self.cfg.patience
        return isinstance(limit, int) and 0 < limit <= self.state.evals_since_best

    def event(self, detail: EventDetail) -> None:
        """Write an event to the run log."""
        self.log.write(event_record(self.state.step, detail))

    def say_once(self, about: str, line: str) -> None:
        """Print a line, unless a line about the same topic was printed before."""
        if about not in self._said:
            self._said.add(about)
            self.console.say(line)

    def say_what_failed(self) -> None:
        """Print a warning for each log that has failed, once per log."""
        if self.log.failure:
            self.say_once(
                "run log",
                f"warning: the run log has gaps: {self.log.failure}; training goes on",
            )
        for feed in self.feeds:
            if feed.failure:
                self.say_once(
                    f"log to {feed.name}",
                    f"warning: {feed.name} gets no more numbers: {feed.failure}; run.jsonl has "
                    "them all",
                )

    def close(self) -> None:
        """Close the logs, so that every record is on disk, and release the run's folder."""
        self.log.close()
        close_feeds(self.feeds, self.console.say)
        self.say_what_failed()
        self.folder.close()
