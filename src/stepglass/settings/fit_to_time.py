"""Fits a model to the time of a run (`--minutes`): a pure function from the speed of the machine
and the time to settings.

    cfg = replace(cfg, **model_for_time(cfg, facts, free))

The time and the speed make a budget of floating-point operations. A larger model learns more from
each token, and sees fewer of them. The best size for a budget was found by runs on a CPU
(docs/recipes.md); between and beyond them, the sizes follow a power of the budget.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

from stepglass.settings.train import TrainConfig


class Rung(NamedTuple):
    """A size of model, and how it is trained. Used from `from_flops` on."""

    from_flops: float  # of the whole run
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
    Rung(0, 2, 96, 3, 64, 24, 1.0),
    Rung(2e12, 3, 128, 4, 64, 24, 1.0),
    Rung(1e13, 4, 192, 6, 128, 16, 1.0),
    Rung(6e13, 5, 256, 8, 128, 24, 0.85),
    Rung(4e14, 6, 384, 6, 256, 32, 0.7),
    Rung(1e16, 8, 512, 8, 256, 64, 0.6),
    Rung(1e17, 12, 768, 12, 512, 64, 0.5),
)
MFU = 0.45  # of the peak: what models of these sizes reach on the machines that were measured
ASSUMED_PEAK = {"cpu": 1e11}  # floating-point operations per second, if it is unknown
ASSUMED_GPU_PEAK = 2e13

# The settings that may be changed, if nobody chose them.
MAY_CHANGE = tuple(RUNGS[0].settings(TrainConfig()))
SHAPE = ("n_layer", "n_embd", "n_head", "n_inner")


@dataclass(frozen=True)
class TimeAndSpeed:
    """What is known before the model is built."""

    seconds: float  # for training
    peak_flops: float | None  # per second
    device_type: str


def budget_flops(facts: TimeAndSpeed) -> float:
    """The floating-point operations that fit into the time."""
    assumed = ASSUMED_PEAK.get(facts.device_type, ASSUMED_GPU_PEAK)
    return facts.seconds * MFU * (facts.peak_flops or assumed)


def rung_for(flops: float) -> Rung:
    """The largest size that such a budget is enough for.

    >>> [rung_for(flops).n_embd for flops in (1e9, 5e12, 1e20)]
    [96, 128, 768]
    """
    return [rung for rung in RUNGS if rung.from_flops <= flops][-1]


def model_for_time(cfg: TrainConfig, facts: TimeAndSpeed, free: Collection[str]) -> dict[str, Any]:
    """The settings to change for the time. If a part of the model's shape was given, all of it
    stays as it is, because the parts belong together."""
    flops = budget_flops(facts)
    wanted = rung_for(flops).settings(cfg)
    if not all(key in free for key in SHAPE):
        wanted = {key: value for key, value in wanted.items() if key not in SHAPE}
    return {
        key: value for key, value in wanted.items() if key in free and value != getattr(cfg, key)
    }
