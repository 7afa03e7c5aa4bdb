"""Checks that no learning rate of a run rises too far."""

from typing import Any

from stepglass.errors import ConfigError

# Far above any useful value, and far below the largest number that a weight can hold.
MAX_RATE = 1e20


def check_rates(cfg: Any) -> None:
    """Raise ConfigError if a rate of this TrainConfig would rise above MAX_RATE. The other rates
    are scaled like learning_rate: if it rises to a larger min_lr, they rise by the same factor."""
    rises = max(1.0, cfg.min_lr / cfg.learning_rate) if cfg.decay_lr else 1.0
    peaks = {"embedding_lr": cfg.embedding_lr} | ({"muon_lr": cfg.muon_lr} if cfg.uses_muon else {})
    for key, peak in peaks.items():
        if peak * rises > MAX_RATE:
            raise ConfigError(
                f"{key}={peak:g} would rise as learning_rate={cfg.learning_rate:g} does to "
                f"min_lr={cfg.min_lr:g}, to above {MAX_RATE:g}; raise learning_rate or lower min_lr"
            )
