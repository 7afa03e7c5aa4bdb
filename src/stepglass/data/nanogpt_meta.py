"""nanoGPT's meta.pkl, read without trusting it.

A pickle is a program. Python's own machine for it makes what the program asks for: gigabytes of
zeros for a number in the file, a hash of a tuple that holds itself a million times. This reader has
a machine of its own, which knows the few instructions that write down dicts, lists, texts and
numbers, and stops at any other. What it makes is never larger than the file, but for a constant
factor, and nothing of it is ever hashed.
"""

import pickletools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepglass.errors import DataError, os_reason
from stepglass.files import read_regular
from stepglass.units import shown

MAX_BYTES = 16_000_000
MAX_INSTRUCTIONS = 1_000_000  # a table of 65,536 words both ways has a third of that
MAX_PROTOCOL = 5
MAX_VOCAB = 1 << 16  # its tokens have 16 bits


class PickledDict(list[Any]):
    """A dict as a pickle writes it: key, value, key, value. No foreign key is hashed: nested tuples
    can be made to take for ever, and numbers can be chosen to collide."""

    def pairs(self) -> list[tuple[Any, Any]]:
        return list(zip(self[::2], self[1::2], strict=True))

    def get(self, name: str) -> Any:
        """The last value of a key that is a text, or None."""
        found = (value for key, value in reversed(self.pairs()) if type(key) is str and key == name)
        return next(found, None)


class _Machine:
    """The instructions of a pickle that need nothing but a stack and a memory for references."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self._marks: list[int] = []
        self._memo: dict[int, Any] = {}

    def run(self, name: str, value: Any) -> None:
        """Do one instruction; `value` is its argument in the file."""
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
        """Join everything above a place on the stack into one object."""
        items = self._above(start)
        _refuse_half_a_pair(kind, items)
        self.stack.append(kind(items))

    def _add(self, kind: type[Any], mark: int | None) -> None:
        """Add everything above a mark, or one item or pair, to the object beneath."""
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


# What pickle writes for dicts, lists, tuples, sets, texts, bytes and numbers, in protocols 0 to 5.
# Sets are read as lists: there is no use for them, and they would be hashed.
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
    """What a pickle holds, with a `PickledDict` for every dict. Raises ValueError, IndexError or
    KeyError."""
    machine = _Machine()
    # Python's own disassembler takes each argument from the bytes there are, and stops where a
    # length goes beyond them.
    for count, (instruction, value, _) in enumerate(pickletools.genops(data)):
        if count == MAX_INSTRUCTIONS:
            raise ValueError(f"it has more than {MAX_INSTRUCTIONS} instructions")
        machine.run(instruction.name, value)
    return machine.stack.pop()


@dataclass(frozen=True)
class NanoGPTMeta:
    """What a meta.pkl says: the rows a model needs, and the texts of its tokens with their ids.

    nanoGPT's trainer looks at `vocab_size` alone, so that people have files without a table of
    characters, or with one of words, notes, moves or bytes.
    """

    vocab_size: int
    table: dict[str, int]
    num_left_out: int  # entries without a text, or without a valid id of their own


def read_meta_pkl(path: Path) -> NanoGPTMeta:
    """All that is usable in a meta.pkl. A file without a good `vocab_size` is refused."""
    try:
        data = read_regular(path, MAX_BYTES)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {os_reason(error)}") from error
    except ValueError as error:
        raise DataError(f"{path}: cannot be read: {error}") from error
    return parse_meta_pkl(data, str(path))


def parse_meta_pkl(data: bytes, place: str) -> NanoGPTMeta:
    """What the bytes of a meta.pkl say."""
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
    """An error's text, cut to the length of a message: it may quote much of the file."""
    if isinstance(error, UnicodeDecodeError):
        return f"bytes that are no text: {error.reason}"
    text = str(error) if isinstance(error, ValueError) else "a reference to nothing"
    return text if len(text) <= 200 else text[:197] + "..."


def _num_entries(entries: Any) -> int:
    if isinstance(entries, PickledDict):
        return len(entries) // 2
    return len(entries) if isinstance(entries, list | tuple | str) else 0
