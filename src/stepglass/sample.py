"""Text from a trained model: read the prompt once, then one token at a time from the cache.

    for token in generate(model, prompt_ids, max_new_tokens=500): ...

A model sees at most `block_size` tokens. When the window is full it starts
over with its newer half, so that the cache is rebuilt once in half a window and not for every
token.
"""

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F

from stepglass import checkpoint, checkpoint_dir
from stepglass.data import dataset, sources, tokenizer
from stepglass.data.tokenizer import END_OF_TEXT, Tokenizer
from stepglass.errors import CheckpointError, DataError
from stepglass.models import choice
from stepglass.models.choice import Model

# Bytes that the tables of positions may take: they are no weights, and nothing else bounds them.
MIN_TABLE = 64 << 20
MAX_TABLE_SHARE = 16


@dataclass(frozen=True)
class Sampler:
    """A run's best model, ready to write."""

    model: Model
    tokenizer: Tokenizer
    path: Path


def load_run(run_dir: Path, device: torch.device, on_skip: Callable[[str], None]) -> Sampler:
    """The best checkpoint of a run, or its newest where no evaluation has chosen one."""
    if not run_dir.is_dir():
        found = "a file" if run_dir.exists() else "nothing"
        raise CheckpointError(
            f"{run_dir}: expected a run directory, found {found}; train one with `stepglass train`"
        )
    best = None
    try:
        best = checkpoint_dir.best_path(run_dir)
    except CheckpointError as error:
        on_skip(f"note: taking the newest checkpoint: {error}")
    path, snapshot = checkpoint.newest(run_dir, on_skip, first=best)
    model = build_model(snapshot, path).to(device).eval()
    if snapshot.tokenizer is not None:
        place = path / "tokenizer.json"
        codec = tokenizer.from_json(snapshot.tokenizer, str(place))
    else:
        place = run_dir / "tokenizer.json"  # where the first versions kept it
        codec = dataset.load_tokenizer(place)
    if codec.vocab_size > model.config.vocab_size:
        raise CheckpointError(
            f"{place}: expected at most {model.config.vocab_size} tokens, the "
            f"model's vocabulary, found {codec.vocab_size}"
        )
    return Sampler(model, codec, path)


def build_model(snapshot: checkpoint.Snapshot, path: Path) -> Model:
    """The model a checkpoint holds. Its shape is held against its weights before anything is
    allocated.
    """
    try:
        config = choice.from_record(snapshot.state["model_config"])
        stored = sum(tensor.numel() for tensor in snapshot.model.values())
        if config.num_params() != stored or config.n_layer > len(snapshot.model):
            raise ValueError(f"{stored} weights for a model of {config.num_params()}")
        if 8 * config.block_size * config.head_dim > max(MIN_TABLE, MAX_TABLE_SHARE * 4 * stored):
            raise ValueError(f"block_size={config.block_size} for a model of {stored} weights")
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"{path}: expected a model's shape, found a problem: {error}"
        ) from error
    model = choice.build(config)
    checkpoint.load_model(model, snapshot.model, str(path))
    return model


def encode_prompt(prompt: str, tokenizer: Tokenizer) -> list[int]:
    """Ids of a prompt, which may be `FILE:name` and may hold end-of-text marks."""
    if prompt.startswith("FILE:"):
        source = sources.file_document(Path(os.path.expanduser(prompt[5:])))
        prompt = sources.whole_text(source)
    if any(0xD800 <= ord(char) < 0xE000 for char in prompt):
        raise DataError("--prompt expects text, found bytes that are not UTF-8")
    ids: list[int] = []
    for index, part in enumerate(
        prompt.split(END_OF_TEXT) if tokenizer.end_of_text is not None else [prompt]
    ):
        if index and tokenizer.end_of_text is not None:
            ids.append(tokenizer.end_of_text)
        ids += tokenizer.encode(part).tolist()
    if not ids:
        raise DataError("--prompt expects at least one character, found none")
    return ids


