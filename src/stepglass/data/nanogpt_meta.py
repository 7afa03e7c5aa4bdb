"""Reads nanoGPT's meta.pkl safely, even if the file is malicious.

A pickle is a program. Python's unpickler does whatever the program asks for: a short file can make
it allocate gigabytes, or hash a tuple that contains another tuple a million times. This reader has
its own interpreter. It knows only the few instructions for dicts, lists, texts and numbers, and
raises an error for any other. The result is at most a constant factor larger than the file, and no
object from the file is ever hashed.
"""

import pickletools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepglass.errors import DataError, os_reason
from stepglass.files import read_regular
from stepglass.units import shown

MAX_BYTES = 16_000_000
MAX_INSTRUCTIONS = 1_000_000  # two tables of 65,536 words need a third of that
MAX_PROTOCOL = 5
MAX_VOCAB = 1 << 16  # nanoGPT's tokens have 16 bits


class PickledDict(list[Any]):
    """A dict in the order of the pickle: key, value, key, value. The keys are not hashed: hashing
    nested tuples can take forever, and numbers can be chosen so that their hashes collide."""

    def pairs(self) -> list[tuple[Any, Any]]:
        return list(zip(self[::2], self[1::2], strict=True))

    def get(self, name: str) -> Any:
        """The last value of a key, or None. The key must be a text."""
        found = (value for key, value in reversed(self.pairs()) if type(key) is str and key == name)
        return next(found, None)


