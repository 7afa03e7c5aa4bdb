"""Disks that record, fail and die, in the place of the real one; and what a power cut leaves of
them."""

import itertools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stepglass.files import FileOps
from stepglass.files import Folder as OpenFolder

CHANGES = ("mkdir", "create", "allocate", "write", "fsync", "close", "rename",
           "fsync_directory", "unlink", "rmdir")  # fmt: skip
SYNCS = ("fsync", "fsync_directory")


class Killed(BaseException):
    """The process is gone: nothing after this line happens."""


class HookedDisk(FileOps):
    """The real disk; `before(n, name, args)` is called ahead of the n-th call that changes it and
    may raise, sleep, or return a number of bytes to write instead of all."""

    def __init__(self, before: Callable[[int, str, tuple[Any, ...]], int | None]) -> None:
        self._before = before
        self.num_calls = 0

    def __getattribute__(self, name: str) -> Any:
        real = super().__getattribute__(name)
        if name not in CHANGES:
            return real

        def call(*args: Any) -> Any:
            self.num_calls += 1
            limit = self._before(self.num_calls - 1, name, args)
            if name == "write" and limit is not None:
                return real(args[0], args[1][:limit])
            return real(*args)

        return call


def failing(at: int, error: OSError) -> HookedDisk:
    """Fails once, at the n-th call."""

    def before(n: int, name: str, args: tuple[Any, ...]) -> None:
        if n == at:
            raise error

    return HookedDisk(before)


def dying(at: int) -> HookedDisk:
    """Dies at the n-th call, in the middle of it if it is a write, and stays dead."""

    def before(n: int, name: str, args: tuple[Any, ...]) -> None:
        if n == at and name == "write":
            os.write(args[0], args[1][: len(args[1]) // 2])
        if n >= at:
            raise Killed

    return HookedDisk(before)


# -- what a power cut leaves --------------------------------------------------------------------


@dataclass
class File:
    """A file: what was written, and what the disk is known to have."""

    data: bytearray = field(default_factory=bytearray)
    end: int = 0
    durable: bytes = b""

    def survivors(self) -> list[bytes]:
        """What may be found after a power cut: what was synced, or any of what came after."""
        data = bytes(self.data)
        if data == self.durable:
            return [data]
        return [self.durable, bytes(len(data)), data[: len(data) // 2], data]


@dataclass
class Folder:
    """A folder: names the disk is known to have, and changes it may or may not have yet."""

    durable: dict[str, "File | Folder"] = field(default_factory=dict)
    pending: list[tuple[str, str, Any]] = field(default_factory=list)

    def entries(self, chosen: tuple[int, ...]) -> "dict[str, File | Folder]":
        names = dict(self.durable)
        for index in chosen:
            what, name, item = self.pending[index]
            if what == "link":
                names[name] = item
            elif what == "unlink":
                names.pop(name, None)
            elif name in names:  # rename
                names[item] = names.pop(name)
        return names

    def choices(self) -> "list[dict[str, File | Folder]]":
        """Every prefix of the pending changes, and every one of them alone: order is not kept."""
        count = len(self.pending)
        chosen = [*(tuple(range(n)) for n in range(count + 1)), *((n,) for n in range(count))]
        found = {}
        for entries in map(self.entries, chosen):
            found.setdefault(frozenset((name, id(item)) for name, item in entries.items()), entries)
        return list(found.values())


class Recorder(HookedDisk):
    """The real disk, with every call written down."""

    def __init__(self, root: Path) -> None:
        super().__init__(self._note)
        self._root = root
        self._names: dict[int, Path] = {}
        self.log: list[tuple[str, Any]] = []

    def create(self, folder: OpenFolder, name: str) -> int:
        fd = super().create(folder, name)
        self._names[fd] = folder.path / name
        return fd

    def promise(self, what: Any) -> None:
        """Something was reported from here on: it must survive."""
        self.log.append(("promise", what))

    def _note(self, n: int, name: str, args: tuple[Any, ...]) -> None:
        if name in ("allocate", "write", "fsync", "close"):
            path, rest = self._names[args[0]], args[1:]
            rest = tuple(bytes(x) if isinstance(x, memoryview) else x for x in rest)
            args = (path, *rest)
        elif name == "fsync_directory":
            args = (args[0].path,)
        else:
            args = tuple(args[0].path / entry for entry in args[1:])
        self.log.append(
            (name, tuple(x.relative_to(self._root) if isinstance(x, Path) else x for x in args))
        )


def syncs(log: list[tuple[str, Any]]) -> list[int]:
    """Where the syncs stand in a list of calls."""
    return [index for index, (name, _) in enumerate(log) if name in SYNCS]


def replay(log: list[tuple[str, Any]]) -> tuple[Folder, list[File], list[Any]]:
    """The disk after these calls: its root, all files, and what was promised."""
    root = Folder()
    live: dict[Path, Any] = {Path("."): root}
    files, promises = [], []
    for name, args in log:
        if name == "promise":
            promises.append(args)
            continue
        path = args[0]
        if name in ("mkdir", "create"):
            item: Any = Folder() if name == "mkdir" else File()
            files += [item] if name == "create" else []
            live[path] = item
            live[path.parent].pending.append(("link", path.name, item))
        elif name == "allocate":
            live[path].data = bytearray(args[1])
        elif name == "write":
            file = live[path]
            file.data[file.end : file.end + len(args[1])] = args[1]
            file.end += len(args[1])
        elif name == "fsync":
            live[path].durable = bytes(live[path].data)
        elif name == "fsync_directory":
            folder = live[path]
            folder.durable = folder.entries(tuple(range(len(folder.pending))))
            folder.pending = []
        elif name == "rename":
            new = args[1]
            live[path.parent].pending.append(("rename", path.name, new.name))
            for old in [p for p in live if p == path or path in p.parents]:
                live[new / old.relative_to(path)] = live.pop(old)
        elif name in ("unlink", "rmdir"):
            live[path.parent].pending.append(("unlink", path.name, None))
            del live[path]
    return root, files, promises


Tree = dict[str, bytes | None]  # path -> content; None is a folder


def after_power_loss(log: list[tuple[str, Any]]) -> Iterator[tuple[Tree, list[Any]]]:
    """Every state a disk may be in after these calls and a power cut."""
    root, files, promises = replay(log)
    is_torn = any(len(file.survivors()) > 1 for file in files)
    for mode in range(4 if is_torn else 1):
        for tree in _trees(root, mode):
            yield tree, promises


def _trees(folder: Folder, mode: int, prefix: str = "") -> Iterator[Tree]:
    for entries in folder.choices():
        parts: list[list[Tree]] = []
        for name, item in entries.items():
            if isinstance(item, Folder):
                inside = _trees(item, mode, f"{prefix}{name}/")
                parts.append([{prefix + name: None, **tree} for tree in inside])
            else:
                survivors = item.survivors()
                parts.append([{prefix + name: survivors[min(mode, len(survivors) - 1)]}])
        for chosen in itertools.product(*parts):
            yield {name: content for part in chosen for name, content in part.items()}


def build(tree: Tree, root: Path) -> None:
    """Put a state on a real disk."""
    root.mkdir(parents=True)
    for name, content in sorted(tree.items()):
        if content is None:
            (root / name).mkdir()
        else:
            (root / name).write_bytes(content)
