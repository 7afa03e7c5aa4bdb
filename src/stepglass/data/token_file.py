"""One file of tokens, mapped into memory.

The file is checked before training starts, and every batch is checked when it is read. Otherwise a
token id outside of the vocabulary would crash in a kernel.
"""

import hashlib
import mmap
import os
import weakref
from pathlib import Path
from typing import Any

import numpy as np

from stepglass.data import identity
from stepglass.errors import DataError, os_reason

SCAN_TOKENS = 1 << 25  # checked before training; later tokens are checked batch by batch
EDGE_TOKENS = 1 << 20  # hashed at each end: fast, and the only hash that earlier versions stored


class TokenFile:
    """One .bin file, mapped into memory. `promised` is the sha256 that meta.json has for it."""

    def __init__(
        self, path: Path, dtype: "np.dtype[Any]", vocab_size: int, promised: str | None = None
    ) -> None:
        self.path = path
        self.mask: TokenFile | None = None  # 1 for each token that counts; None: all of them
        self._vocab_size = vocab_size
        self._promised = promised
        try:
            fd = identity.open_regular(path)
            weakref.finalize(self, os.close, fd)
            if os.fstat(fd).st_size == 0:
                raise DataError(f"{path}: expected tokens, found an empty file")
            # The map keeps using this file, even if it is replaced by another of the same name.
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
        """Check the start of the file for obvious errors."""
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
        # Check first: reading past the end of a file that has shrunk kills the process (SIGBUS).
        self._file.require_unchanged()
        self.require_promised()
        self._file.hash_in_background()  # not earlier: replicas are forked without threads
        rows = self.tokens[offsets[:, None] + np.arange(length)]
        if rows.max() >= self._vocab_size:
            raise DataError(
                f"{self.path}: expected ids below the vocabulary's {self._vocab_size}, found "
                f"{int(rows.max())}"
            )
        return rows

    def require_promised(self) -> None:
        """Raise DataError if the file's sha256 is known and differs from the one in meta.json."""
        if self._promised is not None and self._file.sha256 not in (None, self._promised):
            raise DataError(
                f"{self.path}: its sha256 is not the one in {self.path.parent / 'meta.json'}: the "
                f"file changed; prepare the text again"
            )

    def fingerprint(self) -> dict[str, Any]:
        """Identifies the contents of the file. The sha256 of a large file is added later."""
        found: dict[str, Any] = {
            "tokens": len(self),
            "dtype": self.tokens.dtype.name,
            "edges_sha256": self._edges_sha256,
        }
        sha256 = self._file.sha256 or self._promised
        if sha256 is not None:
            found["sha256"] = sha256
        return found if self.mask is None else {**found, "mask": self.mask.fingerprint()}

    # -- where only some tokens count -----------------------------------------------------------

    def add_mask(self, mask: "TokenFile") -> None:
        """Let only those tokens count as targets that the mask says."""
        if len(mask) != len(self):
            raise DataError(
                f"{mask.path}: expected a byte for each of the {len(self)} tokens in {self.path}, "
                f"found {len(mask)}; prepare the text again"
            )
        if not mask.tokens[1:].view(bool).any():
            raise DataError(f"{mask.path}: expected tokens that count, found none")
        self.mask = mask

    def num_counted(
        self, offsets: "np.ndarray[Any, Any]", block_size: int
    ) -> "np.ndarray[Any, Any]":
        """How many targets of each window count."""
        if self.mask is None:
            return np.full(len(offsets), block_size)
        counts = self.mask.windows(offsets + 1, block_size)
        return np.asarray(counts.sum(axis=1, dtype=np.int64))

    def moved_to_counted(
        self, offsets: "np.ndarray[Any, Any]", block_size: int
    ) -> "np.ndarray[Any, Any]":
        """The offsets, but a window without a target that counts is moved to the next one, so that
        it is in the middle of the window."""
        if self.mask is None:
            return offsets
        offsets = offsets.copy()
        counts = self.mask.tokens.view(bool)
        for row in np.flatnonzero(self.num_counted(offsets, block_size) == 0):
            after = int(offsets[row]) + 1
            # Beyond the last one, go on from the start. `argmax` ends at the first True.
            start = after if counts[after:].any() else 1
            found = start + int(counts[start:].argmax())
            middle = found - 1 - block_size // 2
            offsets[row] = min(max(middle, 0), len(self) - block_size - 1)
        return offsets
