"""A training run in progress: all that the loop works with, and the counters a checkpoint keeps."""

import platform
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import stepglass
from stepglass.checkpoint.schedule import SaveSchedule
from stepglass.checkpoint.writer import Saver
from stepglass.data.dataset import Dataset
from stepglass.data.tokenizer import Tokenizer
from stepglass.errors import DeviceError
from stepglass.hardware.device import Device, Peak, processor
from stepglass.loggers.feed import LoggerFeed
from stepglass.loggers.feed import close as close_loggers
from stepglass.measure.clock import Lap, PhaseClock
from stepglass.measure.run_log import RunLogWriter
from stepglass.models.registry import Model
from stepglass.process import StopRequest
from stepglass.run_dir.folder import RunFolder
from stepglass.settings.train import TrainConfig
from stepglass.train.console import Console
from stepglass.train.engines.replicas import MicroBatch, Replicas
from stepglass.train.eval_schedule import LOOK_AT, EvalSchedule
from stepglass.train.evaluate import Windows, window_losses
from stepglass.train.optimizer import MuonAdamW


@dataclass
class RunState:
    """What changes as a run goes on, beside weights and optimizer. A checkpoint stores it."""

    step: int = 0  # updates done
    tokens: int = 0
    evaluated_at: int = -1  # the step of the last evaluation
    best_val_loss: float | None = None
    best_step: int | None = None


@dataclass
class PendingIteration:
    """An iteration that has been queued on the device and not yet read back."""

    step: int
    lr: float
    loss_and_norm: Tensor
    lap: Lap


@dataclass
class PendingSave:
    """A save that is being written: what training has to do with it when it is done."""

    step: int
    stall_ms: float  # what training waited for
    best_before: tuple[float | None, int | None] | None  # to go back to if a new best is not saved

    @property
    def is_best(self) -> bool:
        return self.best_before is not None


@dataclass
class Session:
    """All that the loop works with."""

    cfg: TrainConfig
    run: RunFolder
    device: Device
    peak: Peak
    data: Dataset
    raw_model: Model
    model: nn.Module  # raw_model, or its compiled form
    optimizer: MuonAdamW
    replicas: Replicas | None  # of raw_model, where they are faster than one
    scaler: torch.amp.GradScaler
    state: RunState
    clock: PhaseClock
    log: RunLogWriter
    console: Console
    stop: StopRequest
    windows: Windows
    saver: Saver
    schedule: SaveSchedule
    evals: EvalSchedule
    eval_rows: int  # windows in a batch of an evaluation
    codec: Tokenizer | None  # where text is to be written at evaluations
    tokenizer: bytes  # as every checkpoint keeps it
    shown_dir: Path  # where the console has said that the run is
    rescued_from: str | None = None  # why the run had to leave its folder
    first_step: int = 0  # of this process
    pending: deque[PendingIteration] = field(default_factory=deque)
    pending_save: PendingSave | None = None
    last_saved_step: int = -1  # on disk, or on its way there
    last_val_loss: float | None = None  # of this process's last evaluation
    fastest_mfu: float = 0.0
    warned: set[str] = field(default_factory=set)
    feeds: list[LoggerFeed] = field(default_factory=list)  # the loggers of log_to

    @property
    def run_dir(self) -> Path:
        """Where the run's folder is now."""
        return self.run.where()

    def batch(self, step: int) -> list[MicroBatch]:
        """The micro-batches of an update, on the host. All are read before any is used, so that
        data that cannot be read leaves the update undone, not half done."""
        cfg = self.cfg
        rows = cfg.gradient_accumulation_steps * cfg.batch_size
        x, y = self.data.batch(cfg.seed, step, rows, cfg.block_size)
        parts = torch.split(x, cfg.batch_size), torch.split(y, cfg.batch_size)
        return list(zip(*parts, strict=True))

    def score(self, x: Tensor, y: Tensor) -> Tensor:
        """The mean loss of each row of a batch, which is on the host. Call it in inference mode."""
        if self.replicas is not None:
            return self.replicas.score(x, y)
        return window_losses(self.model, x, y, self.device)

    def iter_ms(self) -> float | None:
        """What an iteration of this process takes, evaluations and start-up aside."""
        steps = self.state.step - self.first_step
        if steps < LOOK_AT:
            return None
        aside_ns = self.clock.spent_ns("eval") + self.clock.spent_ns("warmup")
        return (self.clock.elapsed_ms() - aside_ns / 1e6) / steps

    def close(self) -> None:
        """Let go of the run directory, with everything logged on disk."""
        try:
            if self.replicas is not None:
                self.replicas.close()
        finally:
            self.saver.close()
            self.log.close()
            close_loggers(self.feeds, self.console.say)
            self.say_what_loggers_lost()
            self.run.close()

    def say_what_loggers_lost(self) -> None:
        """Once for each logger that has failed."""
        for feed in self.feeds:
            if feed.failure and f"log to {feed.name}" not in self.warned:
                self.warned.add(f"log to {feed.name}")
                self.console.say(
                    f"warning: {feed.name} gets no more numbers: {feed.failure}; run.jsonl has "
                    "them all"
                )

    def event(self, name: str, detail: dict[str, Any]) -> None:
        """Something that happens now and then, for the run log."""
        self.log.write({"kind": "event", "name": name, "iter": self.state.step, "detail": detail})


@contextmanager
def naming_memory_errors(s: Session) -> Iterator[None]:
    """Memory that runs out ends the run with one line that says what to do."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        s.event("oom", {"message": str(error)[:500]})
        raise out_of_memory(s.device, s.cfg, f"at step {s.state.step}") from error


def is_out_of_memory(error: BaseException) -> bool:
    """torch reports it in several ways."""
    texts = ("out of memory", "can't allocate memory", "not enough memory")
    if not isinstance(error, RuntimeError):
        return isinstance(error, MemoryError)
    return isinstance(error, torch.OutOfMemoryError) or any(text in str(error) for text in texts)


def out_of_memory(device: Device, cfg: TrainConfig, when: str) -> DeviceError:
    if cfg.batch_size > 1:
        less = (
            f"--batch_size={cfg.batch_size // 2} "
            f"--gradient_accumulation_steps={cfg.gradient_accumulation_steps * 2}"
        )
    else:
        less = f"--block_size={max(1, cfg.block_size // 2)}, or lower --n_layer or --n_embd"
    return DeviceError(
        f"{device.type} ({device.name}) ran out of memory {when} with "
        f"batch_size={cfg.batch_size} and block_size={cfg.block_size}; try {less}"
    )


def environment(chosen: Device) -> dict[str, Any]:
    """What has to be the same for a resumed run to be the same to the last bit."""
    return {
        "device": chosen.name,
        "device_type": chosen.type,
        "dtype": str(chosen.dtype).removeprefix("torch."),
        "compile": chosen.compile,
        "replicas": chosen.replicas,
        "threads": chosen.threads,
        "matmul_precision": torch.get_float32_matmul_precision(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        **(processor() if chosen.type == "cpu" else {}),
        "versions": {
            "stepglass": stepglass.__version__,
            "torch": torch.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
    }
