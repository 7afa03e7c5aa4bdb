"""Checkpoints on disk: a new folder for each, complete or absent.

    OUT_DIR/ckpt/step-00000500-00000a/
        model.safetensors, optim.safetensors, rank-00000.safetensors (generators), state.json
        MANIFEST.json               every file's size and sha256, and its own
    OUT_DIR/best.json               which of them had the lowest validation loss

A save writes into `.tmp-...`, waits until the disk has every file and the folder's names, and
renames it: the final name is the commit. No folder is ever written to again. The six hex digits
count the saves of a run directory, so of two checkpoints of one step the later one is known.

Bytes only: what is in the files is checkpoint.py's affair, so this module needs no torch and the
crash simulator can try it out thousands of times. It does not decide when to save.
"""

import errno
import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepglass import atomic, units
from stepglass.errors import CheckpointError, os_reason
from stepglass.fileops import FileOps, remove_tree, write_new_file

SCHEMA = 1
NAME = re.compile(r"step-(\d{8,})-([0-9a-f]{6})")
FILES = ("model.safetensors", "optim.safetensors", "rank-00000.safetensors", "state.json")
SPOILT = "nan-"
ASIDE = (".tmp-", ".trash-")  # half-written and half-deleted folders: recovery never looks


@dataclass(frozen=True)
class Contents:
    """A file to be: its size, and its bytes in order."""

    num_bytes: int
    parts: Iterable[bytes | memoryview]

    @classmethod
    def of(cls, data: bytes) -> "Contents":
        return cls(len(data), [data])


@dataclass(frozen=True)
class Retention:
    """What is never deleted: the last few, the best, and every `every`-th step (0: none)."""

    last: int = 2
    every: int = 0


# -- writing ------------------------------------------------------------------------------------


def commit(ops: FileOps, run_dir: Path, step: int, files: Mapping[str, Contents]) -> Path:
    """Write a checkpoint, and return its folder once a power cut can no longer take it away.

    Raises OSError, or CheckpointError for a disk that would not do; nothing is left behind.
    """
    folder = _make_folder(ops, run_dir)
    needed = sum(contents.num_bytes for contents in files.values())
    _ensure_space(ops, run_dir, needed)
    temporary = folder / f".tmp-step-{step:08d}-{os.getpid()}"
    final = folder / f"step-{step:08d}-{_next_attempt(folder):06x}"
    if temporary.exists():
        remove_tree(ops, temporary)
    try:
        ops.mkdir(temporary)
        entries = {}
        for name, contents in files.items():
            digest = write_new_file(ops, temporary / name, contents.num_bytes, contents.parts)
            entries[name] = {"bytes": contents.num_bytes, "sha256": digest}
        manifest = _manifest(step, final.name, entries)
        write_new_file(ops, temporary / "MANIFEST.json", len(manifest), [manifest])
        ops.fsync_directory(temporary)
        ops.rename(temporary, final)
    except Exception:
        _discard(ops, temporary)
        raise
    ops.fsync_directory(folder)
    return final


def _make_folder(ops: FileOps, run_dir: Path) -> Path:
    folder = run_dir / "ckpt"
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise CheckpointError(f"{folder}: expected a folder of ours, found something else there")
    if not folder.is_dir():
        ops.mkdir(folder)
        try:
            ops.fsync_directory(run_dir)
        except OSError:
            ops.rmdir(folder)  # the next save must not take it for durable
            raise
    return folder


def _ensure_space(ops: FileOps, run_dir: Path, needed: int) -> None:
    wanted = needed + needed // 10 + (64 << 20)
    free = ops.free_bytes(run_dir)
    if free is not None and free < wanted:
        sweep(ops, run_dir)  # leftovers are the first to go
        free = ops.free_bytes(run_dir)
    if free is not None and free < wanted:
        raise OSError(
            errno.ENOSPC, f"expected {units.size(wanted)} of free space, found {units.size(free)}"
        )


def _next_attempt(folder: Path) -> int:
    names = (name.removeprefix(SPOILT) for name in os.listdir(folder))
    return 1 + max((int(match[2], 16) for match in map(NAME.fullmatch, names) if match), default=0)


def _manifest(step: int, name: str, entries: dict[str, dict[str, Any]]) -> bytes:
    body = {
        "schema": SCHEMA,
        "step": step,
        "attempt": name.rpartition("-")[2],
        "created": int(time.time()),
        "files": entries,
    }
    return atomic.json_bytes({**body, "manifest_sha256": _own_hash(body)})


