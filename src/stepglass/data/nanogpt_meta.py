"""nanoGPT's meta.pkl, read without trusting it.

A pickle is a program. This reader runs it with every way out barred: it can build dicts, lists,
strings and numbers, and stops at the first request for anything else.
"""

import io
import pickle
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


def read(path: Path) -> tuple[dict[str, int], int]:
    """The tokens of a nanoGPT data set with their ids, and how many rows its model needs.

    nanoGPT's trainer looks at `vocab_size` alone, so that people have files without a table of
    characters, or with one of words, notes or moves. A token without a text of its own goes by its
    number.
    """
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
    table = meta.get("stoi")
    if table is None or (isinstance(table, dict) and all(type(key) is int for key in table)):
        return {str(index): index for index in range(vocab_size)}, vocab_size
    if not isinstance(table, dict) or not all(
        isinstance(token, str) and token and type(index) is int for token, index in table.items()
    ):
        raise DataError(f"{path}: expected 'stoi', a table of tokens and ids, found {shown(table)}")
    if len(set(table.values())) != len(table):
        raise DataError(f"{path}: expected one id for each token, found two with the same")
    if min(table.values()) < 0 or max(table.values()) >= vocab_size:
        raise DataError(
            f"{path}: expected ids from 0 to {vocab_size - 1}, its vocab_size being {vocab_size}, "
            f"found {shown(min(table.values()))} to {shown(max(table.values()))}"
        )
    return table, vocab_size
