"""Tokenizers of other models, as the `tokenizers` library stores them in a tokenizer.json.

They come with a model that was imported. Beside the library's own file, ours has the text that ends
a document, the model's chat template, and what GGUF calls the way to split text into words.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from stepglass.data import text_pieces
from stepglass.errors import DataError
from stepglass.units import one_line

MAX_GROWTH = 64

_BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_WORDS = r"[^\r\n\p{L}\p{N}]?\p{L}+"
_REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def _split(pattern: str) -> dict[str, Any]:
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated"}
    return {
        "type": "Sequence",
        "pretokenizers": [split | {"invert": False}, _BYTES | {"use_regex": False}],
    }


# How text is split into words before BPE, by the names that GGUF files have for it.
WORD_SPLITS: dict[str, dict[str, Any]] = {
    "gpt-2": _BYTES | {"use_regex": True},
    "smollm": {
        "type": "Sequence",
        "pretokenizers": [
            {"type": "Digits", "individual_digits": True},
            _BYTES | {"use_regex": True},
        ],
    },
    "qwen2": _split(rf"{_CONTRACTIONS}|{_WORDS}|\p{{N}}|{_REST}"),
    "llama-bpe": _split(rf"{_CONTRACTIONS}|{_WORDS}|\p{{N}}{{1,3}}|{_REST}"),
}


class LibraryTokenizer:
    """A tokenizer.json of another model. Raises an exception of the library if it is not one."""

    def __init__(self, data: dict[str, Any]) -> None:
        self._data = data
        refuse_growth(data["tokenizer"])
        text = json.dumps(data["tokenizer"])
        import tokenizers  # noqa: PLC0415 - not needed for --help

        self._tokenizer = tokenizers.Tokenizer.from_str(text)
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self.vocab = {str(k): int(v) for k, v in self._tokenizer.get_vocab().items()}
        if not self.vocab:
            raise ValueError("its vocabulary is empty")
        self.vocab_size = max(self.vocab.values()) + 1
        self.chat_template: str | None = optional_text(data.get("chat_template"))
        self.end_of_text: int | None = self._id(data.get("end_of_text"))
        self.begin_of_text: int | None = self._id(data.get("begin_of_text"))
        named = {"bos_token": data.get("begin_of_text"), "eos_token": data.get("end_of_text")}
        # What chat templates call them.
        self.special_tokens = {name: t for name, t in named.items() if isinstance(t, str)}
        self._has_bytes = '"ByteLevel"' in text
        # Decoders of SentencePiece's kind drop a space at the start, which in a stream of tokens is
        # in the middle of the text. So another token goes before, and its text is taken away.
        self._anchor = [] if self._has_bytes else [next(iter(self._encoded("a")), 0)]

    def _id(self, token: object) -> int | None:
        return self.vocab.get(token) if isinstance(token, str) else None

    def _encoded(self, text: str) -> list[int]:
        with naming_panics():
            return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def encode(self, text: str) -> "np.ndarray[Any, Any]":
        if not self._has_bytes:  # only words of bytes are known to end at spaces
            return np.array(self._encoded(text), dtype=np.int32)
        with naming_panics():
            pieces = self._tokenizer.encode_batch_fast(
                list(word_pieces(text)), add_special_tokens=False
            )
        ids = [np.array(piece.ids, dtype=np.int32) for piece in pieces]
        return np.concatenate(ids or [np.empty(0, np.int32)])

    def decode(self, ids: list[int]) -> str:
        if not self._anchor:
            return str(self._tokenizer.decode(ids, skip_special_tokens=False))
        before = self._tokenizer.decode(self._anchor, skip_special_tokens=False)
        whole = self._tokenizer.decode(self._anchor + ids, skip_special_tokens=False)
        return str(whole)[len(before) :]

    def to_json(self) -> dict[str, Any]:
        return self._data


@contextmanager
def naming_panics() -> Iterator[None]:
    """Context manager: raises DataError where the library gives up. It stops at patterns that look
    at a text in millions of ways, with an error that is no Exception."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        reason = one_line(str(error))[:100]
        raise DataError(f"the model's tokenizer cannot encode this text: {reason}") from error


def refuse_growth(stored: dict[str, Any]) -> None:
    """Raise ValueError if a tokenizer.json could make a text many times as long: a few lines that
    double it fill any memory."""
    for part in ("normalizer", "pre_tokenizer", "decoder"):
        grows, nodes = 1.0, [stored.get(part)]
        while nodes:
            node = nodes.pop()
            if isinstance(node, list):
                nodes += node
            elif isinstance(node, dict):
                grows *= _growth(node)
                nodes += node.values()
            if grows > MAX_GROWTH:
                raise ValueError(
                    f"its {part} could make a text more than {MAX_GROWTH} times as long"
                )


def _growth(node: dict[str, Any]) -> float:
    """How many times as long a text can become at most by a step."""
    if node.get("type") == "ByteLevel":
        return 2.0  # a byte becomes a letter, which may be two bytes
    written = len(str(node.get("content", node.get("prepend", ""))))
    if node.get("type") != "Replace":
        return max(1.0, float(written))
    pattern = node.get("pattern")
    text = pattern.get("String") if isinstance(pattern, dict) else None
    return max(1.0, written / len(text) if isinstance(text, str) and text else written + 1.0)


def word_pieces(text: str) -> Iterator[str]:
    """Cut a text at a space after a letter, at which every way to split text into words begins a
    new one."""
    return text_pieces.cut_text(text, is_word_end)


def is_word_end(text: str, cut: int) -> bool:
    return text[cut] == " " and text[cut - 1].isalpha()


def last_word_end(text: str) -> int:
    """The last place to cut a text that may continue later, or 0 if there is none."""
    return text_pieces.last_cut(text, is_word_end)


def optional_text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def word_split_of(tokenizer_json: dict[str, Any]) -> str | None:
    """GGUF's name for the way in which a tokenizer.json splits text into words, if it has one."""

    def plain(node: Any) -> Any:
        if isinstance(node, list):
            return [plain(item) for item in node]
        if not isinstance(node, dict):
            return node
        return {k: plain(v) for k, v in node.items() if k not in ("trim_offsets", "invert")}

    found = plain(tokenizer_json.get("pre_tokenizer"))
    return next((name for name, split in WORD_SPLITS.items() if plain(split) == found), None)


def letters_of_bytes() -> dict[int, str]:
    """GPT-2's printable character for each byte: itself, or one from 256 on in order.

    >>> letters = letters_of_bytes()
    >>> letters[65], letters[32], letters[10], len(set(letters.values()))
    ('A', 'Ġ', 'Ċ', 256)
    """
    plain = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = [byte for byte in range(256) if byte not in plain]
    return {byte: chr(byte) for byte in plain} | {b: chr(256 + n) for n, b in enumerate(others)}
