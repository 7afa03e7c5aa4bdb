"""Finds the fastest micro-batch for an update of a given number of sequences (`batch_size=auto`).

    cfg = with_fastest_batch(Probe(cfg, device, data, shape, clock, console, stop.is_set))

An update of 24 sequences is one micro-batch of 24, or two of 12, or three of 8. The result is the
same, but the time and the memory are not. Every one that fits is timed by real forward and backward
passes and a rehearsed update, the largest first, until smaller ones are clearly slower. The models
of these trials are thrown away. The run's own is made afterwards, from its seed, so nothing of this
is left in the run.

On a CPU, half of the threads may be faster than all: two threads of one core share its arithmetic.
So fewer threads are tried as well, with the chosen micro-batch.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch

from stepglass import units
from stepglass.data.dataset import Dataset
from stepglass.hardware import choose
from stepglass.hardware.device import Device
from stepglass.measure.clock import PhaseClock
from stepglass.measure.memory_model import MemoryNeed, largest_batch
from stepglass.measure.shapes import Shape
from stepglass.models import registry
from stepglass.settings.train import TrainConfig
from stepglass.train.batches import micro_batches
from stepglass.train.console import Console
from stepglass.train.engines.engine import Engine
from stepglass.train.engines.making import make_engine
from stepglass.train.memory_check import need_of
from stepglass.train.memory_errors import is_out_of_memory
from stepglass.train.optimizer import leave_compiler_out, make_optimizer
from stepglass.train.pace import measure_update_ms, rehearse_update

CLEARLY = 1.05  # times the shortest: slower than this twice in a row, and the search ends
SLOWER_IN_A_ROW = 2
EQUAL = 1.01  # times the shortest: a larger batch that is no slower is preferred
MANY = 10**9  # updates: measure each size carefully, however short the run is


@dataclass(frozen=True)
class Probe:
    """What is to be trained, and where."""

    cfg: TrainConfig
    device: Device
    data: Dataset
    shape: Shape
    clock: PhaseClock
    console: Console
    is_stopping: Callable[[], bool]
    least_s: float | None = None  # that updates are timed for; None: as before any run

    @property
    def rows(self) -> int:
        """Sequences in an update."""
        return self.cfg.batch_size * self.cfg.gradient_accumulation_steps


@dataclass(frozen=True)
class Tried:
    """A micro-batch, and the time of an update with it in milliseconds; None: too little memory."""

    batch_size: int
    update_ms: float | None


def with_fastest_batch(probe: Probe) -> TrainConfig:
    """The settings with the fastest micro-batch. If no size fits, they stay as they are, and the
    check of the memory says what is missing."""
    tried = list(try_sizes(probe))
    chosen = fastest(tried)
    if chosen is None:
        return probe.cfg
    probe.console.say(batch_line(chosen, tried, probe.rows))
    steps = probe.rows // chosen.batch_size
    cfg = replace(probe.cfg, batch_size=chosen.batch_size, gradient_accumulation_steps=steps)
    if probe.device.type != "cpu" or cfg.threads or chosen.update_ms is None:
        return cfg
    return replace(cfg, threads=fewer_threads(replace(probe, cfg=cfg), chosen.update_ms))


def fewer_threads(probe: Probe, update_ms: float) -> int:
    """The number of threads that is clearly faster than all of them, or 0 if there is none. It is
    halved as long as that pays."""
    every = best = probe.device.threads
    best_ms = update_ms
    while best > 1 and not probe.is_stopping():
        torch.set_num_threads(best // 2)
        device = replace(probe.device, threads=best // 2)
        found_ms = time_of(replace(probe, device=device), probe.cfg.batch_size)
        torch.set_num_threads(every)
        if found_ms is None or CLEARLY * found_ms > best_ms:
            break
        best, best_ms = best // 2, found_ms
    if best == every:
        return 0
    probe.console.say(
        f"threads: {best}: an update takes {units.milliseconds(best_ms)}, and "
        f"{units.milliseconds(update_ms)} with {every}"
    )
    return best


def fastest(tried: list[Tried]) -> Tried | None:
    """The one with the shortest update; of equal ones, the largest."""
    timed = [(each.update_ms, each) for each in tried if each.update_ms is not None]
    least_ms = min((ms for ms, _ in timed), default=0.0)
    return next((each for ms, each in timed if ms <= EQUAL * least_ms), None)


def sizes_to_try(rows: int, most: int) -> list[int]:
    """The micro-batches that an update of `rows` sequences can consist of, the largest first.

    >>> sizes_to_try(24, 100), sizes_to_try(480, 9)
    ([24, 12, 8, 6, 4, 3, 2, 1], [8, 6, 5, 4, 3, 2, 1])
    """
    return [size for size in range(min(rows, most), 0, -1) if rows % size == 0]


def try_sizes(probe: Probe) -> Iterator[Tried]:
    """Time updates with one micro-batch after the other."""
    best_ms, slower = float("inf"), 0
    for size in sizes_to_try(probe.rows, most_rows(probe)):
        update_ms = time_of(probe, size)
        yield Tried(size, update_ms)
        if update_ms is None:
            continue  # a smaller one may fit
        slower = slower + 1 if update_ms > CLEARLY * best_ms else 0
        best_ms = min(best_ms, update_ms)
        if slower == SLOWER_IN_A_ROW or probe.is_stopping():
            return


def most_rows(probe: Probe) -> int:
    """The largest micro-batch that memory is expected to hold; at least 1."""
    available = probe.device.available_bytes()
    if available is None:
        return probe.rows

    def need(size: int) -> MemoryNeed:
        return need_of(probe.cfg, probe.shape, probe.device, size, size < probe.rows)

    return largest_batch(need, available) or 1


def time_of(probe: Probe, batch_size: int) -> float | None:
    """The time of an update in milliseconds, or None if there is too little memory for it."""
    steps = probe.rows // batch_size
    cfg = replace(probe.cfg, batch_size=batch_size, gradient_accumulation_steps=steps)
    engine = None
    try:
        engine = engine_for(probe, cfg)
        rehearse_update(engine, cfg.grad_clip)
        engine.backward(micro_batches(probe.data, cfg, 0)[:1], 0)  # allocates memory
        engine.discard_gradients()
        return measure_update_ms(engine, probe.data, cfg, MANY, probe.is_stopping, probe.least_s)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        return None
    finally:
        if engine is not None:
            engine.close()
            del engine
        if probe.device.type == "cuda":
            torch.cuda.empty_cache()


def engine_for(probe: Probe, cfg: TrainConfig) -> Engine:
    device = probe.device
    replicas, _ = choose.pick_replicas(device, cfg.batch_size, probe.shape.num_params())
    model = registry.model_of(probe.shape).to(device.torch_device)
    leave_compiler_out()
    return make_engine(
        model,
        make_optimizer(model, cfg, device.torch_device),
        replace(device, replicas=replicas),
        seed=cfg.seed,
        clock=probe.clock,
        console=probe.console,
        is_stopping=probe.is_stopping,
    )


def batch_line(chosen: Tried, tried: list[Tried], rows: int) -> str:
    """What was chosen, and what was measured."""
    times = ", ".join(
        f"{each.batch_size}: "
        + (units.milliseconds(each.update_ms) if each.update_ms else "too little memory")
        for each in tried
    )
    return (
        f"batch_size: {chosen.batch_size} in {rows // chosen.batch_size} steps: the fastest way to "
        f"{rows} sequences per update ({times})"
    )
