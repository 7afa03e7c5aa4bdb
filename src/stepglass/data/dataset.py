"""A prepared data set: makes batches from token files on disk.

A batch depends only on the seed and the step. So there is no position to save and there are no
worker processes, and the data is the same with any number of processes. Data folders made by
nanoGPT can be read unchanged.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from stepglass import json_files
from stepglass.data import identity, sources, tokenizer
from stepglass.data.description import Description, describe
from stepglass.data.location import folder_of
from stepglass.data.token_file import TokenFile
from stepglass.data.tokenizer import Tokenizer
from stepglass.errors import CheckpointError, DataError, os_reason
from stepglass.measure import bits_per_byte

TRAIN_STREAM, EVAL_STREAM = 0, 1  # independent random streams under one seed
IGNORED = -1  # a target that does not count, as in nanoGPT


def uniform(seed: int, stream: int, step: int, size: int, below: int) -> "np.ndarray[Any, Any]":
    """Random integers in [0, below). They depend only on the arguments, and are the same on every
    machine and with every version of NumPy.
    """
    bits = np.random.Philox(key=[seed, stream], counter=[0, 0, 0, step]).random_raw(size)
    return np.asarray(bits % np.uint64(below)).astype(np.int64)


@dataclass
class Dataset:
    """Train and validation tokens, and the tokenizer that made them."""

    folder: Path
    train: TokenFile
    val: TokenFile
    tokenizer_json: dict[str, Any]
    vocab_size: int  # the number of tokens in the model's table
    origin: str  # the file that vocab_size comes from
    warnings: tuple[str, ...]
    val_bytes_per_token: float | None = None
    resumed: tuple[str, Any] | None = None  # path and data fingerprint of the resumed checkpoint

    @property
    def fingerprint(self) -> dict[str, Any]:
        """Identifies the data, and says how long its tokens are. Hashes of large files are added
        when they are known."""
        return {
            "train": self.train.fingerprint(),
            "val": self.val.fingerprint(),
            "vocab_size": self.vocab_size,
            bits_per_byte.KEY: self.val_bytes_per_token,
        }

    def resume(self, place: str, stored: Any) -> None:
        """Require that the data is the same as that of a checkpoint. This is checked now, and again
        before every batch, because hashes of large files become known later."""
        self.resumed = place, stored
        self._require_same()

    def _require_same(self) -> None:
        # This is not a DataError, because a run is saved after a DataError. A run with wrong data
        # must not be saved.
        if self.resumed is not None and not identity.is_same_data(
            self.resumed[1], self.fingerprint
        ):
            raise CheckpointError(
                f"{self.resumed[0]}: was trained on other data than {self.folder} holds now "
                f"({identity.difference(self.resumed[1], self.fingerprint)}); prepare the old text "
                "there again, or start from scratch with another --out_dir"
            )

    def batch(
        self, seed: int, step: int, rows: int, block_size: int, part: slice = slice(None)
    ) -> tuple[Tensor, Tensor]:
        """The batch of an update, or a part of its rows: the inputs, and the targets, which are
        shifted by one token."""
        self._require_same()
        offsets = self._offsets(seed, step, rows, block_size)
        return inputs_and_targets(self.train, offsets[part], block_size)

    def counted_share(self, seed: int, step: int, rows: int, block_size: int) -> float:
        """The share of the batch's targets that count. A batch depends on seed and step alone, so
        every process can tell it for all of them."""
        if self.train.mask is None:
            return 1.0
        offsets = self._offsets(seed, step, rows, block_size)
        return float(self.train.num_counted(offsets, block_size).mean()) / block_size

    def _offsets(self, seed: int, step: int, rows: int, block_size: int) -> "np.ndarray[Any, Any]":
        """The start of each window of a batch. Each has a target that counts."""
        offsets = uniform(seed, TRAIN_STREAM, step, rows, len(self.train) - block_size)
        return self.train.moved_to_counted(offsets, block_size)

    def eval_windows(
        self, split: TokenFile, seed: int, count: int, block_size: int
    ) -> "np.ndarray[Any, Any]":
        """The start of each window of an evaluation. The windows do not overlap. They cover the
        whole split, or `count` windows of it, which are always the same. Windows without a target
        that counts are left out.
        """
        available = np.arange((len(split) - 1) // block_size) * block_size
        if split.mask is not None:
            available = available[split.num_counted(available, block_size) > 0]
            if not len(available):
                raise DataError(
                    f"{split.path}: expected an answer in its windows of block_size={block_size} "
                    "tokens, found none; prepare more conversations"
                )
        if count >= len(available):
            return available
        order = np.argsort(uniform(seed, EVAL_STREAM, 0, len(available), 1 << 62), kind="stable")
        return available[np.sort(order[:count])]


def inputs_and_targets(
    split: TokenFile, offsets: "np.ndarray[Any, Any]", block_size: int
) -> tuple[Tensor, Tensor]:
    """The windows at the offsets, and the same shifted by one token, where those that do not count
    are IGNORED."""
    rows = split.windows(offsets, block_size + 1)
    x, y = (torch.from_numpy(part.astype(np.int64)) for part in (rows[:, :-1], rows[:, 1:]))
    if split.mask is not None:
        counts = split.mask.windows(offsets + 1, block_size)
        y[torch.from_numpy(counts == 0)] = IGNORED
    return x, y


def load_dataset(name: str, block_size: int) -> Dataset:
    """Open a data set and check that it is valid and large enough for the run."""
    folder = folder_of(name)
    if not folder.is_dir():
        raise _no_such_data_set(folder)
    said = describe(folder)
    train, val = (_open_split(folder, split, said) for split in ("train", "val"))
    for split, file in (("train", train), ("val", val)):
        _check_promises(file, said.splits.get(split), said.origin)
        file.require(block_size + 1, block_size)
        file.scan()
    warnings = list(said.warnings)
    if train.fingerprint() == val.fingerprint():
        warnings.append(
            f"{train.path} and {val.path} hold the same tokens: the validation loss will say "
            f"nothing new"
        )
    return Dataset(
        folder,
        train,
        val,
        said.tokenizer_json,
        said.vocab_size,
        str(said.origin),
        tuple(warnings),
        said.bytes_per_token("val"),
    )


def _open_split(folder: Path, split: str, said: Description) -> TokenFile:
    promised = str(said.splits[split].get("sha256")) if said.splits else None
    file = TokenFile(folder / f"{split}.bin", said.dtype, said.vocab_size, promised)
    if said.has_masks:
        mask_sha256 = str(said.splits[split].get("mask_sha256"))
        mask = TokenFile(folder / f"{split}.mask", np.dtype("u1"), 2, mask_sha256)
        mask.require_promised()
        file.add_mask(mask)
    return file


def _check_promises(file: TokenFile, promised: Any, origin: Path) -> None:
    """Check a token file against meta.json. nanoGPT's folders have no such description."""
    if promised is None:
        return
    if promised["tokens"] != len(file):
        raise DataError(
            f"{file.path}: {origin} promises {promised['tokens']} tokens, found {len(file)}; "
            "prepare the text again"
        )
    file.require_promised()


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


def load_tokenizer(path: Path) -> Tokenizer:
    """Load the tokenizer of a run directory."""
    try:
        return tokenizer.from_json(json_files.read_json(path), str(path))
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {os_reason(error)}") from error
    except ValueError as error:
        raise DataError(f"{path}: cannot be read: {error}") from error
