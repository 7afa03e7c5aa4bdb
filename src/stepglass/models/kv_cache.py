"""The keys and values of the tokens that a model has already read: of one sequence (`KVCache`), or
of several that differ in length (`SlotCache`).

The caller allocates the cache once, passes it to the model, and advances it. The model only writes
the keys and values of the tokens in its input.
"""

import torch
from torch import Tensor


class KVCache:
    """A cache for `max_tokens` tokens, of which `length` are filled."""

    mask = None  # every token in it may be attended to

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

    @property
    def positions(self) -> int:
        """The position of the next token."""
        return self.length

    def layer(self, number: int) -> tuple[Tensor, Tensor]:
        """What is filled of a layer's keys and values."""
        return tuple(  # type: ignore[return-value]
            whole[number].narrow(2, 0, self.length) for whole in (self._keys, self._values)
        )

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


class SlotCache:
    """A cache for several sequences of different lengths, one row each, which come and go.

    Memory grows with the number of sequences and the length of the longest, up to `max_tokens`.
    Between two steps call `prepare`; a step adds one token to every sequence.
    """

    def __init__(
        self,
        *,
        num_layers: int,
        num_heads: int,
        head_dim: int,
        max_tokens: int,
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        self._max_tokens = max_tokens
        self._device = device
        # (layers, rows, heads, tokens, head_dim)
        self._keys = torch.zeros(
            (num_layers, 0, num_heads, 0, head_dim), device=device, dtype=dtype
        )
        self._values = self._keys
        self.lengths: list[int] = []
        self.positions: Tensor = torch.zeros(0, dtype=torch.long, device=device)
        self.mask: Tensor | None = None
        self._rows = self.positions
        self._views: list[tuple[Tensor, Tensor]] = []

    def add(self, filled: KVCache) -> None:
        """Add a sequence that has been read into a cache of its own, as the last row."""
        self.lengths.append(0)
        self.replace(len(self.lengths) - 1, filled)

    def replace(self, row: int, filled: KVCache) -> None:
        """Set the contents of a row."""
        self.lengths[row] = filled.length
        self._reserve(len(self.lengths), max(self.lengths))
        for layer in range(self._keys.size(0)):
            keys, values = filled.layer(layer)
            self._keys[layer, row, :, : filled.length] = keys[0]
            self._values[layer, row, :, : filled.length] = values[0]

    def remove(self, row: int) -> None:
        """Remove a sequence. The last row takes its place."""
        last = len(self.lengths) - 1
        if row != last:
            length = self.lengths[last]
            for whole in (self._keys, self._values):
                whole[:, row, :, :length] = whole[:, last, :, :length]
            self.lengths[row] = length
        self.lengths.pop()

    def prepare(self) -> None:
        """Make room for one more token in each row, and compute what all layers need."""
        num_rows, longest = len(self.lengths), max(self.lengths) + 1
        self._reserve(num_rows, longest)
        self.positions = torch.tensor(self.lengths, device=self._device)
        self._rows = torch.arange(num_rows, device=self._device)
        self.mask = None
        if min(self.lengths) + 1 < longest:
            # (B, 1, 1, T): a row attends to its own tokens, and to the one that is being read
            columns = torch.arange(longest, device=self._device)
            self.mask = (columns <= self.positions[:, None])[:, None, None]
        self._views = [
            (keys[:num_rows, :, :longest], values[:num_rows, :, :longest])
            for keys, values in zip(self._keys.unbind(), self._values.unbind(), strict=True)
        ]

    def update(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Store one new key and value per row, and return all of this layer, old and new."""
        all_keys, all_values = self._views[layer]
        all_keys[self._rows, :, self.positions] = keys.squeeze(2)
        all_values[self._rows, :, self.positions] = values.squeeze(2)
        return all_keys, all_values

    def advance(self, num_tokens: int) -> None:
        """Call this once after a step, when every layer has stored its part."""
        self.lengths = [length + num_tokens for length in self.lengths]

    def _reserve(self, num_rows: int, num_tokens: int) -> None:
        layers, rows, heads, tokens, width = self._keys.shape
        if num_rows <= rows and num_tokens <= tokens:
            return
        if num_rows > rows:
            rows = max(num_rows, 2 * rows)
        if num_tokens > tokens:
            tokens = min(max(num_tokens, 2 * tokens, 64), self._max_tokens)
        shape = (layers, rows, heads, tokens, width)
        self._keys, self._values = (
            self._larger(self._keys, shape),
            self._larger(self._values, shape),
        )

    def _larger(self, whole: Tensor, shape: tuple[int, ...]) -> Tensor:
        larger = torch.zeros(shape, device=whole.device, dtype=whole.dtype)
        larger[:, : whole.size(1), :, : whole.size(3)] = whole
        return larger
