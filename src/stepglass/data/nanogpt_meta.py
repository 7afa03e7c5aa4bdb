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


class _PlainUnpickler(pickle._Unpickler):
    """In Python, not in C: there a file of nine bytes can ask for gigabytes of memory."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")

    def persistent_load(self, pid: Any) -> NoReturn:
        raise pickle.UnpicklingError("it asks for an outside object")


def read_chars(path: Path) -> dict[str, int]:
    """The characters of a nanoGPT data set and their ids."""
    try:
        meta = _PlainUnpickler(io.BytesIO(atomic.read_regular(path, MAX_BYTES))).load()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {os_reason(error)}") from error
    except Exception as error:  # a hostile pickle can raise anything; nothing of it is kept
        raise DataError(
            f"{path}: expected nanoGPT's character table (dicts, strings and numbers), found "
            f"another pickle: {error}; "
            f"prepare the text again with `stepglass prepare`"
        ) from error
    chars = meta.get("stoi") if isinstance(meta, dict) else None
    if (
        not isinstance(chars, dict)
        or not chars
        or not all(
            isinstance(c, str) and len(c) == 1 and type(i) is int and 0 <= i < 1 << 20
            for c, i in chars.items()
        )
    ):
        found = "none" if chars is None else shown(chars)
        raise DataError(
            f"{path}: expected 'stoi', a table of single characters and ids, found {found}"
        )
    if len(set(chars.values())) != len(chars):
        raise DataError(f"{path}: expected one id for each character, found two with the same")
    if meta.get("vocab_size") != max(chars.values()) + 1:
        raise DataError(
            f"{path}: expected vocab_size {max(chars.values()) + 1} for its characters, found "
            f"{shown(meta.get('vocab_size'))}"
        )
    return chars
