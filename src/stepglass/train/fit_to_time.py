"""Fits a model to the time of a run (`--minutes`): a pure function from the speed of the machine,
the time and the data to settings.

    cfg = replace(cfg, **model_for_time(cfg, facts, free))

The time and the speed make a budget of floating-point operations. A larger model learns more from
each token, and sees fewer of them. The best size is the largest one that still sees enough tokens
for each of its parameters. How many are enough was found by runs on a CPU: docs/recipes.md.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from stepglass.measure.shapes import shape_of
from stepglass.settings.train import TrainConfig


class Rung(NamedTuple):
    """A size of model, and how it is trained."""

    n_layer: int
    n_embd: int
    n_head: int
    block_size: int
    batch_size: int
    rate: float  # factor on the learning rates of the recipe

    def settings(self, cfg: TrainConfig) -> dict[str, Any]:
        """The settings of this rung."""
        return {
            "n_layer": self.n_layer,
            "n_embd": self.n_embd,
            "n_head": self.n_head,
            "n_inner": 2 * self.n_embd if cfg.model == "modern" else 0,
            "block_size": self.block_size,
            "batch_size": self.batch_size,
            "learning_rate": round(cfg.learning_rate * self.rate, 5),
            "embedding_lr": round(cfg.embedding_lr * self.rate, 5),
            "muon_lr": round(cfg.muon_lr * self.rate, 5),
        }


RUNGS = (
    Rung(2, 64, 2, 64, 24, 1.0),
    Rung(2, 64, 2, 128, 16, 1.0),
    Rung(2, 96, 3, 128, 16, 1.0),
    Rung(3, 96, 3, 128, 16, 1.0),
    Rung(3, 128, 4, 256, 8, 1.0),
    Rung(3, 160, 5, 256, 8, 1.0),
    Rung(4, 192, 6, 256, 12, 1.0),
    Rung(5, 256, 8, 256, 16, 0.85),
    Rung(6, 384, 6, 256, 32, 0.7),
    Rung(8, 512, 8, 256, 64, 0.6),
    Rung(12, 768, 12, 512, 64, 0.5),
)
ENOUGH = 3.5  # tokens seen for each parameter that is computed with
MOST_PER_TOKEN = 12.0  # parameters for each token of the data: more would only memorise it
LEAST_WINDOWS = 4  # of the context's length in the validation split
MFU = 0.4  # of the peak: what models of these sizes reach on the machines that were measured
ASSUMED_PEAK = {"cpu": 1e11}  # floating-point operations per second, if it is unknown
ASSUMED_GPU_PEAK = 2e13

# The settings that may be changed, if nobody chose them.
MAY_CHANGE = tuple(RUNGS[0].settings(TrainConfig()))
SHAPE = ("n_layer", "n_embd", "n_head", "n_inner")
OF_THE_HEADS = ("n_kv_head", "n_head_dim")  # they have to go with the number of heads


@dataclass(frozen=True, kw_only=True)
class TimeAndData:
    """What is known before the model is built."""

    seconds: float  # for training
    peak_flops: float | None  # per second
    device_type: str
    vocab_size: int
    train_tokens: int
    val_tokens: int

    @property
    def flops(self) -> float:
        """The floating-point operations that fit into the time."""
        assumed = ASSUMED_PEAK.get(self.device_type, ASSUMED_GPU_PEAK)
        return self.seconds * MFU * (self.peak_flops or assumed)


def rung_for(cfg: TrainConfig, facts: TimeAndData, context: int | None = None) -> Rung:
    """The largest size that sees enough tokens in the time, and that has enough data. `context` is
    a block_size that was given."""
    best = RUNGS[0]
    for rung in RUNGS[1:]:
        block_size = context or rung.block_size
        settings = rung.settings(cfg) | dict.fromkeys(OF_THE_HEADS, 0)
        shape = shape_of(replace(cfg, **settings | {"block_size": block_size}), facts.vocab_size)
        computed = shape.num_params() - shape.num_looked_up()
        sees_enough = facts.flops / shape.flops_per_token() >= ENOUGH * computed
        has_enough = (
            computed <= MOST_PER_TOKEN * facts.train_tokens
            and LEAST_WINDOWS * block_size <= facts.val_tokens
        )
        if sees_enough and has_enough:
            best = rung
    return best


def model_for_time(cfg: TrainConfig, facts: TimeAndData, free: Collection[str]) -> dict[str, Any]:
    """The settings to change for the time. If a part of the model's shape was given, all of it
    stays as it is, because the parts belong together. Batch and context are then still those that
    suit the time."""
    context = None if "block_size" in free else cfg.block_size
    wanted = rung_for(cfg, facts, context).settings(cfg)
    if not all(key in free for key in (*SHAPE, *OF_THE_HEADS)):
        wanted = {key: value for key, value in wanted.items() if key not in SHAPE}
    return {
        key: value for key, value in wanted.items() if key in free and value != getattr(cfg, key)
    }
