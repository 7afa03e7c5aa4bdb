"""How long an update takes, measured before the first one, and when a run will end.

step_ms = measure_update_ms(engine, data, cfg, left, is_stopping)  # nothing is learnt
say_when_done(run, step_ms)  # only if the run takes more than an hour
"""

import time
from collections.abc import Callable
from datetime import datetime, timedelta

from stepglass import units
from stepglass.data.dataset import Dataset
from stepglass.settings.train import TrainConfig
from stepglass.train.batches import first_rows, micro_batches
from stepglass.train.engines.engine import Engine
from stepglass.train.run import Run

LEAST_TRIES, LEAST_S = 3, 0.3
LONG_MS = 3_600_000.0
SHORT_MS = 120_000.0  # a run in which nothing is decided by the time of an update


def measure_update_ms(
    engine: Engine,
    data: Dataset,
    cfg: TrainConfig,
    left: int,
    is_stopping: Callable[[], bool],
    least_s: float | None = None,
    rows: int | None = None,
) -> float:
    """The time of an update: the shortest of several, because other programs only make it longer.
    One is enough if it shows that the `left` updates take no time. The gradients are discarded, and
    the weights do not change. If only some `rows` of a batch fit, the others are assumed to take as
    long as these."""
    least_s = LEAST_S if least_s is None else least_s
    batches = micro_batches(data, cfg, 0)
    part = first_rows(batches, rows or cfg.batch_size)
    parts = len(batches) * len(batches[0][0]) / len(part[0][0])
    backward_s = update_s = float("inf")
    began, tries = time.perf_counter(), 0
    while tries < LEAST_TRIES or time.perf_counter() - began < least_s:
        backward_s = min(backward_s, _seconds(engine, lambda: engine.backward(part, 0)))
        engine.discard_gradients()
        update_s = min(update_s, _seconds(engine, lambda: rehearse_update(engine, cfg.grad_clip)))
        tries += 1
        update_ms = 1000 * (parts * backward_s + update_s)
        if is_stopping() or left * update_ms < SHORT_MS:
            break
    return update_ms


def rehearse_update(engine: Engine, grad_clip: float) -> None:
    """Do an update that changes nothing: with zero gradients the moments stay zero, and with a zero
    learning rate the weights stay the same. It touches all memory that an update uses, in every
    process."""
    for group in engine.optimizer.param_groups:
        group["lr"] = 0.0  # set again before every update
    engine.rehearse_update(grad_clip)
    for remembered in engine.optimizer.state.values():
        remembered["step"].zero_()


def say_when_done(run: Run, step_ms: float, now: datetime | None = None) -> None:
    """If the run will take more than an hour, print how long, and the time of day of its end."""
    if run.budget is not None:
        return  # it was said already
    left_ms = (run.cfg.max_iters - run.first_step) * step_ms * (1 + run.cfg.eval_budget)
    if left_ms > LONG_MS and not run.cfg.eval_only:
        end = (now or datetime.now()) + timedelta(milliseconds=left_ms)
        run.console.say(
            f"this run will take about {units.duration(left_ms)}, until {end:%A, %d %B, %H:%M}; "
            "Ctrl-C stops it with a checkpoint, and --max_iters makes it shorter"
        )


def _seconds(engine: Engine, work: Callable[[], object]) -> float:
    engine.device.drain()
    began = time.perf_counter()
    work()
    engine.device.drain()
    return time.perf_counter() - began