def new_line(tokenizer: Tokenizer) -> list[int]:
    """The prompt of somebody who gave none. A text may have had no line ends: then any token."""
    try:
        return encode_prompt("\n", tokenizer)
    except DataError:
        return [0]


class Decoder:
    """Turns a stream of tokens into a stream of text: a character may need several tokens."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._pending: list[int] = []

    def text(self, token: int) -> str:
        self._pending.append(token)
        text = self._tokenizer.decode(self._pending)
        if text.endswith("\ufffd") and len(self._pending) < 8:
            return ""  # the rest of the character is still to come
        self._pending = []
        return text

    def rest(self) -> str:
        """What is left when no more tokens come."""
        return self._tokenizer.decode(self._pending)


@torch.inference_mode()
def generate(
    model: Model,
    prompt: list[int],
    *,
    max_new_tokens: int,
    temperature: float = 0.8,
    top_k: int = 200,
    top_p: float = 1.0,
    seed: int = 1337,
    vocab_size: int | None = None,
    use_cache: bool = True,
) -> Iterator[int]:
    """Yield new token ids. Temperature 0 always takes the likeliest; `use_cache=False` reads the
    whole window again for each token, which is slow and gives the same tokens.
    """
    device = model.lm_head.weight.device
    generator = torch.Generator(device="cpu").manual_seed(seed)
    block_size = model.config.block_size
    window = prompt[-block_size:]
    most = min(block_size, len(window) + max_new_tokens)
    cache = model.new_cache(model.lm_head.weight.dtype, most)
    next_logits = model.token_decoder(cache)
    for _ in range(max_new_tokens):
        if use_cache and cache.length == len(window) - 1 > 0:
            logits = next_logits(window[-1])
        else:
            cache.length = 0
            logits = model(torch.tensor([window], device=device), cache=cache)[0][0]
            cache.advance(len(window))
        scores = logits[-1, :vocab_size].float().cpu()  # rows that only pad are no tokens
        token = pick(scores, temperature, top_k, top_p, generator)
        yield token
        window.append(token)
        if len(window) > block_size:
            del window[: -max(block_size // 2, 1)]


def short_text(
    model: Model, tokenizer: Tokenizer, num_tokens: int, is_stopped: Callable[[], bool]
) -> str:
    """What the model writes after a new line, until it is stopped. Its mode is put back."""
    was_training = model.training
    model.eval()
    prompt = new_line(tokenizer)
    tokens = generate(model, prompt, max_new_tokens=num_tokens, vocab_size=tokenizer.vocab_size)
    text = tokenizer.decode(list(takewhile(lambda _: not is_stopped(), tokens)))
    model.train(was_training)
    return text


def pick(
    scores: Tensor, temperature: float, top_k: int, top_p: float, generator: torch.Generator
) -> int:
    """Choose a token from its scores."""
    if math.isnan(float(scores.max())):
        raise CheckpointError("the model's weights are not numbers: it cannot be sampled from")
    if temperature == 0:
        return int(scores.argmax())
    scores = keep_top_k(scores.double(), top_k)  # room for any temperature
    scores = keep_top_p((scores - scores.max()) / temperature, top_p)
    return int(torch.multinomial(F.softmax(scores, dim=-1), 1, generator=generator))


def keep_top_k(scores: Tensor, top_k: int) -> Tensor:
    """Rule out all but the `top_k` highest scores; 0 keeps all."""
    if not 0 < top_k < scores.numel():
        return scores
    lowest = torch.topk(scores, top_k).values[-1]
    return scores.masked_fill(scores < lowest, -torch.inf)


def keep_top_p(scores: Tensor, top_p: float) -> Tensor:
    """Rule out the tail beyond the likeliest tokens that together have probability `top_p`."""
    if top_p >= 1:
        return scores
    ordered, order = scores.sort(descending=True)
    probabilities = F.softmax(ordered, dim=-1)
    before = probabilities.cumsum(dim=-1) - probabilities  # the likeliest token always stays
    return scores.masked_fill(
        torch.empty_like(before, dtype=torch.bool).scatter(0, order, before >= top_p), -torch.inf
    )
