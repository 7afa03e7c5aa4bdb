"""The learning rate as a function of the iteration. It has no state that a run must restore."""

import math

from stepglass.settings.train import TrainConfig


def lr_at(step: int, cfg: TrainConfig) -> float:
    """The learning rate of an iteration. It follows `lr_schedule`, or is constant without
    `decay_lr`."""
    if not cfg.decay_lr:
        return cfg.learning_rate
    if cfg.lr_schedule == "trapezoid":
        return trapezoid_lr(step, cfg)
    return cosine_lr(
        step,
        peak=cfg.learning_rate,
        low=cfg.min_lr,
        warmup_iters=cfg.warmup_iters,
        decay_iters=cfg.lr_decay_iters,
    )


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


def trapezoid_lr(step: int, cfg: TrainConfig) -> float:
    """Linear warm-up, then flat, then linear down over `cooldown_iters` to `min_lr`."""
    if step < cfg.warmup_iters:
        return warmup_lr(step, cfg.learning_rate, cfg.warmup_iters)
    if step >= cfg.lr_decay_iters:
        return cfg.min_lr
    cooldown = min(cfg.cooldown_iters, cfg.lr_decay_iters - cfg.warmup_iters)
    share = min(1.0, (cfg.lr_decay_iters - step) / cooldown) if cooldown else 1.0
    return cfg.min_lr + share * (cfg.learning_rate - cfg.min_lr)


def warmup_lr(step: float, peak: float, warmup_iters: float) -> float:
    """A linear warm-up: the rate of the first iteration is above 0, and the first iteration after
    the warm-up has the peak rate."""
    return peak * (step + 1) / (warmup_iters + 1)


def schedule_warnings(cfg: TrainConfig) -> list[str]:
    """Warnings about schedules that are probably a mistake. nanoGPT uses them without a warning."""
    found = []
    if cfg.decay_lr and cfg.min_lr > cfg.learning_rate:
        found.append(
            f"min_lr={cfg.min_lr:g} is above learning_rate={cfg.learning_rate:g}: the rate rises "
            "where it should fall; --decay_lr=False keeps it as it is"
        )
    if cfg.decay_lr and cfg.warmup_iters > cfg.lr_decay_iters:
        found.append(
            f"warmup_iters={cfg.warmup_iters} is above lr_decay_iters={cfg.lr_decay_iters}: the "
            f"rate climbs until iteration {cfg.warmup_iters}; --warmup_iters="
            f"{cfg.lr_decay_iters // 10} is usual"
        )
    return found
