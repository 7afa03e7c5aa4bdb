"""Fits a run to small data: a pure function from facts about the data to settings, with reasons.

    for choice in choices(cfg, facts, free): ...

A model that sees a small text many times memorises it, and predicts new text worse and worse. How
hard it would memorise follows from two ratios: how often it sees each token (epochs), and how many
parameters it has for each token. Their product is the pressure. Dropout and weight decay grow with
its logarithm. For large data the pressure is low, and only a recipe's dropout is left out.
docs/recipes.md has the measurements.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from stepglass import units
from stepglass.settings.train import TrainConfig

# The settings that may be changed, if nobody chose them.
MAY_CHANGE = (
    "max_iters",
    "dropout",
    "weight_decay",
    "eval_iters",
    "eval_interval",
    "eval_budget",
    "patience",
)
LOW_PRESSURE = 10.0  # up to here, dropout makes the best loss worse
DROPOUT_PER_DECADE = 0.13  # of pressure
MOST_DROPOUT = 0.5
MOST_DECAY = 0.3  # from ten times the low pressure on
MOST_EPOCHS = 100  # later ones improve nothing
LEAST_ITERS = 300  # the learning rate has to rise and fall
MOST_EVALS = 32  # in a run
EVAL_SHARE = 0.1  # of the run, at most
FORWARD_SHARE = 0.4  # of an iteration's time: an evaluation has no backward pass
PATIENCE_SHARE = 1 / 3  # of the run


@dataclass(frozen=True)
class Facts:
    """What is known before the first step."""

    train_tokens: int
    val_tokens: int
    parameters: int
    in_embeddings: int  # parameters in the token table and the head


class Choice(NamedTuple):
    """A setting, its new value, and the reason in a few words."""

    key: str
    value: Any
    reason: str


def epochs_of(cfg: TrainConfig, train_tokens: int) -> float:
    """How often the run sees each token of the training data."""
    return cfg.max_iters * cfg.tokens_per_iter / train_tokens


def iters_in(epochs: float, cfg: TrainConfig, train_tokens: int) -> int:
    """The number of iterations that see the training data so often."""
    return max(1, math.ceil(epochs * train_tokens / cfg.tokens_per_iter))


def pressure(cfg: TrainConfig, facts: Facts) -> float:
    """How hard the model would memorise: epochs times parameters per token."""
    return epochs_of(cfg, facts.train_tokens) * facts.parameters / facts.train_tokens


def is_small(cfg: TrainConfig, facts: Facts) -> bool:
    """Whether the data is small for this run."""
    return pressure(cfg, facts) > LOW_PRESSURE


def dropout_for(pressure: float) -> float:
    """The dropout that gives about the best validation loss.

    >>> [dropout_for(x) for x in (0.8, 10, 20, 300, 2000, 1e9)]
    [0.0, 0.0, 0.04, 0.19, 0.3, 0.5]
    """
    if pressure <= LOW_PRESSURE:
        return 0.0
    return round(min(DROPOUT_PER_DECADE * math.log10(pressure / LOW_PRESSURE), MOST_DROPOUT), 2)


def decay_for(pressure: float) -> float:
    """The weight decay that goes with that dropout.

    >>> [decay_for(x) for x in (0.8, 10, 20, 300, 1e9)]
    [0.0, 0.0, 0.09, 0.3, 0.3]
    """
    decades = math.log10(max(pressure, LOW_PRESSURE) / LOW_PRESSURE)
    return round(MOST_DECAY * min(1.0, decades), 2)


def facts_line(cfg: TrainConfig, facts: Facts) -> str:
    share = facts.in_embeddings / facts.parameters
    return (
        f"data: small for this run: {facts.train_tokens:,} training tokens, "
        f"{facts.parameters:,} parameters ({units.percent(share, 1)} of them in embeddings), "
        f"{epochs_of(cfg, facts.train_tokens):.1f} epochs in {cfg.max_iters} iterations"
    )


def choices(cfg: TrainConfig, facts: Facts, free: Collection[str]) -> list[Choice]:
    """The settings to change for small data. Only those in `free` are changed: nobody has chosen
    them."""
    if not is_small(cfg, facts):
        return without_dropout(cfg, facts) if "dropout" in free else []
    found = []
    iters = max(LEAST_ITERS, iters_in(MOST_EPOCHS, cfg, facts.train_tokens))
    if iters < cfg.max_iters and "max_iters" in free:
        epochs = iters * cfg.tokens_per_iter / facts.train_tokens
        found.append(Choice("max_iters", iters, f"{epochs:.0f} epochs; more improve nothing"))
        cfg = replace(cfg, max_iters=iters)
    if cfg.dropout < dropout_for(pressure(cfg, facts)):
        found.extend(against_memorising(cfg, facts))
    return [choice for choice in [*found, *evaluations(cfg, facts)] if choice.key in free]


def against_memorising(cfg: TrainConfig, facts: Facts) -> list[Choice]:
    per_token = facts.parameters / facts.train_tokens
    reason = (
        f"{epochs_of(cfg, facts.train_tokens):.1f} epochs and {per_token:.1f} parameters per "
        "token: the model would memorise the text without it"
    )
    found = [Choice("dropout", dropout_for(pressure(cfg, facts)), reason)]
    decay = decay_for(pressure(cfg, facts))
    if decay > cfg.weight_decay:
        reason = "large weights memorise, and the loss is steadier with it"
        found.append(Choice("weight_decay", decay, reason))
    return found


def without_dropout(cfg: TrainConfig, facts: Facts) -> list[Choice]:
    """A recipe has the dropout that is right for its own data."""
    if not cfg.dropout:
        return []
    epochs = epochs_of(cfg, facts.train_tokens)
    per_token = facts.parameters / facts.train_tokens
    few = "too few to memorise the text"
    reason = f"{epochs:.3g} epochs and {per_token:.3g} parameters per token: {few}"
    return [Choice("dropout", 0.0, reason)]


def evaluations(cfg: TrainConfig, facts: Facts) -> list[Choice]:
    """Evaluate early and often, because memorising begins early, and end the run when it has
    begun. The interval does not depend on the speed of the machine, so the same run is always ended
    at the same step."""
    found = []
    windows = max(1, (facts.val_tokens - 1) // cfg.block_size)
    eval_iters = min(cfg.eval_iters, math.ceil(windows / cfg.batch_size))
    if eval_iters < cfg.eval_iters:
        found.append(Choice("eval_iters", eval_iters, "the whole validation split is no larger"))
    interval = cfg.eval_interval
    if interval == "auto":
        tokens = (eval_iters * cfg.batch_size + min(windows, eval_iters * cfg.batch_size)) * (
            cfg.block_size
        )
        cost = FORWARD_SHARE * tokens / cfg.tokens_per_iter  # in iterations
        interval = near(max(cfg.max_iters / MOST_EVALS, cost / EVAL_SHARE))
        found.append(
            Choice("eval_interval", interval, "early and often, because memorising begins early")
        )
        found.append(Choice("eval_budget", 2 * EVAL_SHARE, "what these evaluations may take"))
    patience = math.ceil(PATIENCE_SHARE * cfg.max_iters / interval)
    found.append(
        Choice("patience", patience, "evaluations without a new best end the run, a third of it")
    )
    return found


def near(value: float) -> int:
    """A round number near this one.

    >>> [near(x) for x in (0.3, 4.7, 9.4, 29, 104, 160)]
    [1, 5, 10, 25, 100, 200]
    """
    power = 10 ** max(0, math.floor(math.log10(max(value, 1))))
    steps = [power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor % 1 == 0]
    return int(min(steps, key=lambda step: abs(math.log(step / max(value, 1e-9)))))
