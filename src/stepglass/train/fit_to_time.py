"""Fits a model to the time of a run (`--minutes`): a pure function from the speed of the machine,
the time and the data to settings.

    cfg = replace(cfg, **model_for_time(cfg, facts, free))

A larger model learns more from each token, and sees fewer of them in the time. The time model
(measure/time_model.py) predicts how many. The best size is the largest one that still sees enough
tokens for each of its parameters. How many are enough was found by runs on a CPU: docs/recipes.md.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from stepglass.measure.compile_gain import COMPILE_S, compiling_pays
from stepglass.measure.devices import find_device
from stepglass.measure.shapes import shape_of
from stepglass.measure.time_model import (
    HALF_WIDTH,
    Chip,
    Kind,
    UpdateTime,
    chip_of,
    cpu_chip,
    fitted_to,
    predict_update,
)
from stepglass.settings.train import TrainConfig

RATES = ("learning_rate", "embedding_lr", "muon_lr")
QUICK_RATES = (0.008, 0.04, 0.03)  # of the recipe `quick`: the ladder's models were found with them


class Rung(NamedTuple):
    """A size of model, and how it is trained."""

    n_layer: int
    n_embd: int
    n_head: int
    block_size: int
    batch_size: int
    rate: float  # factor on the learning rates

    def settings(self, cfg: TrainConfig) -> dict[str, Any]:
        """The settings of this rung. The gpt2 model gets the rates of its recipe times `rate`,
        because the ladder was tuned with the modern model only."""
        is_modern = cfg.model == "modern"
        rates = QUICK_RATES if is_modern else [getattr(cfg, name) for name in RATES]
        return {
            "n_layer": self.n_layer,
            "n_embd": self.n_embd,
            "n_head": self.n_head,
            "n_inner": 2 * self.n_embd if is_modern else 0,
            "block_size": self.block_size,
            "batch_size": self.batch_size,
            **{name: round(rate * self.rate, 5) for name, rate in zip(RATES, rates, strict=True)},
        }

    def distance(self, width: int) -> float:
        """How far its width is from another one."""
        return abs(math.log(self.n_embd / width))


RUNGS = (
    Rung(2, 64, 2, 64, 24, 1.0),
    Rung(2, 64, 2, 128, 16, 1.0),
    Rung(2, 96, 3, 128, 16, 1.0),
    Rung(3, 96, 3, 128, 16, 1.0),
    Rung(3, 128, 4, 256, 8, 1.0),
    Rung(3, 160, 5, 256, 8, 1.0),
    Rung(4, 192, 6, 256, 12, 1.0),
    Rung(4, 256, 8, 256, 16, 0.85),
    Rung(5, 320, 5, 256, 24, 0.75),
    Rung(6, 384, 6, 256, 32, 0.7),
    Rung(8, 512, 8, 256, 64, 0.6),
    Rung(12, 768, 12, 512, 64, 0.5),
)
ENOUGH = 2.8  # tokens seen for each parameter that is computed with
MOST_PER_TOKEN = 12.0  # parameters for each token of the data: more would only memorise it
LEAST_WINDOWS = 4  # of the context's length in the validation split
# Floating-point operations and bytes per second, if a device is unknown.
ASSUMED_CPU_PEAK, ASSUMED_GPU_PEAK, ASSUMED_GPU_BYTES = 1e11, 2e13, 3e11

# The settings that may be changed, if nobody chose them.
MAY_CHANGE = tuple(RUNGS[0].settings(TrainConfig()))
SHAPE = ("n_layer", "n_embd", "n_head", "n_inner")
OF_THE_HEADS = ("n_kv_head", "n_head_dim")  # they have to go with the number of heads


@dataclass(frozen=True, kw_only=True)
class TimeAndData:
    """What is known before the model is built."""

    seconds: float  # for updates, and for compiling
    chip: Chip  # of each process
    processes: int
    vocab_size: int
    train_tokens: int
    val_tokens: int

    def does_compile(self, cfg: TrainConfig) -> bool:
        if cfg.compile != "auto":
            return bool(cfg.compile)
        # On a CPU it may pay as well, but it changes little.
        return self.chip.kind == "cuda" and compiling_pays("cuda", self.seconds)

    def update_time(self, cfg: TrainConfig, chip: Chip) -> UpdateTime:
        rows = math.ceil(cfg.batch_size * cfg.gradient_accumulation_steps / self.processes)
        return predict_update(
            shape_of(cfg, self.vocab_size),
            chip,
            batch_size=min(rows, cfg.batch_size),
            accumulation=math.ceil(rows / cfg.batch_size),
            does_compile=self.does_compile(cfg),
            uses_muon=cfg.uses_muon,
        )

    def updates(self, cfg: TrainConfig) -> int:
        """The number of updates that fit into the time."""
        seconds = self.seconds
        if self.does_compile(cfg):
            seconds -= COMPILE_S.get(self.chip.kind, 0.0)
        return max(1, int(seconds * 1000 / self.update_time(cfg, self.chip).total_ms))

    def measured(self, cfg: TrainConfig, update_ms: float) -> "TimeAndData":
        """The same with the speed at which a model was measured."""
        chip = fitted_to(update_ms, self.chip, partial(self.update_time, cfg))
        return replace(self, chip=chip)


def chip_here(device_type: str, name: str, dtype: str, peak_flops: float | None) -> Chip:
    """The chip that a process computes on. `peak_flops` is its peak, if that is known."""
    if device_type == "cpu":
        return cpu_chip(peak_flops or ASSUMED_CPU_PEAK)
    known = find_device(name)
    chip = chip_of(known, dtype) if known else None
    if chip is None:
        kind: Kind = "mps" if device_type == "mps" else "cuda"
        half_width = HALF_WIDTH["mps" if kind == "mps" else "full-rate"]
        is_half = dtype != "float32"
        chip = Chip(kind, ASSUMED_GPU_PEAK, ASSUMED_GPU_BYTES, half_width, is_half)
    return replace(chip, peak_flops=peak_flops or chip.peak_flops)


def rung_for(cfg: TrainConfig, facts: TimeAndData, context: int | None = None) -> Rung:
    """The largest size that sees enough tokens in the time, and that has enough data. `context` is
    a block_size that was given."""
    best = RUNGS[0]
    for rung in RUNGS[1:]:
        settings = rung.settings(cfg) | dict.fromkeys(OF_THE_HEADS, 0)
        sized = replace(cfg, **settings | {"block_size": context or rung.block_size})
        shape = shape_of(sized, facts.vocab_size)
        computed = shape.num_params() - shape.num_looked_up()
        seen = facts.updates(sized) * sized.tokens_per_iter
        has_enough = (
            computed <= MOST_PER_TOKEN * facts.train_tokens
            and LEAST_WINDOWS * sized.block_size <= facts.val_tokens
        )
        if seen >= ENOUGH * computed and has_enough:
            best = rung
    return best


def model_for_time(cfg: TrainConfig, facts: TimeAndData, free: Collection[str]) -> dict[str, Any]:
    """The settings to change for the time. If a part of the model's shape was given, all of it
    stays as it is, because the parts belong together, and the rates are those of its width. Batch
    and context are then still those that suit the time."""
    context = None if "block_size" in free else cfg.block_size
    wanted = rung_for(cfg, facts, context).settings(cfg)
    if not all(key in free for key in (*SHAPE, *OF_THE_HEADS)):
        nearest = min(RUNGS, key=lambda rung: rung.distance(cfg.n_embd)).settings(cfg)
        wanted |= {rate: nearest[rate] for rate in RATES}
        wanted = {key: value for key, value in wanted.items() if key not in SHAPE}
    if wanted["batch_size"] * cfg.gradient_accumulation_steps % facts.processes:
        wanted["batch_size"] = facts.processes * math.ceil(wanted["batch_size"] / facts.processes)
    return {
        key: value for key, value in wanted.items() if key in free and value != getattr(cfg, key)
    }