class _Machine:
    """Runs the instructions of a pickle that need only a stack and a table of references."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self._marks: list[int] = []
        self._memo: dict[int, Any] = {}

    def run(self, name: str, value: Any) -> None:
        """Run one instruction. `value` is its argument in the file."""
        if name in CONSTANTS:
            self.stack.append(CONSTANTS[name])
        elif name in VALUES:
            if name in OLD_TEXTS and not value.isascii():
                raise ValueError("a text of Python 2 that is not ASCII")
            self.stack.append(value)
        elif name in EMPTY:
            self.stack.append(EMPTY[name]())
        elif name in TUPLES:
            self._join(len(self.stack) - TUPLES[name], tuple)
        elif name in JOINED:
            self._join(self._marks.pop(), JOINED[name])
        elif name in ADDED:
            self._add(ADDED[name], self._marks.pop() if name in MANY else None)
        elif name == "MARK":
            self._marks.append(len(self.stack))
        elif name in PUTS:
            self._memo[len(self._memo) if value is None else value] = self.stack[-1]
        elif name in GETS:
            self.stack.append(self._memo[value])
        elif name == "PROTO":
            if value > MAX_PROTOCOL:
                raise ValueError(f"it is of protocol {value}")
        elif name not in ("FRAME", "STOP"):
            raise ValueError(f"it asks for more than that ({name})")

    def _join(self, start: int, kind: type[Any]) -> None:
        """Combine everything above a position on the stack into one object."""
        items = self._above(start)
        _refuse_half_a_pair(kind, items)
        self.stack.append(kind(items))

    def _add(self, kind: type[Any], mark: int | None) -> None:
        """Add everything above a mark to the object below it. Without a mark, add one item or one
        pair."""
        size = 2 if kind is PickledDict else 1
        items = self._above(len(self.stack) - size if mark is None else mark)
        _refuse_half_a_pair(kind, items)
        if type(self.stack[-1]) is not kind:
            raise ValueError("it adds to something that is not a list or dict")
        self.stack[-1].extend(items)

    def _above(self, start: int) -> list[Any]:
        if not 0 <= start <= len(self.stack):
            raise ValueError("it takes more than it has made")
        items = self.stack[start:]
        del self.stack[start:]
        return items


def _refuse_half_a_pair(kind: type[Any], items: list[Any]) -> None:
    if kind is PickledDict and len(items) % 2:
        raise ValueError("a key without a value")


# The instructions for dicts, lists, tuples, sets, texts, bytes and numbers in protocols 0 to 5.
# Sets are read as lists, because a set would hash its items, and sets are not used anyway.
CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
OLD_TEXTS = {"STRING", "BINSTRING", "SHORT_BINSTRING"}
VALUES = {"INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"}
VALUES |= {"UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"}
VALUES |= {"BINBYTES", "SHORT_BINBYTES", "BINBYTES8", *OLD_TEXTS}
EMPTY: dict[str, type[Any]] = {
    "EMPTY_DICT": PickledDict,
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": tuple,
    "EMPTY_SET": list,
}
TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
JOINED: dict[str, type[Any]] = {
    "DICT": PickledDict,
    "LIST": list,
    "TUPLE": tuple,
    "FROZENSET": list,
}
MANY = {"SETITEMS", "APPENDS", "ADDITEMS"}
ADDED: dict[str, type[Any]] = {
    "SETITEM": PickledDict,
    "SETITEMS": PickledDict,
    "APPEND": list,
    "APPENDS": list,
    "ADDITEMS": list,
}
PUTS = {"PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"}
GETS = {"GET", "BINGET", "LONG_BINGET"}


def unpickle(data: bytes) -> Any:
    """The object in a pickle, with a `PickledDict` for every dict. Raises ValueError, IndexError or
    KeyError."""
    machine = _Machine()
    # Python's disassembler never reads beyond the data: it raises if a length is too large.
    for count, (instruction, value, _) in enumerate(pickletools.genops(data)):
        if count == MAX_INSTRUCTIONS:
            raise ValueError(f"it has more than {MAX_INSTRUCTIONS} instructions")
        machine.run(instruction.name, value)
    return machine.stack.pop()


@dataclass(frozen=True)
class NanoGPTMeta:
    """The contents of a meta.pkl: the size of the vocabulary, and a table of texts and ids.

    nanoGPT's trainer uses only `vocab_size`. So there are files without a table, or with a table of
    words, musical notes, chess moves or bytes instead of characters.
    """

    vocab_size: int
    table: dict[str, int]
    num_left_out: int  # entries whose token is not a text, or whose id is invalid or already used


def read_meta_pkl(path: Path) -> NanoGPTMeta:
    """Read the usable parts of a meta.pkl. Raises DataError without a valid `vocab_size`."""
    try:
        data = read_regular(path, MAX_BYTES)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {os_reason(error)}") from error
    except ValueError as error:
        raise DataError(f"{path}: cannot be read: {error}") from error
    return parse_meta_pkl(data, str(path))


def parse_meta_pkl(data: bytes, place: str) -> NanoGPTMeta:
    """Parse the bytes of a meta.pkl. Raises DataError."""
    try:
        meta = unpickle(data)
    except (ValueError, IndexError, KeyError) as error:
        raise DataError(
            f"{place}: expected nanoGPT's table of tokens (dicts, strings and numbers), found "
            f"another pickle: {_reason(error)}; prepare the text again with `stepglass prepare`"
        ) from error
    vocab_size = meta.get("vocab_size") if isinstance(meta, PickledDict) else None
    if type(vocab_size) is not int or not 0 < vocab_size <= MAX_VOCAB:
        found = "none" if vocab_size is None else shown(vocab_size)
        raise DataError(
            f"{place}: expected 'vocab_size', a number from 1 to {MAX_VOCAB}, found {found}"
        )
    entries = meta.get("stoi")
    table: dict[str, int] = {}
    taken: set[int] = set()
    for token, index in entries.pairs() if isinstance(entries, PickledDict) else ():
        if not (type(token) is str and token and type(index) is int and 0 <= index < vocab_size):
            continue
        if index not in taken and token not in table:
            table[token] = index
            taken.add(index)
    return NanoGPTMeta(vocab_size, table, _num_entries(entries) - len(table))


def _reason(error: Exception) -> str:
    """The text of an error, shortened for a message, because it may quote a large part of the
    file."""
    if isinstance(error, UnicodeDecodeError):
        return f"bytes that are no text: {error.reason}"
    text = str(error) if isinstance(error, ValueError) else "a reference to nothing"
    return text if len(text) <= 200 else text[:197] + "..."


def _num_entries(entries: Any) -> int:
    if isinstance(entries, PickledDict):
        return len(entries) // 2
    return len(entries) if isinstance(entries, list | tuple | str) else 0
