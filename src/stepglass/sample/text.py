"""Text in and out of a model: a prompt as tokens, tokens as text."""

import os
from collections.abc import Callable
from itertools import takewhile
from pathlib import Path

from stepglass.data import sources
from stepglass.data.tokenizer import END_OF_TEXT, Tokenizer
from stepglass.errors import DataError
from stepglass.models.decoding import generate
from stepglass.models.model import Model


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


class TextStream:
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
