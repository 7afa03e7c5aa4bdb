"""What every model has: a shape, and the few methods that the trainer and the sampler call.

A new model is one file with a `Shape` and a `Model` of its own, and one line in `registry.py`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from stepglass.measure.mfu import palm_flops_per_token
from stepglass.models.kv_cache import KVCache
from stepglass.units import shown


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The shape of a model: with its weights, all that is needed to rebuild it."""

    name: ClassVar[str]  # of the model, in settings and checkpoints
    block_prefix: ClassVar[str]  # what the names of parameters inside the blocks begin with
    token_table: ClassVar[str]  # the parameter with a row for each token that is read

    vocab_size: int
    block_size: int
    n_layer: int
    n_head: int
    n_embd: int

    def __post_init__(self) -> None:
        for name in ("vocab_size", "block_size", "n_layer", "n_head", "n_embd"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise ValueError(f"{name} must be a whole number above 0, not {shown(value)}")

    @property
    def head_dim(self) -> int:
        return self.n_embd // self.n_head

    @property
    def kv_heads(self) -> int:
        """Heads of keys and values."""
        return self.n_head

    def num_params(self) -> int:
        """Parameters of the model, counted without building it. A tied head counts once."""
        raise NotImplementedError

    def num_looked_up(self) -> int:
        """Parameters of tables that are only looked up, never multiplied."""
        raise NotImplementedError

    def num_params_shown(self) -> int:
        """The number of parameters that a run prints."""
        return self.num_params()

    def flops_per_token(self) -> int:
        """FLOPs of a forward and a backward pass, by the formula in `measure/mfu.py`."""
        return palm_flops_per_token(
            num_params=self.num_params() - self.num_looked_up(),
            n_layer=self.n_layer,
            width=self.n_head * self.head_dim,
            num_tokens=self.block_size,
        )


class Model(nn.Module):
    """A model. It knows nothing of devices, precision, compilation or several processes: those are
    applied from outside.

    Called with tokens and targets it returns logits and the loss; without targets, the logits of
    the last position and None.
    """

    shape_class: ClassVar[type[Shape]]
    config: Shape
    lm_head: nn.Linear

    def joined_rows(self, name: str) -> dict[str, int]:
        """The maps that a joined matrix holds, with their rows. None for other parameters."""
        raise NotImplementedError

    def token_decoder(self, cache: KVCache) -> Callable[[int], Tensor]:
        """A function that reads one token and returns the logits (1, V) of the next."""
        raise NotImplementedError

    def new_cache(self, dtype: torch.dtype, max_tokens: int) -> KVCache:
        """An empty cache for one sequence of this model."""
        return KVCache(
            num_layers=self.config.n_layer,
            num_heads=self.config.kv_heads,
            head_dim=self.config.head_dim,
            max_tokens=max_tokens,
            device=self.lm_head.weight.device,
            dtype=dtype,
        )
