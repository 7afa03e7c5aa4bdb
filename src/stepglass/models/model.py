"""The base classes of all models: their shape, and the methods that training and sampling call.

To add a model, write one file with its own `Shape` and `Model`, and add one line to `registry.py`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from stepglass.measure.mfu import palm_flops_per_token
from stepglass.models.kv_cache import KVCache
from stepglass.units import shown


@dataclass(frozen=True, kw_only=True)
class Shape(ABC):
    """The shape of a model. The shape and the weights are enough to rebuild the model."""

    name: ClassVar[str]  # of the model, in settings and checkpoints
    block_prefix: ClassVar[str]  # the prefix of the names of parameters inside the blocks
    token_table: ClassVar[str]  # the name of the token embedding

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
        """The number of key and value heads."""
        return self.n_head

    @abstractmethod
    def num_params(self) -> int:
        """The number of parameters, computed without building the model. A tied head counts
        once."""

    @abstractmethod
    def num_looked_up(self) -> int:
        """The number of parameters in tables that are only looked up, not multiplied."""

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


class Model(nn.Module, ABC):
    """A model. It does not handle devices, precision, compilation or several processes: other code
    does that.

    A call with tokens and targets returns logits and the loss. A call without targets returns the
    logits of the last position and None.
    """

    shape_class: ClassVar[type[Shape]]
    config: Shape
    lm_head: nn.Linear

    @abstractmethod
    def joined_rows(self, name: str) -> dict[str, int]:
        """The matrices that are joined in one parameter, with their numbers of rows. Empty for
        parameters that are not joined."""

    @abstractmethod
    def token_decoder(self, cache: KVCache) -> Callable[[int], Tensor]:
        """A function that reads one token and returns the logits (1, V) of the next."""

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
