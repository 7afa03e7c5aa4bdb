"""How long an update takes, measured before the first one, and when a run will end.

step_ms = measure_update_ms(run)  # rehearsed: nothing is learnt
say_when_done(run, step_ms)  # only if the run takes more than an hour
time_left_ms(run, schedule, last_step)  # during the run
"""

import time
from collections.abc import Callable
from datetime import datetime, timedelta

from stepglass import units
from stepglass.train.batches import micro_batches
from stepglass.train.eval_schedule import EvalSchedule
from stepglass.train.run import Run

LEAST_TRIES, LEAST_S = 3, 0.3
LONG_MS = 3_600_000.0
SHORT_MS = 120_000.0  # a run in which nothing is decided by the time of an update


def measure_update_ms(run: Run) -> float:
    """The time of an update: the shortest of several, because other programs only make it longer.
    One is enough if it shows that the run is short. The gradients are discarded, and the weights do
    not change."""
    cfg, engine = run.cfg, run.engine
    batches = micro_batches(run.data, cfg, 0)
    backward_s = update_s = float("inf")
    began, tries = time.perf_counter(), 0
    while tries < LEAST_TRIES or time.perf_counter() - began < LEAST_S:
        backward_s = min(backward_s, _seconds(run, lambda: engine.backward(batches[:1], 0)))
        engine.discard_gradients()
        update_s = min(update_s, _seconds(run, lambda: rehearse_update(run)))
        tries += 1
        update_ms = 1000 * (len(batches) * backward_s + update_s)
        if run.stop.is_set() or (cfg.max_iters - run.first_step) * update_ms < SHORT_MS:
            break
    return update_ms


def rehearse_update(run: Run) -> None:
    """Do an update that changes nothing: with zero gradients the moments stay zero, and with a zero
    learning rate the weights stay the same. It touches all memory that an update uses, in every
    process."""
    for group in run.engine.optimizer.param_groups:
        group["lr"] = 0.0  # set again before every update
    run.engine.rehearse_update(run.cfg.grad_clip)
    for remembered in run.engine.optimizer.state.values():
        remembered["step"].zero_()


def say_when_done(run: Run, step_ms: float, now: datetime | None = None) -> None:
    """If the run will take more than an hour, print how long, and the time of day of its end."""
    left_ms = (run.cfg.max_iters - run.first_step) * step_ms * (1 + run.cfg.eval_budget)
    if left_ms > LONG_MS and not run.cfg.eval_only:
        end = (now or datetime.now()) + timedelta(milliseconds=left_ms)
        run.console.say(
            f"this run will take about {units.duration(left_ms)}, until {end:%A, %d %B, %H:%M}; "
            "Ctrl-C stops it with a checkpoint, and --max_iters makes it shorter"
        )


def time_left_ms(run: Run, schedule: EvalSchedule, last_step: int) -> float | None:
    """The time to the end of the run, with the evaluations that are still due. Waiting for
    checkpoints is part of the mean iteration."""
    step, iter_ms = run.state.step, run.mean_iter_ms()
    if iter_ms is None:
        return None
    if step >= last_step:
        evaluations = int(run.state.evaluated_at != step)
    else:
        every = schedule.every or last_step
        is_done = run.state.evaluated_at == step and step % every == 0
        evaluations = (last_step - 1) // every - (step - 1) // every - is_done + 1  # one at the end
    return (last_step - step) * iter_ms + evaluations * schedule.expected_ms(iter_ms)


def _seconds(run: Run, work: Callable[[], object]) -> float:
    run.device.drain()
    began = time.perf_counter()
    work()
    run.device.drain()
    return time.perf_counter() - began
