"""A run that is given a time instead of a number of iterations (`--minutes`).

`sized_for_time` chooses a model before the run's own is built. `plan_by_clock` starts the time
budget when an update has been timed, and estimates how many there will be.
"""

import math
import sys
from collections.abc import Collection
from dataclasses import asdict, replace
from datetime import datetime, timedelta

from stepglass import json_files, units
from stepglass.checkpoint.tensors import Snapshot
from stepglass.data.dataset import Dataset
from stepglass.errors import ConfigError
from stepglass.files import FileOps, replace_file
from stepglass.hardware.device import Device
from stepglass.hardware.peak import Peak
from stepglass.hardware.ranks import this_rank
from stepglass.measure.clock import PhaseClock
from stepglass.measure.shapes import shape_of
from stepglass.settings import fit_to_data
from stepglass.settings.train import TrainConfig
from stepglass.train import fit_to_time
from stepglass.train.batch_probe import Probe, most_rows, time_of
from stepglass.train.building import Surroundings
from stepglass.train.fit_to_time import TimeAndData
from stepglass.train.time_budget import END_MS, TimeBudget
from stepglass.train.training import Training

LEAST_MS = 3000.0  # for training
START_MS = 2000.0  # of the start-up that is still to come when the model is chosen
LOOKS = 2  # models that are timed: the one that the peak suggests, and the one that follows
LOOK_S = 1.0  # other programs may disturb a shorter look from its beginning to its end
LOOK_UPDATES, LOOK_SHARE = 5, 0.05  # what a look takes, and how much of the time it may take


def sized_for_time(
    cfg: TrainConfig, data: Dataset, speed: tuple[Device, Peak], around: Surroundings
) -> TrainConfig:
    """The settings with a model for the time, and about as many iterations as will fit into it. A
    run that is resumed keeps its model."""
    if not cfg.minutes or cfg.init_from == "resume" or cfg.eval_only:
        return cfg
    check_time(cfg, around.clock)
    free = set(around.free)
    if cfg.starts_from_model:
        free -= set(fit_to_time.MAY_CHANGE)
    facts = measured_facts(cfg, data, speed, around, free)
    changes = fit_to_time.model_for_time(cfg, facts, free)
    cfg = replace(cfg, **changes)
    iters = facts.updates(cfg)
    if changes:
        chosen = ", ".join(f"{key}={value}" for key, value in changes.items())
        per_token = shape_of(cfg, data.vocab_size).flops_per_token()
        flops = units.flops(iters * cfg.tokens_per_iter * per_token)
        around.console.say(f"minutes: {cfg.minutes:g}: about {flops} fit into the time: {chosen}")
    return replace(cfg, max_iters=min(iters, most_iters(cfg, len(data.train))))


def measured_facts(
    cfg: TrainConfig,
    data: Dataset,
    speed: tuple[Device, Peak],
    around: Surroundings,
    free: Collection[str],
) -> TimeAndData:
    """What the choice depends on. On a CPU, the model that the peak suggests is timed, because
    CPUs differ in how much of their peak small models reach."""
    device, peak = speed
    processes = this_rank().of
    one_peak = peak.flops_per_s / processes if peak.flops_per_s else None
    dtype = str(device.dtype).removeprefix("torch.")
    facts = TimeAndData(
        seconds=seconds_for_updates(cfg, around.clock),
        chip=fit_to_time.chip_here(device.type, device.name, dtype, one_peak),
        processes=processes,
        vocab_size=data.vocab_size,
        train_tokens=len(data.train),
        val_tokens=len(data.val),
    )
    has_choice = not set(free).isdisjoint(fit_to_time.MAY_CHANGE)
    if device.type != "cpu" or around.group is not None or not has_choice:
        return facts
    timed = None
    for _ in range(LOOKS):
        guess = replace(cfg, **fit_to_time.model_for_time(cfg, facts, free))
        shape = shape_of(guess, data.vocab_size)
        probe = Probe(
            guess, device, data, shape, around.clock, around.console, around.stop.is_set,
            least_s=min(LOOK_S, LOOK_SHARE / LOOKS * facts.seconds),
        )  # fmt: skip
        look_s = LOOK_UPDATES * facts.update_time(guess, facts.chip).total_ms / 1000
        is_too_long = look_s > LOOK_SHARE * facts.seconds
        # What does not fit into memory is refused later, with the reason.
        if guess == timed or is_too_long or most_rows(probe) < guess.batch_size:
            break
        timed, update_ms = guess, time_of(probe, guess.batch_size)
        if update_ms is None:
            break
        seconds = seconds_for_updates(cfg, around.clock)
        facts = replace(facts.measured(guess, update_ms), seconds=seconds)
    return facts


