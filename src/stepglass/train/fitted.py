"""Fits the settings of a run to its data, before anything is built, and prints what and why."""

from collections.abc import Collection
from dataclasses import replace

from stepglass.data.dataset import Dataset
from stepglass.measure.shapes import Shape, shape_of
from stepglass.settings import fit_to_data
from stepglass.settings.fit_to_data import Facts
from stepglass.settings.train import TrainConfig
from stepglass.train.console import Console


def fitted(cfg: TrainConfig, data: Dataset, free: Collection[str], console: Console) -> TrainConfig:
    """The settings with `epochs` as iterations and, if the data is small for the run, with better
    values of those settings that nobody chose. A run that is resumed keeps its settings."""
    if cfg.epochs:
        iters = fit_to_data.iters_in(cfg.epochs, cfg, len(data.train))
        console.say(f"epochs: {cfg.epochs:g}: {iters} iterations")
        cfg = replace(cfg, max_iters=iters)
    if cfg.init_from != "resume" and not cfg.eval_only:
        facts = facts_of(data, shape_of(cfg, data.vocab_size))
        if fit_to_data.is_small(cfg, facts):
            console.say(fit_to_data.facts_line(cfg, facts))
        for key, value, reason in fit_to_data.choices(cfg, facts, free):
            console.say(f"{key}: {value}: {reason}")
            cfg = replace(cfg, **{key: value})
    return replace(cfg, patience=0) if cfg.patience == "auto" else cfg


def facts_of(data: Dataset, shape: Shape) -> Facts:
    per_token = shape.num_params() - replace(shape, vocab_size=shape.vocab_size - 1).num_params()
    return Facts(
        train_tokens=len(data.train),
        val_tokens=len(data.val),
        parameters=shape.num_params(),
        in_embeddings=shape.vocab_size * per_token,
    )
