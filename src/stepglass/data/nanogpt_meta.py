"""nanoGPT's meta.pkl, read without trusting it.

A pickle is a program. This reader runs it with every way out barred: it can build dicts, lists,
strings and numbers, and stops at the first request for anything else.
"""

import io
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from stepglass import atomic
from stepglass.errors import DataError, os_reason
from stepglass.units import shown

MAX_BYTES = 16_000_000
MAX_VOCAB = 1 << 16  # its tokens have 16 bits


class _PlainUnpickler(pickle._Unpickler):
    """In Python, not in C: there a file of nine bytes can ask for gigabytes of memory."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")

    def persistent_load(self, pid: Any) -> NoReturn:
        raise pickle.UnpicklingError("it asks for an outside object")


@dataclass(frozen=True)
class Meta:
    """What a meta.pkl says: the rows a model needs, and the texts of its tokens with their ids.

    nanoGPT's trainer looks at `vocab_size` alone, so that people have files without a table of
    characters, or with one of words, notes, moves or bytes.
    """

    vocab_size: int
    table: dict[str, int]
    num_left_out: int  # entries without a text, or without an id of their own that is in use


def read(path: Path) -> Meta:
    """All that is usable in a meta.pkl. A file without a good `vocab_size` is refused."""
    try:
        meta = _PlainUnpickler(io.BytesIO(atomic.read_regular(path, MAX_BYTES))).load()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {os_reason(error)}") from error
    except Exception as error:  # a hostile pickle can raise anything; nothing of it is kept
        raise DataError(
            f"{path}: expected nanoGPT's table of tokens (dicts, strings and numbers), found "
            f"another pickle: {error}; "
            f"prepare the text again with `stepglass prepare`"
        ) from error
    vocab_size = meta.get("vocab_size") if isinstance(meta, dict) else None
    if type(vocab_size) is not int or not 0 < vocab_size <= MAX_VOCAB:
        found = "none" if vocab_size is None else shown(vocab_size)
        raise DataError(
            f"{path}: expected 'vocab_size', a number from 1 to {MAX_VOCAB}, found {found}"
        )
    entries = meta.get("stoi")
    table: dict[str, int] = {}
    taken: set[int] = set()
    for token, index in entries.items() if isinstance(entries, dict) else ():
        is_good = isinstance(token, str) and token and type(index) is int and index not in taken
        if is_good and 0 <= index < vocab_size:
            table[token] = index
            taken.add(index)
    has_entries = isinstance(entries, dict | list | tuple | str)
    return Meta(vocab_size, table, (len(entries) if has_entries else 0) - len(table))
