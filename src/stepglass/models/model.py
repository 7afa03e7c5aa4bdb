"""The base class of all models: the methods that training and sampling call.

To add a model, write its `Shape` in `measure/shapes.py` and one file with its `Model`, and add one
line to `registry.py`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor, nn

from stepglass.measure.shapes import Shape
from stepglass.models.kv_cache import KVCache


class Model(nn.Module, ABC):
    """A model. It does not handle devices, precision, compilation or several processes: other code
    does that.

    A call with tokens and targets returns logits and the loss. A call without targets returns the
    logits of the last position and None.
    """

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