def _own_hash(body: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def _discard(ops: FileOps, path: Path) -> None:
    try:
        if path.exists():
            remove_tree(ops, path)
    except OSError:
        pass  # the next sweep tries again


def mark_best(ops: FileOps, run_dir: Path, path: Path, val_loss: float) -> None:
    """Point best.json at a checkpoint; readers see the old pointer or the new one."""
    data = atomic.json_bytes({"dir": path.name, "val_loss": val_loss})
    temporary = run_dir / f".best.json.tmp-{os.getpid()}"
    temporary.unlink(missing_ok=True)
    try:
        write_new_file(ops, temporary, len(data), [data])
        ops.replace(temporary, run_dir / "best.json")
    except Exception:
        temporary.unlink(missing_ok=True)
        raise
    ops.fsync_directory(run_dir)


def prune(ops: FileOps, run_dir: Path, keep: Retention, verified: Path | None = None) -> None:
    """Set aside what need not be kept: all but the last ones saved, the best, the pinned, and the
    newest that was read and found whole. `sweep` deletes it."""
    try:
        spared = {_read_best(run_dir), verified}
    except ValueError:
        return  # which one is the best cannot be told at the moment
    by_saving = sorted(committed(run_dir), key=lambda path: path.name[-6:], reverse=True)
    trash = []
    for path in by_saving[keep.last :]:
        if path in spared or (keep.every and step_of(path) % keep.every == 0):
            continue
        aside = path.with_name(f".trash-{path.name}")
        try:
            ops.rename(path, aside)
            trash.append(aside)
        except OSError:
            continue
    if trash:
        # First the names: a folder that lost a file must not come back under its committed name.
        ops.fsync_directory(run_dir / "ckpt")


def disown(ops: FileOps, path: Path) -> Path:
    """Take a checkpoint out of those a run goes on from, and keep it: it holds a broken model."""
    aside = path.with_name(f"{SPOILT}{path.name}")
    ops.rename(path, aside)
    ops.fsync_directory(path.parent)
    return aside


def sweep(ops: FileOps, run_dir: Path, should_stop: Callable[[], bool] = lambda: False) -> None:
    """Delete what was set aside, and what a killed run left half-written. Call it with the run
    locked and no save under way."""
    folder = run_dir / "ckpt"
    if folder.is_dir() and not folder.is_symlink():
        for name in sorted(os.listdir(folder)):
            if name.startswith(ASIDE) and not should_stop():
                _discard(ops, folder / name)


# -- reading ------------------------------------------------------------------------------------


def committed(run_dir: Path) -> list[Path]:
    """Committed checkpoints, newest first: by step, then order of saving, never by file times."""
    folder = run_dir / "ckpt"
    if not folder.is_dir():
        return []
    matches = [match for match in map(NAME.fullmatch, os.listdir(folder)) if match]
    matches.sort(key=lambda match: (int(match[1]), int(match[2], 16)), reverse=True)
    return [folder / match[0] for match in matches if (folder / match[0]).is_dir()]


def step_of(path: Path) -> int:
    """The step in a checkpoint's name."""
    match = NAME.fullmatch(path.name)
    assert match is not None, f"{path} is not a checkpoint's name"
    return int(match[1])


def best_path(run_dir: Path) -> Path | None:
    """The checkpoint best.json points at, if it points at one of ours."""
    try:
        return _read_best(run_dir)
    except ValueError:
        return None


def _read_best(run_dir: Path) -> Path | None:
    """As `best_path`; raises ValueError if there is a best.json that cannot be read."""
    try:
        name = atomic.read_json(run_dir / "best.json")["dir"]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"best.json: {error}") from error
    if not isinstance(name, str) or not NAME.fullmatch(name):
        return None
    path = run_dir / "ckpt" / name
    return path if path.is_dir() else None


def read(path: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The manifest and every file, all bytes checked. Raises CheckpointError."""
    manifest = read_manifest(path / "MANIFEST.json")
    contents: dict[str, bytes] = {}
    for name in FILES:
        entry = manifest["files"][name]
        with _naming(path / name):
            _check_size(path / name, entry)
            contents[name] = atomic.read_regular(path / name, entry["bytes"])
        if hashlib.sha256(contents[name]).hexdigest() != entry["sha256"]:
            raise _damaged(path / name)
    return manifest, contents


def verify(path: Path) -> int:
    """Read a checkpoint, a piece at a time, and return its size. Raises CheckpointError."""
    manifest = read_manifest(path / "MANIFEST.json")
    for name in FILES:
        entry = manifest["files"][name]
        with _naming(path / name):
            _check_size(path / name, entry)
            with open(path / name, "rb", buffering=0) as file:
                digest = hashlib.file_digest(file, "sha256")
        if digest.hexdigest() != entry["sha256"]:
            raise _damaged(path / name)
    return sum(manifest["files"][name]["bytes"] for name in FILES)


def size(path: Path) -> int:
    """The size of a checkpoint whose files are all there, their bytes not looked at. Raises
    CheckpointError."""
    manifest = read_manifest(path / "MANIFEST.json")
    for name in FILES:
        with _naming(path / name):
            _check_size(path / name, manifest["files"][name])
    return sum(manifest["files"][name]["bytes"] for name in FILES)


def read_manifest(path: Path) -> dict[str, Any]:
    """A manifest that is whole and belongs to the folder it lies in."""
    try:
        manifest = atomic.read_json(path, max_bytes=1 << 24)
        if manifest["schema"] != SCHEMA:
            raise CheckpointError(
                f"{path}: expected schema {SCHEMA}, found {manifest['schema']!r}: another version's"
            )
        body = {key: value for key, value in manifest.items() if key != "manifest_sha256"}
        if manifest["manifest_sha256"] != _own_hash(body):
            raise ValueError("its own sha256 does not match")
        entries = manifest["files"]
        if set(entries) != set(FILES) or type(manifest["step"]) is not int:
            raise ValueError("it does not list a checkpoint's files")
        for entry in entries.values():
            if type(entry["bytes"]) is not int or not isinstance(entry["sha256"], str):
                raise ValueError("an entry has no size or hash")
        name = NAME.fullmatch(path.parent.name)
        if name is not None and (int(name[1]), name[2]) != (manifest["step"], manifest["attempt"]):
            raise ValueError("it belongs to another folder")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{path}: expected a manifest, found a problem: {error}") from error
    return dict(manifest)


def _check_size(path: Path, entry: dict[str, Any]) -> None:
    found = path.lstat().st_size
    if not path.is_file() or path.is_symlink():
        raise ValueError("not a regular file")
    if found != entry["bytes"]:
        raise CheckpointError(f"{path}: expected {entry['bytes']} bytes, found {found}")


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {os_reason(error)}") from error
    except ValueError as error:
        raise CheckpointError(f"{path}: cannot be read: {error}") from error


def _damaged(path: Path) -> CheckpointError:
    return CheckpointError(f"{path}: its sha256 is not the manifest's: the file is damaged")
