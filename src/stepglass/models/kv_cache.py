"""The keys and values of the tokens that a model has already read.

The caller allocates the cache once, passes it to the model, and advances it. The model only writes
the keys and values of the tokens in its input. The cache never outlives the function that made it.
"""

import torch
from torch import Tensor


class KVCache:
    """A cache for `max_tokens` tokens, of which `length` are filled."""

    def __init__(
        self,
        *,
        num_layers: int,
        num_heads: int,
        head_dim: int,
        max_tokens: int,
        device: torch.device,
        dtype: torch.dtype,
        batch: int = 1,
    ) -> None:
        shape = (num_layers, batch, num_heads, max_tokens, head_dim)
        self._keys = torch.zeros(shape, device=device, dtype=dtype).unbind()
        self._values = torch.zeros(shape, device=device, dtype=dtype).unbind()
        self.max_tokens = max_tokens
        self.length = 0

    def update(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Store new keys and values of one layer, and return all of this layer, old and new."""
        num_new = keys.size(2)
        self._keys[layer].narrow(2, self.length, num_new).copy_(keys)
        self._values[layer].narrow(2, self.length, num_new).copy_(values)
        end = self.length + num_new
        return self._keys[layer].narrow(2, 0, end), self._values[layer].narrow(2, 0, end)

    def advance(self, num_tokens: int) -> None:
        """Call this once after a forward pass, when every layer has stored its part."""
        self.length += num_tokens
