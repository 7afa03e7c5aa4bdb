"""A prepared data set: token files on disk, batches out of them.

A batch is a pure function of (seed, step): no position to save, no workers, the same data on any
number of processes. Folders made by nanoGPT are read as they are. Every file is checked before
training starts, and every batch as it is read: a token the model has no row for would otherwise
surface as a crash in a kernel.
"""

import hashlib
import mmap
import os
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from stepglass import json_files
from stepglass.data import identity, nanogpt_meta, sources, tokenizer
from stepglass.data.prepare import SCHEMA
from stepglass.data.tokenizer import Tokenizer
from stepglass.errors import CheckpointError, DataError, os_reason
from stepglass.units import shown

GPT2_PADDED_VOCAB = 50304  # nanoGPT rounds 50257 up to a multiple of 64: matrix units like it
SCAN_TOKENS = 1 << 25  # checked before training; beyond that, batch by batch
EDGE_TOKENS = 1 << 20  # known at once, and all that earlier versions looked at

TRAIN_STREAM, EVAL_STREAM = 0, 1  # independent random streams under one seed


def uniform(seed: int, stream: int, step: int, size: int, below: int) -> "np.ndarray[Any, Any]":
    """Random whole numbers in [0, below) that depend on the arguments alone, on any machine and
    version.
    """
    bits = np.random.Philox(key=[seed, stream], counter=[0, 0, 0, step]).random_raw(size)
    return np.asarray(bits % np.uint64(below)).astype(np.int64)


class TokenFile:
    """One .bin file, mapped into memory. `promised` is the sha256 that a manifest has for it."""

    def __init__(
        self, path: Path, dtype: "np.dtype[Any]", vocab_size: int, promised: str | None = None
    ) -> None:
        self.path = path
        self._vocab_size = vocab_size
        self._promised = promised
        try:
            fd = identity.open_regular(path)
            weakref.finalize(self, os.close, fd)
            if os.fstat(fd).st_size == 0:
                raise DataError(f"{path}: expected tokens, found an empty file")
            # The map keeps the file it was made from, even if another takes its name.
            self._map = mmap.mmap(fd, 0, access=mmap.ACCESS_READ)
            self._file = identity.OpenFile(path, fd)
        except FileNotFoundError as error:
            raise DataError(
                f"{path}: no such file; make the data set with `stepglass prepare`"
            ) from error
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {os_reason(error)}") from error
        except ValueError as error:
            raise DataError(f"{path}: expected a file of tokens, found something else") from error
        if len(self._map) % dtype.itemsize:
            raise DataError(
                f"{path}: expected whole {dtype.name} tokens, found {len(self._map)} bytes, "
                f"not a multiple of {dtype.itemsize}"
            )
        self.tokens = np.frombuffer(self._map, dtype=dtype)
        ends = self.tokens[:EDGE_TOKENS].tobytes() + self.tokens[-EDGE_TOKENS:].tobytes()
        self._edges_sha256 = hashlib.sha256(ends).hexdigest()

    def __len__(self) -> int:
        return len(self.tokens)

    def require(self, num_tokens: int, block_size: int) -> None:
        if len(self) < num_tokens:
            raise DataError(
                f"{self.path}: expected at least {num_tokens} tokens for block_size={block_size}, "
                f"found {len(self)}; lower --block_size or prepare more text"
            )

    def scan(self) -> None:
        """Look at the start of the file for what can only be a mistake."""
        head = self.tokens[:SCAN_TOKENS]
        largest = int(head.max())
        if largest >= self._vocab_size:
            swapped = int(head.byteswap().max())
            order = "; the bytes look big-endian" if swapped < self._vocab_size else ""
            where = int(np.argmax(head >= self._vocab_size))
            raise DataError(
                f"{self.path} token {where}: expected ids below the vocabulary's "
                f"{self._vocab_size}, "
                f"found {int(head[where])}{order}"
            )
        if largest == int(head.min()):
            raise DataError(
                f"{self.path}: expected text, found the same token {largest} everywhere"
            )

    def windows(self, offsets: "np.ndarray[Any, Any]", length: int) -> "np.ndarray[Any, Any]":
        """Rows of `length` tokens that start at the offsets."""
        # Reading past the end of a file that shrank kills the process with SIGBUS: ask first.
        self._file.require_unchanged()
        self.require_promised()
        self._file.hash_beside()  # not before: processes are forked at the start, without threads
        rows = self.tokens[offsets[:, None] + np.arange(length)]
        if rows.max() >= self._vocab_size:
            raise DataError(
                f"{self.path}: expected ids below the vocabulary's {self._vocab_size}, found "
                f"{int(rows.max())}"
            )
        return rows

    def require_promised(self) -> None:
        """Raise DataError if the file is known not to be the one that its manifest tells of."""
        if self._promised is not None and self._file.sha256 not in (None, self._promised):
            raise DataError(
                f"{self.path}: its sha256 is not the one in {self.path.parent / 'meta.json'}: the "
                f"file changed; prepare the text again"
            )

    def fingerprint(self) -> dict[str, Any]:
        """What the file is known by. The sha256 of a large file comes later."""
        found = {
            "tokens": len(self),
            "dtype": self.tokens.dtype.name,
            "edges_sha256": self._edges_sha256,
        }
        sha256 = self._file.sha256 or self._promised
        return found if sha256 is None else {**found, "sha256": sha256}


