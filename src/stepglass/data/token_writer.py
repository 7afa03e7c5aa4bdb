"""Writes tokens to a file, and, where only some of them count, which ones to a second file."""

import hashlib
from typing import IO, Any

import numpy as np

from stepglass.data import tokenizer
from stepglass.data.library_tokenizer import LibraryTokenizer, last_word_end
from stepglass.data.marked_text import encode_text
from stepglass.data.tokenizer import CharTokenizer, Tokenizer

MAX_WORD_CHARS = 1 << 20


class TokenWriter:
    """Encodes text piece by piece and appends the ids to a file."""

    def __init__(
        self,
        file: IO[bytes],
        codec: Tokenizer,
        dtype: "np.dtype[Any]",
        mask_file: IO[bytes] | None = None,
    ) -> None:
        self._file = file
        self._mask_file = mask_file
        self.codec = codec
        self._dtype = dtype
        self._pending = ""
        self.num_tokens = 0
        self.num_bytes = 0  # of the text in UTF-8; the end of a document has none
        self.digest = hashlib.sha256()
        self.num_counted = 0
        self.mask_digest = hashlib.sha256()

    def add(self, text: str) -> None:
        self.num_bytes += len(text) if text.isascii() else len(text.encode())
        if isinstance(self.codec, CharTokenizer):
            self._write(self.codec.encode(text))
            return
        text = self._pending + text
        # The last word may continue in the next piece.
        is_ours = not isinstance(self.codec, LibraryTokenizer)
        cut = tokenizer.last_safe_cut(text) if is_ours else last_word_end(text)
        if len(text) - cut > MAX_WORD_CHARS:
            cut = len(text)  # the text has no place to cut; encode it now to limit memory
        self._pending = text[cut:]
        self._write(self.codec.encode(text[:cut]))

    def end_document(self) -> None:
        self.finish()
        if self.codec.end_of_text is not None:
            self._write(np.array([self.codec.end_of_text]))

    def finish(self) -> None:
        text, self._pending = self._pending, ""
        if text:
            self._write(self.codec.encode(text))

    def add_part(self, text: str, counts: bool) -> None:
        """Add a part of a conversation: a whole text, whose tokens count or not."""
        ids = np.array(encode_text(text, self.codec), dtype=np.int64)
        self._write(ids)
        mask = bytes([counts]) * ids.size
        if self._mask_file is not None:
            self._mask_file.write(mask)
        self.mask_digest.update(mask)
        self.num_counted += counts * ids.size

    def described(self) -> dict[str, Any]:
        """What meta.json says about the files."""
        found = {
            "tokens": self.num_tokens,
            "bytes": self.num_bytes,
            "sha256": self.digest.hexdigest(),
        }
        if self._mask_file is None:
            return found
        mask_sha256 = self.mask_digest.hexdigest()
        return {**found, "counted": self.num_counted, "mask_sha256": mask_sha256}

    def _write(self, ids: "np.ndarray[Any, Any]") -> None:
        data = ids.astype(self._dtype).tobytes()
        self.digest.update(data)
        self._file.write(data)
        self.num_tokens += ids.size
