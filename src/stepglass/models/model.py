"""The base class of all models: the methods that training and sampling call.

To add a model, write its `Shape` in `measure/shapes.py` and one file with its `Model`, and add one
line to `registry.py`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor, nn

from stepglass.measure.shapes import Shape
from stepglass.models.chunked_loss import mean_loss, token_losses
from stepglass.models.kv_cache import KVCache, SlotCache


class Model(nn.Module, ABC):
    """A model. It does not handle devices, precision, compilation or several processes: other code
    does that.

    A call with tokens and targets returns the loss alone: `models/chunked_loss.py` says why.
    """

    config: Shape
    lm_head: nn.Linear

    @abstractmethod
    def hidden(self, idx: Tensor, cache: KVCache | None = None) -> Tensor:
        """The input of the head, (B, T, C). `idx` is (B, T), and follows the tokens in `cache`."""

    def forward(self, idx: Tensor, targets: Tensor, reduction: str = "mean") -> Tensor:
        """The mean loss of all tokens. With `reduction="none"`, a flat tensor of their losses."""
        measure = mean_loss if reduction == "mean" else token_losses
        return measure(self.hidden(idx), self.lm_head.weight, targets)

    def next_logits(self, idx: Tensor, cache: KVCache | None = None) -> Tensor:
        """The logits of the token that follows, (B, V)."""
        logits: Tensor = self.lm_head(self.hidden(idx, cache)[:, -1])
        return logits

    @abstractmethod
    def joined_rows(self, name: str) -> dict[str, int]:
        """The matrices that are joined in one parameter, with their numbers of rows. Empty for
        parameters that are not joined."""

    @abstractmethod
    def token_decoder(self, cache: KVCache | SlotCache) -> Callable[[int | Tensor], Tensor]:
        """A function that reads one token of each sequence in the cache, and returns the logits
        (B, V) of the tokens that follow."""

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

    def new_slots(self, dtype: torch.dtype) -> SlotCache:
        """A cache without sequences yet, for several sequences of this model."""
        return SlotCache(
            num_layers=self.config.n_layer,
            num_heads=self.config.kv_heads,
            head_dim=self.config.head_dim,
            max_tokens=self.config.block_size,
            device=self.lm_head.weight.device,
            dtype=dtype,
        )
