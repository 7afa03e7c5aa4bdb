"""The learning rate as a function of the iteration and the settings.

A run that is extended after its rate has fallen gets a rate that rises again. Where that began is
the only state of a schedule, and checkpoints store it.
"""

import math
from typing import NamedTuple

from stepglass.settings.run_share import iters_of
from stepglass.settings.train import TrainConfig

LEAST_REWARM = 10  # iterations
A_JUMP = 1.2  # times the last rate
AT_THE_END = 0.02  # of the run: a decay that ends this close to it fits


class Rewarm(NamedTuple):
    """The iteration at which the rate of an extended run began to rise again, and its share of the
    schedule's rate there."""

    step: float  # with a time budget, a place between two iterations
    share: float


class Lengths(NamedTuple):
    """The parts of a schedule, in iterations."""

    warmup: int
    cooldown: int
    decay: int  # where the decay ends

    @classmethod
    def of(cls, cfg: TrainConfig) -> "Lengths":
        asked = (cfg.warmup_iters, cfg.cooldown_iters, cfg.lr_decay_iters)
        return cls(*(iters_of(value, cfg.max_iters) for value in asked))


def lr_at(step: float, cfg: TrainConfig, rewarm: Rewarm | None = None) -> float:
    """The learning rate of an iteration. It follows `lr_schedule`, or is constant without
    `decay_lr`."""
    if not cfg.decay_lr:
        return cfg.learning_rate
    lengths = Lengths.of(cfg)
    if cfg.lr_schedule == "trapezoid":
        lr = trapezoid_lr(step, cfg.learning_rate, cfg.min_lr, lengths)
    else:
        lr = cosine_lr(
            step,
            peak=cfg.learning_rate,
            low=cfg.min_lr,
            warmup_iters=lengths.warmup,
            decay_iters=lengths.decay,
        )
    if rewarm is None:
        return lr
    risen = min(1.0, (step - rewarm.step + 1) / (rewarm_iters(cfg) + 1))
    return lr * (rewarm.share + risen * (1 - rewarm.share))


def cosine_lr(
    step: float, *, peak: float, low: float, warmup_iters: float, decay_iters: float
) -> float:
    """nanoGPT's schedule: linear warm-up to `peak`, then half a cosine down to `low`.

    >>> shape = {"peak": 1.0, "low": 0.1, "warmup_iters": 3, "decay_iters": 9}
    >>> [round(cosine_lr(step, **shape), 3) for step in range(11)]
    [0.25, 0.5, 0.75, 1.0, 0.94, 0.775, 0.55, 0.325, 0.16, 0.1, 0.1]
    """
    if step < warmup_iters:
        return warmup_lr(step, peak, warmup_iters)
    if step >= decay_iters:
        return low
    progress = (step - warmup_iters) / (decay_iters - warmup_iters)
    share = 0.5 * (1.0 + math.cos(math.pi * progress))
    return low + share * (peak - low)


def trapezoid_lr(step: float, peak: float, low: float, lengths: Lengths) -> float:
    """Linear warm-up, then flat, then linear down to `low` during the cool-down.

    >>> lengths = Lengths(warmup=1, cooldown=4, decay=8)
    >>> [trapezoid_lr(step, 1.0, 0.5, lengths) for step in (0, 1, 4, 6, 8)]
    [0.5, 1.0, 1.0, 0.75, 0.5]
    """
    if step < lengths.warmup:
        return warmup_lr(step, peak, lengths.warmup)
    if step >= lengths.decay:
        return low
    cooldown = min(lengths.cooldown, lengths.decay - lengths.warmup)
    share = min(1.0, (lengths.decay - step) / cooldown) if cooldown else 1.0
    return low + share * (peak - low)


def warmup_lr(step: float, peak: float, warmup_iters: float) -> float:
    """A linear warm-up: the rate of the first iteration is above 0, and the first iteration after
    the warm-up has the peak rate."""
    return peak * (step + 1) / (warmup_iters + 1)


# -- a run that goes on for longer than planned --------------------------------------------------


def rewarm_iters(cfg: TrainConfig) -> int:
    """How many iterations the rate of an extended run takes to rise again."""
    return max(LEAST_REWARM, Lengths.of(cfg).warmup)


def rewarm_of(step: float, last_lr: float, cfg: TrainConfig) -> Rewarm | None:
    """The rewarming of a run whose next iteration would have a much higher rate than its last."""
    next_lr = lr_at(step, cfg)
    return Rewarm(step, last_lr / next_lr) if next_lr > A_JUMP * last_lr else None


# -- warnings ------------------------------------------------------------------------------------


def schedule_warnings(cfg: TrainConfig) -> list[str]:
    """Warnings about schedules that are probably a mistake. nanoGPT uses them without a warning."""
    if not cfg.decay_lr or cfg.eval_only:
        return []
    found = []
    warmup, _, decay = Lengths.of(cfg)
    if cfg.min_lr > cfg.learning_rate:
        found.append(
            f"min_lr={cfg.min_lr:g} is above learning_rate={cfg.learning_rate:g}: the rate rises "
            "where it should fall; --decay_lr=False keeps it as it is"
        )
    if warmup > decay:
        found.append(
            f"warmup_iters={warmup} is above lr_decay_iters={decay}: the rate climbs until "
            f"iteration {warmup}; --warmup_iters={decay // 10} is usual"
        )
    elif decay < (1 - AT_THE_END) * cfg.max_iters:
        found.append(
            f"lr_decay_iters={decay}: the last {cfg.max_iters - decay} of {cfg.max_iters} "
            f"iterations train at the lowest rate, {cfg.min_lr:g}; "
            f"--lr_decay_iters={cfg.max_iters} fits the run"
        )
    elif decay > (1 + AT_THE_END) * cfg.max_iters > 0:
        last = lr_at(cfg.max_iters - 1, cfg)
        found.append(
            f"lr_decay_iters={decay}: the run ends after {cfg.max_iters} iterations, at a rate of "
            f"{last:.2g} instead of {cfg.min_lr:g}; --lr_decay_iters={cfg.max_iters} fits the run"
        )
    return found
