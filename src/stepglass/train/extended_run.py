"""A run that goes on for longer than it was planned: its learning rate has fallen, and rises again.

Schedules in shares of the run follow its new length. A jump of the rate would undo what was learnt,
so it rises over as many iterations as a warm-up takes.
"""

from typing import Any

from stepglass import units
from stepglass.errors import ConfigError
from stepglass.settings.lr_schedule import lr_at, rewarm_iters, rewarm_of
from stepglass.settings.run_share import iters_of
from stepglass.settings.train import SCHEDULE_ITERS, TRAIN_SETTINGS, TrainConfig
from stepglass.train.run import Run

SCHEDULE_KEYS = (
    "max_iters",
    "decay_lr",
    "learning_rate",
    "min_lr",
    "lr_schedule",
    "warmup_iters",
    "cooldown_iters",
    "lr_decay_iters",
)


def in_iterations(stored: Any) -> Any:
    """The settings of a checkpoint, with every share of the run as a number of iterations."""
    try:
        length = stored["max_iters"]
        return {**stored, **{key: iters_of(stored[key], length) for key in SCHEDULE_ITERS}}
    except (KeyError, TypeError, ValueError):
        return stored  # damaged, or written by a version with other settings


def rewarm_if_extended(run: Run, stored: Any, place: float) -> None:
    """If the run was shorter before and its learning rate has fallen, let the rate rise again.
    `place` is where the run is on its schedule."""
    cfg, state = run.cfg, run.state
    try:
        given = {key: TRAIN_SETTINGS.given(key, stored[key], "checkpoint") for key in SCHEDULE_KEYS}
        before: TrainConfig = TRAIN_SETTINGS.build(given)
    except (ConfigError, KeyError, TypeError):
        return  # written by a version with other settings
    is_same = before.learning_rate == cfg.learning_rate and before.decay_lr == cfg.decay_lr
    has_more_time = cfg.minutes > (units.finite(stored.get("minutes")) or 0.0)
    is_longer = cfg.max_iters > before.max_iters or has_more_time
    if not is_longer or not is_same or state.step == 0:
        return
    last_lr = state.last_lr  # earlier versions did not store it
    if last_lr is None:
        last_lr = lr_at(state.step - 1, before, state.rewarm)
    found = rewarm_of(place, last_lr, cfg)
    if found is None:
        return
    state.rewarm = found
    peak = lr_at(place + rewarm_iters(cfg), cfg, found)
    run.console.say(
        f"schedule: now for {cfg.max_iters} iterations instead of {before.max_iters}: the learning "
        f"rate rises from {last_lr:.2g} to {peak:.2g} in {rewarm_iters(cfg)} iterations, and falls "
        "again at the end"
    )
