"""Reads the description of a data set: its tokenizer, its vocabulary, and its token files.

`stepglass prepare` writes a meta.json. nanoGPT writes a meta.pkl for character data sets, and no
description for data sets with GPT-2's tokens.
"""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from stepglass import json_files
from stepglass.data import nanogpt_meta, tokenizer
from stepglass.data.prepare import SCHEMA
from stepglass.errors import DataError, os_reason
from stepglass.units import finite, shown

GPT2_PADDED_VOCAB = 50304  # nanoGPT rounds 50257 up to a multiple of 64, which is faster on GPUs
NANOGPT_DTYPE = np.dtype("<u2")


@dataclass(frozen=True)
class Description:
    """How to read the token files of a folder."""

    origin: Path  # the file that this description comes from
    tokenizer_json: dict[str, Any]
    vocab_size: int
    dtype: "np.dtype[Any]" = NANOGPT_DTYPE
    splits: dict[str, Any] = field(default_factory=dict)  # expected size and hash, if known
    warnings: tuple[str, ...] = ()

    @property
    def has_masks(self) -> bool:
        """True if only some tokens count: those that an assistant says in conversations."""
        return any("counted" in promised for promised in self.splits.values())

    def bytes_per_token(self, split: str) -> float | None:
        """The mean length of a split's tokens in bytes of text, or None if it is unknown."""
        promised = self.splits.get(split, {})
        # Where only some tokens count, the bytes are those of their text.
        num_tokens = finite(promised.get("counted", promised.get("tokens")))
        num_bytes = finite(promised.get("bytes"))
        if num_bytes and num_tokens and num_bytes > 0 and num_tokens > 0:
            return num_bytes / num_tokens
        # Neither nanoGPT nor earlier versions stored the number of bytes.
        chars = self.tokenizer_json.get("chars")
        is_ascii = isinstance(chars, dict) and all(len(c) == 1 and c.isascii() for c in chars)
        return 1.0 if is_ascii and len(chars or ()) == self.vocab_size else None


def describe(folder: Path) -> Description:
    """The description of a data set that was made by Stepglass or nanoGPT."""
    if os.path.lexists(folder / "meta.json") and not _is_foreign(folder):
        found = _from_meta_json(folder / "meta.json")
    elif os.path.lexists(folder / "meta.pkl"):
        found = _from_meta_pkl(folder / "meta.pkl")
    else:
        found = Description(folder, {"kind": "gpt2"}, GPT2_PADDED_VOCAB)
    if found.vocab_size > np.iinfo(found.dtype).max + 1:
        raise DataError(
            f"{found.origin}: a vocabulary of {found.vocab_size} does not fit {found.dtype.name} "
            "tokens; prepare the text again"
        )
    return found


def _from_meta_json(path: Path) -> Description:
    meta = _read_meta(path)
    is_gpt2 = meta["tokenizer"].get("kind") == "gpt2"
    return Description(
        path,
        meta["tokenizer"],
        GPT2_PADDED_VOCAB if is_gpt2 else meta["vocab_size"],
        np.dtype(meta["dtype"]).newbyteorder("<"),
        meta["splits"],
    )


def _from_meta_pkl(path: Path) -> Description:
    found = nanogpt_meta.read_meta_pkl(path)
    warnings: tuple[str, ...] = ()
    if found.num_left_out:
        rest = "those tokens have no text" if found.table else "tokens are shown as numbers"
        warnings = (
            f"{path}: {found.num_left_out} entries of 'stoi' are left out: they are not "
            f"texts with a unique id below {found.vocab_size}; {rest}",
        )
    codec_json = tokenizer.of_table(found.table, found.vocab_size)
    return Description(path, codec_json, found.vocab_size, warnings=warnings)


def _is_foreign(folder: Path) -> bool:
    """True if meta.json was not written by Stepglass. A nanoGPT folder may have a meta.json as well
    as a meta.pkl. Ours has the key `schema`."""
    if not os.path.lexists(folder / "meta.pkl"):
        return False
    try:
        meta = json_files.read_json(folder / "meta.json")
    except (OSError, ValueError):
        return False  # `_read_meta` will report the error
    return not isinstance(meta, dict) or "schema" not in meta


def _read_meta(path: Path) -> dict[str, Any]:
    try:
        meta = json_files.read_json(path)
        expected = {"tokenizer": dict, "vocab_size": int, "dtype": str, "splits": dict}
        for key, kind in expected.items():
            if not isinstance(meta[key], kind):
                raise ValueError(f"{key} is not {kind.__name__}")
        if meta["dtype"] not in ("uint16", "uint32") or meta["vocab_size"] < 1:
            raise ValueError(f"dtype {meta['dtype']!r}, vocab_size {meta['vocab_size']!r}")
        if meta.get("schema") != SCHEMA:
            raise ValueError(f"schema {shown(meta.get('schema'))}, expected {SCHEMA}")
        for split in ("train", "val"):
            if not isinstance(meta["splits"][split]["tokens"], int):
                raise ValueError(f"splits.{split} has no number of tokens")
        if meta["tokenizer"].get("kind") != "gpt2":
            found = tokenizer.from_json(meta["tokenizer"], str(path)).vocab_size
            if found != meta["vocab_size"]:
                raise ValueError(
                    f"vocab_size is {meta['vocab_size']}, but its tokenizer has {found}"
                )
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {os_reason(error)}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{path}: expected what `stepglass prepare` writes, found a problem: {error!s}"
        ) from error
    return dict(meta)