def check_time(cfg: TrainConfig, clock: PhaseClock) -> None:
    """Raise an error if the time is too short for a run."""
    ends_ms = clock.elapsed_ms() + START_MS
    if cfg.minutes * 60_000 < ends_ms + LEAST_MS:
        least_minutes = math.ceil(10 * (ends_ms + LEAST_MS) / 60_000) / 10
        raise ConfigError(
            f"--minutes={cfg.minutes:g}: the start and the end of a run take "
            f"{units.duration(ends_ms)} here; expected at least {least_minutes:g}"
        )


def seconds_for_updates(cfg: TrainConfig, clock: PhaseClock) -> float:
    """The time that is left for updates."""
    left_ms = max(LEAST_MS, cfg.minutes * 60_000 - clock.elapsed_ms() - START_MS)
    return left_ms * (1 - cfg.eval_budget) / 1000


def plan_by_clock(t: Training, update_ms: float, resumed: Snapshot | None) -> None:
    """Start the time budget, and say how many iterations fit into it."""
    run, cfg = t.run, t.run.cfg
    if not cfg.minutes or cfg.eval_only:
        return
    budget = TimeBudget(cfg.minutes * 60_000, run.clock.elapsed_ms)
    if resumed is not None:
        budget.spent_ms = float(resumed.state.get("spent_ms", 0.0))
        budget.done_before = min(1.0, budget.spent_ms / budget.total_ms)
    left_ms = budget.left_ms(END_MS) * (1 - cfg.eval_budget)
    fitting = max(1, int(left_ms / max(update_ms, 1e-3)))
    most = most_iters(cfg, len(run.data.train))
    if run.first_step + fitting > most:
        too_small(t, most, update_ms)
        return
    run.budget = budget
    budget.begin()  # again before the first update
    set_length(t, run.first_step + fitting)
    end = datetime.now() + timedelta(milliseconds=budget.left_ms())
    run.console.say(
        f"minutes: {cfg.minutes:g}: about {fitting} iterations, until {end:%H:%M:%S}; the learning "
        "rate follows the clock"
    )


def most_iters(cfg: TrainConfig, train_tokens: int) -> int:
    """The number of iterations beyond which small data teaches nothing new."""
    enough = fit_to_data.iters_in(fit_to_data.MOST_EPOCHS, cfg, train_tokens)
    return max(fit_to_data.LEAST_ITERS, enough)


def too_small(t: Training, most: int, update_ms: float) -> None:
    run = t.run
    epochs = most * run.cfg.tokens_per_iter / len(run.data.train)
    took = units.duration((most - run.first_step) * update_ms * (1 + run.cfg.eval_budget))
    run.console.say(
        f"minutes: {run.cfg.minutes:g}: the data is too small for so much time: the run ends after "
        f"{most} iterations, {epochs:.0f} epochs, in about {took}; more would improve nothing"
    )
    set_length(t, most)


def set_length(t: Training, iters: int) -> None:
    """Plan for this many iterations. With a time budget, the run ends when the time is up."""
    run = t.run
    run.cfg = replace(run.cfg, max_iters=iters)
    t.last_step = iters if run.budget is None else sys.maxsize
    t.evals.schedule.max_iters = iters


def keep_length(t: Training) -> None:
    """When the time is up, the number of updates is the length of the run, for those who read its
    settings or go on with it."""
    run = t.run
    run.cfg = replace(run.cfg, max_iters=run.state.step)
    settings = json_files.json_bytes(asdict(run.cfg))
    replace_file(FileOps(), run.folder.folder, "config.json", settings)
