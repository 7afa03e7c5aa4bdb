"""Checks that the settings of a model fit together."""

from typing import Any

from stepglass.errors import ConfigError


def check_model(cfg: Any) -> None:
    """Raise ConfigError if no model can have the settings of this TrainConfig."""
    has_own_width = cfg.model == "modern" and cfg.n_head_dim
    if has_own_width and cfg.n_head_dim % 2:
        raise ConfigError(f"n_head_dim expects an even number, found {cfg.n_head_dim}")
    if not has_own_width and cfg.n_embd % cfg.n_head:
        raise ConfigError(
            f"n_head={cfg.n_head} must divide n_embd={cfg.n_embd}; change one of them"
        )
    if cfg.model == "modern" and not has_own_width and cfg.n_embd // cfg.n_head % 2:
        raise ConfigError(
            f"model=modern rotates pairs of dimensions: n_embd={cfg.n_embd} over "
            f"n_head={cfg.n_head} must be even; change one of them"
        )
    if cfg.model == "modern" and cfg.n_head % (cfg.n_kv_head or cfg.n_head):
        raise ConfigError(
            f"n_kv_head={cfg.n_kv_head} must divide n_head={cfg.n_head}; change one of them"
        )
    if cfg.model == "modern" and cfg.bias:
        raise ConfigError("bias=True: the modern model has none; leave it out, or --model=gpt2")
    for key in ("n_kv_head", "n_inner"):
        if cfg.model == "gpt2" and getattr(cfg, key):
            raise ConfigError(f"{key} is for --model=modern; leave it out")
