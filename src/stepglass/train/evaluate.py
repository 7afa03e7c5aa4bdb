"""Evaluates the model on the same windows of the data every time.

With random batches, two evaluations would also differ by chance. Fixed windows avoid that. They are
chosen by a separate random generator, so an evaluation does not change the next training batches.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from stepglass import units
from stepglass.data.dataset import Dataset, inputs_and_targets
from stepglass.data.token_file import TokenFile
from stepglass.data.tokenizer import Tokenizer
from stepglass.hardware.device import Device
from stepglass.hardware.ranks import this_rank
from stepglass.measure.bits_per_byte import bits_per_byte
from stepglass.measure.event_details import RanksEvent, SampleEvent
from stepglass.measure.records import EvalRecord
from stepglass.sample.text import short_text
from stepglass.settings.train import TrainConfig
from stepglass.train.engines.engine import Engine
from stepglass.train.eval_schedule import EvalSchedule
from stepglass.train.evaluation import Evaluation
from stepglass.train.memory_errors import is_out_of_memory
from stepglass.train.run import Run
from stepglass.train.turning import Turning

# Tokens in a batch. On a CPU, sizes from 512 to 16384 take the same time, within noise. A GPU is
# busy long before this; more tokens would only take memory that training needs.
CPU_TOKENS, GPU_TOKENS = 8192, 32768
SLOW_RANK = 1.25  # times the computing of the fastest process


@dataclass
class Windows:
    """What every evaluation of a run reads: the start of each window, and the batch size, which
    becomes smaller if memory runs out."""

    data: Dataset
    train: "np.ndarray[Any, Any]"
    val: "np.ndarray[Any, Any]"
    block_size: int
    rows: int  # windows in a batch


def choose_windows(data: Dataset, cfg: TrainConfig, device: Device) -> Windows:
    """`eval_iters` batches of each split, or the whole split if it is smaller. With a target loss,
    the whole validation split is used."""
    count = cfg.eval_iters * cfg.batch_size
    all_of_val = len(data.val) if cfg.target_val_loss else count
    train = data.eval_windows(data.train, cfg.seed, count, cfg.block_size)
    val = data.eval_windows(data.val, cfg.seed, all_of_val, cfg.block_size)
    most = max(len(train), len(val), 1)
    rows = min(most, this_rank().of * rows_at_once(most, cfg.block_size, device))
    return Windows(data, train, val, cfg.block_size, rows)


def rows_at_once(most: int, block_size: int, device: Device) -> int:
    """The number of windows in a batch. Free memory does not decide it: at the start, training has
    not taken its part yet. The loss is computed in chunks, so the vocabulary does not matter."""
    tokens = CPU_TOKENS if device.type == "cpu" else GPU_TOKENS
    return min(most, max(device.replicas, tokens // block_size))


def evaluate(
    engine: Engine, windows: Windows, is_stopping: Callable[[], bool]
) -> Evaluation | None:
    """Compute the losses of both splits. Returns None if the run is asked to stop meanwhile."""
    data = windows.data
    train = _losses(engine, data.train, windows.train, windows, is_stopping)
    if train is None:
        return None
    val = _losses(engine, data.val, windows.val, windows, is_stopping)
    if val is None:
        return None
    weights = weights_of(data.val, windows.val, windows.block_size)
    around = val if weights is None else val - val.mean() * weights
    spread = float(around.std()) / len(val) ** 0.5 if len(val) > 1 else None
    return Evaluation(float(train.mean()), float(val.mean()), spread, len(val), val)


def weights_of(
    split: TokenFile, offsets: "np.ndarray[Any, Any]", block_size: int
) -> torch.Tensor | None:
    """The weight of each window in the mean of all targets that count: 1 on average. None if all
    targets count."""
    if split.mask is None:
        return None
    counted = torch.from_numpy(split.num_counted(offsets, block_size)).double()
    return counted / counted.mean()


@torch.inference_mode()
def _losses(
    engine: Engine,
    split: TokenFile,
    offsets: "np.ndarray[Any, Any]",
    windows: Windows,
    is_stopping: Callable[[], bool],
) -> torch.Tensor | None:
    """The loss of each window, with its weight, in double precision on the host."""
    scores: list[torch.Tensor] = []
    start = 0
    while start < len(offsets):
        if is_stopping():
            return None
        scores.append(score_batch(engine, split, offsets[start:], windows))
        start += len(scores[-1])
    losses = torch.cat(scores).cpu().double()  # waits for the device, only here
    weights = weights_of(split, offsets, windows.block_size)
    return losses if weights is None else losses * weights


@torch.inference_mode()
def score_batch(
    engine: Engine, split: TokenFile, offsets: "np.ndarray[Any, Any]", windows: Windows
) -> torch.Tensor:
    """The mean loss of each of the first windows, as many as fit in a batch. If memory runs out,
    this batch and all later ones become half as large."""
    while True:
        batch = offsets[: windows.rows]
        num_scored = len(batch)
        if engine.device.compile:
            # Pad the last batch: a compiled model would compile again for a smaller one.
            batch = np.resize(batch, windows.rows)
        try:
            x, y = inputs_and_targets(split, batch, windows.block_size)
            return engine.score(x, y)[:num_scored]
        except (RuntimeError, MemoryError) as error:
            half = len(batch) // 2
            if not is_out_of_memory(error) or half < engine.device.replicas:
                raise
        # Not in the `except` block: there, the error still holds the tensors of the failed batch.
        windows.rows = half


def slow_rank_line(event: RanksEvent) -> str | None:
    """A note if one of several processes takes much longer than the fastest.

    >>> slow_rank_line(RanksEvent(compute_ms=[40.0, 60.0], wait_ms=[21.0, 1.0]))
    'note: rank 1 is slow: 60.00ms of computing an update, where rank 0 takes 40.00ms and waits'
    >>> slow_rank_line(RanksEvent(compute_ms=[40.0, 41.0], wait_ms=[2.0, 1.0]))
    """
    took = event.compute_ms
    slowest, fastest = took.index(max(took)), took.index(min(took))
    if took[slowest] < SLOW_RANK * took[fastest]:
        return None
    return (
        f"note: rank {slowest} is slow: {units.duration(took[slowest])} of computing an update, "
        f"where rank {fastest} takes {units.duration(took[fastest])} and waits"
    )


@dataclass
class Evaluations:
    """The evaluations of a run: when they are due, and what is logged and said about each."""

    run: Run
    windows: Windows
    schedule: EvalSchedule
    tokenizer: Tokenizer | None  # set if a text sample is logged with each evaluation
    turning: Turning = field(default_factory=Turning)

    def is_due(self, step: int) -> bool:
        if self.schedule.every is None:
            self._say(self.schedule.decide(self.run.iter_ms()))
            self.run.state.eval_every = self.schedule.every
        return self.schedule.is_due(step)

    def sample(self) -> str | None:
        """A text that the model writes, if `sample_tokens` is set. It uses a random generator of
        its own, so training does not change."""
        if self.tokenizer is None:
            return None
        run = self.run
        return short_text(run.engine.model, self.tokenizer, run.cfg.sample_tokens, run.stop.is_set)

    def record(self, result: Evaluation, wall_ms: float, text: str | None) -> None:
        """Log and print an evaluation of the current weights."""
        run = self.run
        run.state.evaluated_at, run.last_val_loss = run.state.step, result.val_loss
        record = EvalRecord(
            iter=run.state.step,
            wall_ms=wall_ms,
            train_loss=result.train_loss,
            val_loss=result.val_loss,
            val_se=result.val_se,
            windows=result.windows,
            val_bits_per_byte=bits_per_byte(result.val_loss, run.data.val_bytes_per_token),
        )
        run.log.write(record)
        if text is not None:
            run.event(SampleEvent(text=text))
        run.console.evaluation(record)
        self._record_ranks()
        if run.cfg.eval_only:
            return
        self._say(self.turning.add(run.state.step, result))
        self._say(self.schedule.measured(wall_ms, run.iter_ms()))
        run.state.eval_every = self.schedule.every

    def _record_ranks(self) -> None:
        """Log how long each of several processes has computed, and say if one is slow."""
        event = self.run.engine.rank_times()
        if event is not None:
            self.run.event(event)
            self._say(slow_rank_line(event))

    def _say(self, line: str | None) -> None:
        if line is not None:
            self.run.console.say(line)