@dataclass
class Dataset:
    """Train and validation tokens, and the tokenizer that made them."""

    folder: Path
    train: TokenFile
    val: TokenFile
    tokenizer_json: dict[str, Any]
    vocab_size: int  # rows the model needs
    origin: str  # the file that vocab_size comes from
    warnings: tuple[str, ...]
    resumed: tuple[str, Any] | None = None  # a checkpoint, and what it says of its data

    @property
    def fingerprint(self) -> dict[str, Any]:
        """What the data are known by, as far as it is known by now."""
        return {
            "train": self.train.fingerprint(),
            "val": self.val.fingerprint(),
            "vocab_size": self.vocab_size,
        }

    def resume(self, place: str, stored: Any) -> None:
        """Hold the data to what a checkpoint says of them, now and as more of them is known."""
        self.resumed = place, stored
        self._require_same()

    def _require_same(self) -> None:
        # Not a DataError: with one a run ends saved, and this one would be saved as what it is not.
        if self.resumed is not None and not identity.is_same(self.resumed[1], self.fingerprint):
            raise CheckpointError(
                f"{self.resumed[0]}: was trained on other data than {self.folder} holds now; "
                "restore it, or start from scratch"
            )

    def batch(self, seed: int, step: int, rows: int, block_size: int) -> tuple[Tensor, Tensor]:
        """The batch of an update: inputs, and the same windows one token later."""
        self._require_same()
        offsets = uniform(seed, TRAIN_STREAM, step, rows, len(self.train) - block_size)
        return as_tensors(self.train.windows(offsets, block_size + 1))

    def eval_windows(
        self, split: TokenFile, seed: int, count: int, block_size: int
    ) -> "np.ndarray[Any, Any]":
        """Where the windows of every evaluation start: the whole split without overlap, or a
        fixed part of it.
        """
        available = (len(split) - 1) // block_size
        if count >= available:
            return np.arange(available) * block_size
        order = np.argsort(uniform(seed, EVAL_STREAM, 0, available, 1 << 62), kind="stable")
        return np.sort(order[:count]) * block_size


def as_tensors(rows: "np.ndarray[Any, Any]") -> tuple[Tensor, Tensor]:
    return torch.from_numpy(rows[:, :-1].astype(np.int64)), torch.from_numpy(
        rows[:, 1:].astype(np.int64)
    )


def folder_of(name: str) -> Path:
    """nanoGPT's place for a data set: `data/NAME`. A path to a folder is taken as it is."""
    direct = Path(name)
    return direct if (direct / "train.bin").exists() else Path("data") / name


