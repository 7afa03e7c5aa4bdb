"""A model of another program, as it is read: everything that a run of ours needs to go on with it.

Nothing that a file says is believed before it is checked: sizes before memory is allocated, names
and shapes before weights are used.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from stepglass.errors import CheckpointError
from stepglass.measure.shapes import ModernConfig, Shape
from stepglass.models import registry

MAX_POSITIONS = 1 << 20
MAX_LAYERS = 1000  # each takes time and memory, however small it is


@dataclass(frozen=True)
class ForeignModel:
    """Shape, weights with our names, and tokenizer; for a run that can go on, much more."""

    path: Path
    shape: Shape
    weights: dict[str, Tensor]
    tokenizer: dict[str, Any]  # as tokenizer.json of a run
    notes: list[str] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)  # of the run that trained it
    optim: dict[str, Tensor] = field(default_factory=dict)  # with our names
    step: int = 0
    best_val_loss: float | None = None


def shape_or_refuse(path: Path, make: Callable[[], Shape]) -> Shape:
    """The shape that `make` returns. Its errors become one line."""
    try:
        shape = make()
        if shape.block_size > MAX_POSITIONS:
            raise ValueError(f"a context of {shape.block_size} tokens")
        if shape.n_layer > MAX_LAYERS:
            raise ValueError(f"{shape.n_layer} layers")
        return shape
    except KeyError as error:
        raise CheckpointError(f"{path}: expected a model's shape, {error} is missing") from error
    except (ValueError, TypeError, OverflowError, ArithmeticError) as error:
        raise CheckpointError(
            f"{path}: expected a model's shape, found a problem: {error}"
        ) from error


def checked(path: Path, shape: Shape, weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights in float32, if they are exactly those of a model of this shape."""
    if isinstance(shape, ModernConfig) and shape.tie_weights:
        weights = {name: w for name, w in weights.items() if name != "lm_head.weight"}
    stored = sum(tensor.numel() for tensor in weights.values())
    if shape.n_layer > len(weights) or shape.num_params() > stored:
        raise CheckpointError(
            f"{path}: expected {shape.num_params()} weights in {shape.n_layer} layers, found "
            f"{stored} in {len(weights)} tensors"
        )
    with torch.device("meta"):  # needs no memory
        parameters = registry.model_of(shape).named_parameters()
        expected = {name: parameter.size() for name, parameter in parameters}
    missing, extra = sorted(expected.keys() - weights.keys()), sorted(weights.keys() - expected)
    if missing or extra:
        what = f"{missing[0]} is missing" if missing else f"{extra[0]} is unknown"
        raise CheckpointError(f"{path}: not the weights of a {shape.name} model: {what}")
    for name, size in expected.items():
        found = weights[name]
        if found.shape != size or not found.is_floating_point():
            raise CheckpointError(
                f"{path}: {name}: expected {list(size)} numbers, found {list(found.shape)} "
                f"{found.dtype}"
            )
        if not found.isfinite().all():
            raise CheckpointError(f"{path}: {name} holds weights that are not finite")
    return {name: weights[name].float().contiguous() for name in expected}
