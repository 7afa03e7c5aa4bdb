"""How large a data set is: its vocabulary and its tokens, as far as they are known.

From the log, from a prepared folder, or from the names that everybody prepares in the same way.
Nothing is read but a folder's description and the size of its files.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from stepglass import json_files
from stepglass.units import finite

GPT2_VOCAB = 50304  # GPT-2's 50257, rounded up to a multiple of 64 as in nanoGPT
CHARACTERS = 96  # in a text of one's own, about
VAL_SHARE = 0.1  # of a text that is not prepared yet


@dataclass(frozen=True)
class DataSize:
    """Numbers of tokens; None if unknown. `is_sure`: the vocabulary is not a guess."""

    vocab_size: int
    train_tokens: int | None = None
    val_tokens: int | None = None
    is_sure: bool = True


KNOWN = {
    "shakespeare": DataSize(84, 4_551_515, 505_724),
    "tinyshakespeare": DataSize(65, 1_003_854, 111_540),
    "shakespeare_char": DataSize(65, 1_003_854, 111_540),  # nanoGPT's name
    "openwebtext": DataSize(GPT2_VOCAB, 9_035_582_198, 4_434_897),
}
# The same name may mean other data for nanoGPT: its shakespeare is the tiny one in GPT-2's tokens.
KNOWN_TO_NANOGPT = {
    "shakespeare": DataSize(GPT2_VOCAB, 301_966, 36_059),
    "shakespeare_char": KNOWN["shakespeare_char"],
    "openwebtext": KNOWN["openwebtext"],
}
# What is nearest to our data there: the characters of a part of Shakespeare's works.
NEAREST_OF_NANOGPT = {"shakespeare": "shakespeare_char", "tinyshakespeare": "shakespeare_char"}


def data_size(name: str, facts: dict[str, Any], is_nanogpts: bool = False) -> DataSize:
    """The size of a data set; what a log says of it goes before everything else. `is_nanogpts`: the
    name means what it means to nanoGPT."""
    found = KNOWN_TO_NANOGPT.get(name) if is_nanogpts else None
    found = found or _prepared(name) or KNOWN.get(name) or _text(name)
    found = found or DataSize(GPT2_VOCAB, is_sure=False)
    vocab, tokens = finite(facts.get("vocab_size")), finite(facts.get("train_tokens"))
    if vocab and vocab >= 1:
        has_same = vocab == found.vocab_size
        found = replace(found if has_same else DataSize(0), vocab_size=int(vocab), is_sure=True)
    return replace(found, train_tokens=int(tokens)) if tokens else found


def prepared_folder(name: str) -> Path:
    """Where `train` looks for a data set."""
    return Path(name) if (Path(name) / "train.bin").exists() else Path("data") / name


def _prepared(name: str) -> DataSize | None:
    """The description of a folder that `stepglass prepare` or nanoGPT made."""
    folder = prepared_folder(name)
    try:
        meta = json_files.read_json(folder / "meta.json")
        splits = meta["splits"]
        is_gpt2 = meta["tokenizer"].get("kind") == "gpt2"
        vocab = GPT2_VOCAB if is_gpt2 else int(meta["vocab_size"])
        train, val = (max(1, int(splits[split]["tokens"])) for split in ("train", "val"))
        return DataSize(vocab, train, val)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError):
        pass  # `train` says what is wrong with it
    try:
        files = (folder / "train.bin", folder / "val.bin")
        train, val = (max(1, file.stat().st_size // 2) for file in files)
    except (OSError, ValueError):
        return None
    if (folder / "meta.pkl").exists():  # characters; only the trainer reads a pickle
        return DataSize(CHARACTERS, train, val, is_sure=False)
    return DataSize(GPT2_VOCAB, train, val)


def _text(name: str) -> DataSize | None:
    """A text that is not prepared yet: about a token per byte."""
    try:
        size = Path(name).stat().st_size if Path(name).is_file() else 0
    except (OSError, ValueError):
        return None
    if not size:
        return None
    val = round(VAL_SHARE * size)
    return DataSize(CHARACTERS, size - val, val, is_sure=False)