def is_missing(name: str) -> bool:
    """True for a data set that has to be made first, and can be: its name is known."""
    return name in sources.NAMED and not (folder_of(name) / "train.bin").exists()


def load(name: str, block_size: int) -> Dataset:
    """Open a data set and check it against what the run needs."""
    folder = folder_of(name)
    if Path(name).is_file():
        raise DataError(
            f"{name}: expected a data set, found a file; first run: stepglass prepare {name}"
        )
    if not folder.is_dir():
        raise _no_such_data_set(folder)
    dtype = np.dtype("<u2")
    splits: dict[str, Any] = {}
    warnings: list[str] = []
    if os.path.lexists(folder / "meta.json") and not _is_somebody_elses(folder):
        origin = folder / "meta.json"
        meta = _read_meta(origin)
        codec_json, vocab_size = meta["tokenizer"], meta["vocab_size"]
        dtype = np.dtype(meta["dtype"]).newbyteorder("<")
        splits = meta["splits"]
        if codec_json.get("kind") == "gpt2":
            vocab_size = GPT2_PADDED_VOCAB
    elif os.path.lexists(folder / "meta.pkl"):
        origin = folder / "meta.pkl"
        found = nanogpt_meta.read(origin)
        codec_json, vocab_size = tokenizer.of_table(found.table, found.vocab_size), found.vocab_size
        if found.num_left_out:
            rest = "those tokens have no text" if found.table else "tokens go by their numbers"
            warnings.append(
                f"{origin}: {found.num_left_out} entries of 'stoi' are left out, for they are not "
                f"texts with an id of their own below {vocab_size}; {rest}"
            )
    else:
        origin = folder
        codec_json, vocab_size = {"kind": "gpt2"}, GPT2_PADDED_VOCAB
    if vocab_size > np.iinfo(dtype).max + 1:
        raise DataError(
            f"{origin}: a vocabulary of {vocab_size} does not fit {dtype.name} tokens; prepare "
            "the text again"
        )
    train, val = (
        TokenFile(
            folder / f"{split}.bin",
            dtype,
            vocab_size,
            str(splits[split].get("sha256")) if splits else None,
        )
        for split in ("train", "val")
    )
    for split, file in (("train", train), ("val", val)):
        _hold_against_meta(file, splits.get(split), origin)
        file.require(block_size + 1, block_size)
        file.scan()
    if train.fingerprint() == val.fingerprint():
        warnings.append(
            f"{train.path} and {val.path} hold the same tokens: the validation loss will say "
            f"nothing new"
        )
    return Dataset(folder, train, val, codec_json, vocab_size, str(origin), tuple(warnings))


def _no_such_data_set(folder: Path) -> DataError:
    made = (
        sorted(path.parent.name for path in Path("data").glob("*/train.bin"))
        if Path("data").is_dir()
        else []
    )
    names = ", ".join([*made, *(known for known in sources.NAMED if known not in made)])
    return DataError(
        f"{folder}: no such data set; expected one of {names}, or run `stepglass prepare` on "
        "your text"
    )


def _is_somebody_elses(folder: Path) -> bool:
    """A nanoGPT folder may have a meta.json beside its meta.pkl. Ours names its schema."""
    if not os.path.lexists(folder / "meta.pkl"):
        return False
    try:
        meta = json_files.read_json(folder / "meta.json")
    except (OSError, ValueError):
        return False  # to be named for what is wrong with it
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


def _hold_against_meta(file: TokenFile, said: Any, origin: Path) -> None:
    if said is None:  # nanoGPT's folders promise nothing
        return
    if said["tokens"] != len(file):
        raise DataError(
            f"{file.path}: {origin} promises {said['tokens']} tokens, found {len(file)}; prepare "
            "the text again"
        )
    file.require_promised()


def load_tokenizer(path: Path) -> Tokenizer:
    """The tokenizer a run directory keeps."""
    try:
        return tokenizer.from_json(json_files.read_json(path), str(path))
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {os_reason(error)}") from error
    except ValueError as error:
        raise DataError(f"{path}: cannot be read: {error}") from error
