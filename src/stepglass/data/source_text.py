"""Text that a data set is made of, read in pieces: once to look at it, and once to encode it."""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from stepglass.data import sources, tokenizer
from stepglass.data.sources import Source
from stepglass.data.token_writer import TokenWriter
from stepglass.errors import DataError

Progress = Callable[[str, int, int], None]  # current task, bytes done, bytes in total


@dataclass(frozen=True)
class Scan:
    """The results of the first pass."""

    num_chars: int
    alphabet: set[str]
    sha256: str

    num_conversations: int = 0

    def num_train_chars(self, val_fraction: float) -> int:
        return int(self.num_chars * (1 - val_fraction))


class SourceText:
    """The text of a source, in pieces. None separates two documents."""

    has_mask = False

    def __init__(self, source: Source, kind: str, progress: Progress) -> None:
        self._source = source
        self._kind = kind
        self._progress = progress

    def pieces(self, doing: str, digest: "hashlib._Hash") -> Iterator[str | None]:
        done = 0

        def advance(num_bytes: int) -> None:
            nonlocal done
            done += num_bytes
            self._progress(doing, done, self._source.num_bytes)

        last = ""
        for index, document in enumerate(self._source.documents):
            if index and self._kind != "char":
                yield None
            elif index and not last.endswith("\n"):
                yield "\n"  # char has no end-of-text token, so a newline separates documents
            for text in sources.read_text(document, digest, advance):
                if text:
                    last = text
                    yield text

    def scan(self) -> Scan:
        digest = hashlib.sha256()
        seen = np.zeros(tokenizer.UNICODE_SIZE, dtype=bool)
        num_chars = 0
        for piece in self.pieces("reading", digest):
            if piece is not None:
                num_chars += len(piece)
                seen[np.frombuffer(piece.encode("utf-32-le"), dtype=np.uint32)] = True
        return Scan(num_chars, {chr(code) for code in np.flatnonzero(seen)}, digest.hexdigest())

    def report_learning(self) -> None:
        """Report progress after the text is read and before anything is written."""
        self._progress("learning", self._source.num_bytes, self._source.num_bytes)

    def sample(self, max_bytes: int) -> Iterator[str]:
        """Pieces from all parts of the text, about `max_bytes` in total at most."""
        every = -(-self._source.num_bytes // max_bytes)
        for index, piece in enumerate(self.pieces("learning", hashlib.sha256())):
            if piece is not None and index % every == 0:
                yield from tokenizer.safe_pieces(piece)

    def check(self, scan: Scan, val_fraction: float) -> None:
        """Raise DataError if there is too little text for two splits, or nothing to learn."""
        num_train, name = scan.num_train_chars(val_fraction), self._source.documents[0].name
        if scan.num_chars < 2 or num_train < 1 or num_train >= scan.num_chars:
            raise DataError(
                f"{name}: expected text for training and validation, found {scan.num_chars} "
                "characters"
            )
        if len(scan.alphabet) < 2 or not any(not char.isspace() for char in scan.alphabet):
            raise DataError(
                f"{name}: expected text to learn from, found only "
                f"{' '.join(map(repr, sorted(scan.alphabet)[:5]))}"
            )

    def encode(self, splits: dict[str, TokenWriter], scan: Scan, val_fraction: float) -> str:
        """Write the tokens of both splits, and return the sha256 of what was read."""
        digest = hashlib.sha256()
        left = scan.num_train_chars(val_fraction)
        for piece in self.pieces("encoding", digest):
            if piece is None:
                splits["train" if left > 0 else "val"].end_document()
                continue
            if left > 0:
                splits["train"].add(piece[:left])
            if len(piece) > left:
                splits["val"].add(piece[left:])
            left = max(0, left - len(piece))
        for split in splits.values():
            split.finish()
        return digest.hexdigest()
