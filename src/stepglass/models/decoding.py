"""Generates tokens. The model reads the prompt once, then one token at a time with a KV cache.

    for token in generate(model, prompt_ids, max_new_tokens=500): ...

A model can read at most `block_size` tokens. When this window is full, its older half is dropped,
so that the cache is rebuilt only once per half window and not for every token.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from stepglass.errors import CheckpointError
from stepglass.models.model import Model

BELOW_ONE = 1 - 2**-50  # so that a product with it is never rounded up


@dataclass(frozen=True)
class Draw:
    """How the next token is chosen from the logits."""

    temperature: float = 0.8  # 0: always the likeliest
    top_k: int = 200
    top_p: float = 1.0
    seed: int = 1337


@torch.inference_mode()
def generate(
    model: Model,
    prompt: list[int],
    *,
    max_new_tokens: int,
    draw: Draw | None = None,
    vocab_size: int | None = None,
    use_cache: bool = True,
) -> Iterator[int]:
    """Yield new token ids. With `use_cache=False` the model reads the whole window again for each
    token, which is slow but gives the same tokens.
    """
    draw = draw or Draw()
    device = model.lm_head.weight.device
    generator = torch.Generator(device="cpu").manual_seed(draw.seed)
    block_size = model.config.block_size
    window = prompt[-block_size:]
    most = min(block_size, len(window) + max_new_tokens)
    cache = model.new_cache(model.lm_head.weight.dtype, most)
    decode = model.token_decoder(cache)
    for _ in range(max_new_tokens):
        if use_cache and cache.length == len(window) - 1 > 0:
            logits = decode(window[-1])
        else:
            cache.length = 0
            logits = model.next_logits(torch.tensor([window], device=device), cache)
            cache.advance(len(window))
        scores = logits[-1, :vocab_size].float().cpu()  # the rest of the vocabulary is padding
        token = pick_token(scores, draw, generator)
        yield token
        window.append(token)
        if len(window) > block_size:
            del window[: -max(block_size // 2, 1)]


def pick_token(scores: Tensor, draw: Draw, generator: torch.Generator) -> int:
    """Choose a token from the scores (V) of all tokens."""
    return pick_tokens(scores.unsqueeze(0), draw, [generator])[0]


def pick_tokens(scores: Tensor, draw: Draw, generators: list[torch.Generator]) -> list[int]:
    """Choose a token from each row of scores (B, V), by a random generator of its own. The seed of
    `draw` is not used."""
    if math.isnan(float(scores.max())):
        raise CheckpointError("the model's weights are not numbers: it cannot be sampled from")
    if draw.temperature == 0:
        return list(map(int, scores.argmax(dim=-1).tolist()))
    scores = keep_top_k(scores.double(), draw.top_k)  # double: no overflow at any temperature
    scores = (scores - scores.amax(dim=-1, keepdim=True)) / draw.temperature
    limits = F.softmax(keep_top_p(scores, draw.top_p), dim=-1).cumsum(dim=-1)
    # One random number per row, and no torch.multinomial, whose checks take longer than all of
    # this. A token without probability is never chosen: its limit is not above that before it.
    numbers = [torch.rand((), generator=one, dtype=torch.float64) for one in generators]
    chosen = (torch.stack(numbers) * BELOW_ONE).unsqueeze(-1) * limits[:, -1:]
    return list(map(int, torch.searchsorted(limits, chosen, right=True).flatten().tolist()))


def keep_top_k(scores: Tensor, top_k: int) -> Tensor:
    """Exclude all but the `top_k` highest scores of the last dimension; 0 keeps all."""
    if not 0 < top_k < scores.size(-1):
        return scores
    lowest = torch.topk(scores, top_k).values[..., -1:]
    return scores.masked_fill(scores < lowest, -torch.inf)


def keep_top_p(scores: Tensor, top_p: float) -> Tensor:
    """Keep only the likeliest tokens that together have probability `top_p`."""
    if top_p >= 1:
        return scores
    ordered, order = scores.sort(descending=True)
    probabilities = F.softmax(ordered, dim=-1)
    before = probabilities.cumsum(dim=-1) - probabilities  # the likeliest token always stays
    return scores.masked_fill(
        torch.empty_like(before, dtype=torch.bool).scatter(-1, order, before >= top_p), -torch.inf
    )
