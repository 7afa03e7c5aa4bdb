"""Converts a prompt to tokens, and generated tokens to text."""

import os
from collections.abc import Callable
from itertools import takewhile
from pathlib import Path

from stepglass.data import sources
from stepglass.data.marked_text import encode_text
from stepglass.data.tokenizer import Tokenizer
from stepglass.errors import DataError
from stepglass.models.decoding import generate
from stepglass.models.model import Model


def encode_prompt(prompt: str, tokenizer: Tokenizer) -> list[int]:
    """The ids of a prompt, which may be `FILE:name` and may contain end-of-text marks."""
    if prompt.startswith("FILE:"):
        source = sources.file_document(Path(os.path.expanduser(prompt[5:])))
        prompt = sources.whole_text(source)
    if any(0xD800 <= ord(char) < 0xE000 for char in prompt):
        raise DataError("--prompt expects text, found bytes that are not UTF-8")
    ids = encode_text(prompt, tokenizer)
    if not ids:
        raise DataError("--prompt expects at least one character, found none")
    return ids


def new_line(tokenizer: Tokenizer) -> list[int]:
    """The default prompt: a newline. If the tokenizer has no newline, token 0 is used."""
    try:
        return encode_prompt("\n", tokenizer)
    except DataError:
        return [0]


class TextStream:
    """Converts a stream of tokens to text. A character may consist of several tokens."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._pending: list[int] = []

    def text(self, token: int) -> str:
        self._pending.append(token)
        text = self._tokenizer.decode(self._pending)
        if text.endswith("\ufffd") and len(self._pending) < 8:
            return ""  # the character is not complete yet
        self._pending = []
        return text

    def rest(self) -> str:
        """The text of incomplete tokens at the end of the stream."""
        return self._tokenizer.decode(self._pending)


def short_text(
    model: Model, tokenizer: Tokenizer, num_tokens: int, is_stopped: Callable[[], bool]
) -> str:
    """Text that the model generates after a newline, until `is_stopped` returns True. The model's
    training mode is restored afterwards."""
    was_training = model.training
    model.eval()
    prompt = new_line(tokenizer)
    tokens = generate(model, prompt, max_new_tokens=num_tokens, vocab_size=tokenizer.vocab_size)
    text = tokenizer.decode(list(takewhile(lambda _: not is_stopped(), tokens)))
    model.train(was_training)
    return text
