"""Generates tokens of several sequences together, which is faster than one after the other: the
weights are read from memory once for all of them.

    batch = DecodingBatch(model)
    sequence = batch.add(prompt_ids, Draw(seed=7))    # at any time
    for sequence, token in batch.step(): ...          # one token of each sequence
    batch.remove(sequence)                            # at any time

Each sequence has its own random generator, so its text does not depend on the others, apart from
the rounding of the arithmetic. When a sequence fills the model's window, its older half is dropped,
as in decoding.py.
"""

from dataclasses import dataclass, field, replace

import torch

from stepglass.models.decoding import Draw, pick_tokens
from stepglass.models.kv_cache import KVCache
from stepglass.models.model import Model


@dataclass(eq=False)
class Sequence:
    """A sequence in a batch: what the model still sees of it, and how its tokens are chosen."""

    window: list[int]
    draw: Draw  # without its seed, which the generator has
    generator: torch.Generator = field(repr=False)


class DecodingBatch:
    """Sequences that are decoded together."""

    def __init__(self, model: Model, vocab_size: int | None = None) -> None:
        self._model = model
        self._vocab_size = vocab_size  # the rest of the vocabulary is padding
        self._device = model.lm_head.weight.device
        self._slots = model.new_slots(model.lm_head.weight.dtype)
        self._decode = model.token_decoder(self._slots)
        self._rows: list[Sequence] = []

    def __len__(self) -> int:
        return len(self._rows)

    @torch.inference_mode()
    def add(self, prompt: list[int], draw: Draw) -> Sequence:
        """Add a sequence that goes on from these tokens, of which there must be at least one."""
        generator = torch.Generator(device="cpu").manual_seed(draw.seed)
        window = prompt[-self._model.config.block_size :]
        sequence = Sequence(window, replace(draw, seed=0), generator)
        self._slots.add(self._read(window[:-1]))
        self._rows.append(sequence)
        return sequence

    @torch.inference_mode()
    def remove(self, sequence: Sequence) -> None:
        row = self._rows.index(sequence)
        self._slots.remove(row)
        last = self._rows.pop()
        if last is not sequence:
            self._rows[row] = last

    @torch.inference_mode()
    def step(self) -> list[tuple[Sequence, int]]:
        """The next token of each sequence."""
        rows = list(self._rows)
        if not rows:
            return []
        self._slots.prepare()
        newest = torch.tensor([row.window[-1] for row in rows], device=self._device)
        scores = self._decode(newest)[:, : self._vocab_size].float().cpu()
        tokens = [0] * len(rows)
        for draw in dict.fromkeys(row.draw for row in rows):  # most often they are all the same
            alike = [index for index, row in enumerate(rows) if row.draw == draw]
            chosen = scores if len(alike) == len(rows) else scores[alike]
            picked = pick_tokens(chosen, draw, [rows[index].generator for index in alike])
            for index, token in zip(alike, picked, strict=True):
                tokens[index] = token
        for index, (row, token) in enumerate(zip(rows, tokens, strict=True)):
            row.window.append(token)
            if len(row.window) > self._model.config.block_size:
                del row.window[: -max(self._model.config.block_size // 2, 1)]
                self._slots.replace(index, self._read(row.window[:-1]))
        return list(zip(rows, tokens, strict=True))

    def _read(self, ids: list[int]) -> KVCache:
        """A cache of one sequence, filled with these tokens."""
        cache = self._model.new_cache(self._model.lm_head.weight.dtype, len(ids))
        if ids:
            self._model.hidden(torch.tensor([ids], device=self._device), cache)
            cache.advance(len(ids))
        return cache
