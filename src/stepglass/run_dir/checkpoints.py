"""Checkpoints on disk: a new folder for each, complete or absent.

    OUT_DIR/ckpt/step-00000500-00000a/
        model.safetensors, optim.safetensors, rank-00000.safetensors (generators), state.json,
        tokenizer.json
        MANIFEST.json               every file's size and sha256, and its own
    OUT_DIR/best.json               which of them had the lowest validation loss

A save writes into `.tmp-...`, waits until the disk has every file and the folder's names, and
renames it: the final name is the commit. No folder is ever written to again. The last hex digits
count the saves of a run directory, so of two checkpoints of one step the later one is known.

Whatever else lies in `ckpt` is somebody else's: only a folder (not a symlink) whose name is one
that this module writes, with a manifest in it, is ever set aside or deleted.

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

from stepglass import json_files, units
from stepglass.errors import CheckpointError, os_reason
from stepglass.files import FileOps, Folder, remove_tree, replace_file, write_new_file

SCHEMA = 2
FILES_OF = {  # by schema: the first had no tokenizer, which was kept beside the checkpoints
    1: ("model.safetensors", "optim.safetensors", "rank-00000.safetensors", "state.json"),
    2: (
        "model.safetensors",
        "optim.safetensors",
        "rank-00000.safetensors",
        "state.json",
        "tokenizer.json",
    ),
}
FILES = FILES_OF[SCHEMA]
NAME = re.compile(r"step-(\d{8,18})-([0-9a-f]{6,12})")
SPOILT = "nan-"
# Half-written and half-deleted folders, which recovery never looks at; the first versions put the
# number of their process at the end of a half-written one.
LEFTOVER = re.compile(r"(\.tmp|\.trash)-(step-\d{8,18}-[0-9a-f]+)")
MAX_BEST = 1 << 16
PREFIX = re.compile(rf"^(\.tmp-|\.trash-|{SPOILT})")
RESERVE = 64 << 20  # bytes that a save leaves free, but for the last one of a run


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


# -- names --------------------------------------------------------------------------------------


def name_of(step: int, attempt: int) -> str:
    return f"step-{step:08d}-{attempt:06x}"


def parse_name(name: str) -> tuple[int, int] | None:
    """Step and attempt, if this is a name exactly as this module writes it."""
    match = NAME.fullmatch(name)
    if match is None:
        return None
    found = int(match[1]), int(match[2], 16)
    return found if name_of(*found) == name else None


def step_of(path: Path) -> int:
    """The step in a checkpoint's name."""
    found = parse_name(path.name)
    assert found is not None, f"{path} is not a checkpoint's name"
    return found[0]


# -- writing ------------------------------------------------------------------------------------


def commit(
    ops: FileOps,
    run: Folder,
    step: int,
    files: Mapping[str, Contents],
    reserve: int = RESERVE,
) -> str:
    """Write a checkpoint, and return its name once a power cut can no longer take it away.

    Raises OSError, or CheckpointError for a disk that would not do; nothing is left behind.
    """
    with _open_folder(ops, run) as folder:
        needed = sum(contents.num_bytes for contents in files.values())
        _ensure_space(ops, run, needed, reserve)
        final = name_of(step, _next_attempt(folder))
        temporary = f".tmp-{final}"
        try:
            ops.mkdir(folder, temporary)
            with folder.sub(temporary) as inside:
                entries = {}
                for name, contents in files.items():
                    digest = write_new_file(ops, inside, name, contents.num_bytes, contents.parts)
                    entries[name] = {"bytes": contents.num_bytes, "sha256": digest}
                manifest = _manifest(step, final, entries)
                write_new_file(ops, inside, "MANIFEST.json", len(manifest), [manifest])
                ops.fsync_directory(inside)
            ops.rename(folder, temporary, final)
        except Exception:
            _discard(ops, folder, temporary)
            raise
        ops.fsync_directory(folder)
    return final


def _open_folder(ops: FileOps, run: Folder) -> Folder:
    """`ckpt`, made if it is missing."""
    if run.status("ckpt") is None:
        ops.mkdir(run, "ckpt")
        try:
            ops.fsync_directory(run)
        except OSError:
            ops.rmdir(run, "ckpt")  # the next save must not take it for durable
            raise
    try:
        return run.sub("ckpt")
    except OSError as error:
        raise CheckpointError(
            f"{run.path / 'ckpt'}: expected a folder of ours, found something else there"
        ) from error


def _ensure_space(ops: FileOps, run: Folder, needed: int, reserve: int) -> None:
    wanted = needed + (needed // 10 + reserve if reserve else 0)
    free = ops.free_bytes(run)
    if free is not None and free < wanted:
        sweep(ops, run)  # leftovers are the first to go
        free = ops.free_bytes(run)
    if free is not None and free < wanted:
        raise OSError(
            errno.ENOSPC, f"expected {units.size(wanted)} of free space, found {units.size(free)}"
        )


def _next_attempt(folder: Folder) -> int:
    """One more than any save of ours had, and a number that no name ends in: whatever else is
    called like a checkpoint must not hide the ones that are saved from now on."""
    entries = [(name, parse_name(PREFIX.sub("", name))) for name in folder.names()]
    attempts = {name: parsed[1] for name, parsed in entries if parsed is not None}
    ours = (attempt for name, attempt in attempts.items() if _has_manifest(folder, name))
    attempt = 1 + max(ours, default=0)
    while attempt in attempts.values():
        attempt += 1
    return attempt


def _has_manifest(folder: Folder, name: str) -> bool:
    try:
        with folder.sub(name) as inside:
            return inside.is_file("MANIFEST.json")
    except OSError:  # a symlink, a file, or not ours to read
        return False


def _manifest(step: int, name: str, entries: dict[str, dict[str, Any]]) -> bytes:
    body = {
        "schema": SCHEMA,
        "step": step,
        "attempt": name.rpartition("-")[2],
        "created": int(time.time()),
        "files": entries,
    }
    return json_files.json_bytes({**body, "manifest_sha256": _own_hash(body)})


def _own_hash(body: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def _discard(ops: FileOps, folder: Folder, name: str) -> None:
    try:
        if folder.is_folder(name):
            remove_tree(ops, folder, name)
    except OSError:
        pass  # the next sweep tries again


def mark_best(ops: FileOps, run: Folder, name: str, val_loss: float) -> None:
    """Point best.json at a checkpoint; readers see the old pointer or the new one."""
    best = {"dir": name, "val_loss": val_loss}
    replace_file(ops, run, "best.json", json_files.json_bytes({**best, "sha256": _own_hash(best)}))


def prune(ops: FileOps, run: Folder, keep: Retention, verified: str | None = None) -> None:
    """Set aside what need not be kept: all but the last ones saved, the best, the pinned, and the
    newest that was read and found whole. `sweep` deletes it."""
    try:
        best = _read_best(run.read("best.json", MAX_BEST))
    except FileNotFoundError:
        best = None
    except (OSError, ValueError):
        return  # which one is the best cannot be told at the moment
    spared = {best.name if best else None, verified}
    with run.sub("ckpt") as folder:
        ours = [parsed for parsed in map(parse_name, folder.names()) if parsed is not None]
        ours = [parsed for parsed in ours if _has_manifest(folder, name_of(*parsed))]
        by_saving = sorted(ours, key=lambda parsed: parsed[1], reverse=True)
        num_aside = 0
        for step, attempt in by_saving[keep.last :]:
            name = name_of(step, attempt)
            if name in spared or (keep.every and step % keep.every == 0):
                continue
            try:
                ops.rename(folder, name, f".trash-{name}")
                num_aside += 1
            except OSError:
                continue
        if num_aside:
            # First the names: a folder that lost a file must not come back under its final name.
            ops.fsync_directory(folder)


def disown(ops: FileOps, run: Folder, name: str) -> str:
    """Take a checkpoint out of those a run goes on from, and keep it: it holds a broken model."""
    with run.sub("ckpt") as folder:
        ops.rename(folder, name, SPOILT + name)
        ops.fsync_directory(folder)
    return SPOILT + name


def sweep(ops: FileOps, run: Folder, should_stop: Callable[[], bool] = lambda: False) -> None:
    """Delete what was set aside, and what a killed run left half-written. Call it with the run
    locked and no save under way.

    Two go in any case: saves that follow each other closely would otherwise pile them up.
    """
    try:
        folder = run.sub("ckpt")
    except OSError:
        return
    with folder:
        leftovers = [name for name in folder.names() if LEFTOVER.fullmatch(name)]
        for index, name in enumerate(name for name in leftovers if folder.is_folder(name)):
            if index >= 2 and should_stop():
                return
            _discard(ops, folder, name)


# -- reading ------------------------------------------------------------------------------------


def committed(run_dir: Path) -> list[Path]:
    """Committed checkpoints, newest first: by step, then order of saving, never by file times."""
    folder = run_dir / "ckpt"
    if not folder.is_dir():
        return []
    found = sorted(filter(None, map(parse_name, os.listdir(folder))), reverse=True)
    paths = [folder / name_of(*parsed) for parsed in found]
    return [path for path in paths if path.is_dir()]


@dataclass(frozen=True)
class Best:
    """The checkpoint with the lowest validation loss."""

    name: str
    val_loss: float


def best(run_dir: Path) -> Best | None:
    """What best.json says, None if there is none. Raises CheckpointError if it is damaged."""
    path = run_dir / "best.json"
    try:
        return _read_best(json_files.read_regular(path, MAX_BEST))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {os_reason(error)}") from error
    except ValueError as error:
        raise CheckpointError(f"{path}: damaged: {error}") from error


def best_path(run_dir: Path) -> Path | None:
    """The checkpoint best.json points at, if it is there. Raises CheckpointError if best.json is
    damaged."""
    found = best(run_dir)
    path = run_dir / "ckpt" / found.name if found else None
    return path if path is not None and path.is_dir() else None


def _read_best(data: bytes) -> Best:
    """Raises ValueError. The first versions wrote no sha256."""
    stored = json_files.parse_json(data)
    if not isinstance(stored, dict) or not {"dir", "val_loss"} <= stored.keys():
        raise ValueError("expected a checkpoint's name and its validation loss")
    body = {key: value for key, value in stored.items() if key != "sha256"}
    if set(body) != {"dir", "val_loss"} or stored.get("sha256", _own_hash(body)) != _own_hash(body):
        raise ValueError("its sha256 is not that of what it says")
    name, val_loss = body["dir"], body["val_loss"]
    if not isinstance(name, str) or parse_name(name) is None or type(val_loss) is not float:
        raise ValueError("expected a checkpoint's name and its validation loss")
    return Best(name, val_loss)


def read(path: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The manifest and every file, all bytes checked. Raises CheckpointError."""
    manifest = read_manifest(path / "MANIFEST.json")
    return manifest, {
        name: _read_file(path / name, entry) for name, entry in manifest["files"].items()
    }


def _read_file(path: Path, entry: dict[str, Any]) -> bytes:
    with _naming(path):
        _check_size(path, entry)
        data = json_files.read_regular(path, entry["bytes"])
    if hashlib.sha256(data).hexdigest() != entry["sha256"]:
        raise _damaged(path)
    return data


def settings_of_newest(run_dir: Path) -> tuple[Path, dict[str, Any]] | None:
    """The settings that the newest checkpoint was made with, and the file they are from."""
    for path in committed(run_dir):
        try:
            manifest = read_manifest(path / "MANIFEST.json")
            file = path / "state.json"
            state = json_files.parse_json(_read_file(file, manifest["files"]["state.json"]))
            if isinstance(state["config"], dict):
                return file, state["config"]
        except (CheckpointError, ValueError, KeyError, TypeError):
            continue
    return None


def verify(path: Path) -> int:
    """Read a checkpoint, a piece at a time, and return its size. Raises CheckpointError."""
    manifest = read_manifest(path / "MANIFEST.json")
    for name, entry in manifest["files"].items():
        with _naming(path / name):
            _check_size(path / name, entry)
            with open(path / name, "rb", buffering=0) as file:
                digest = hashlib.file_digest(file, "sha256")
        if digest.hexdigest() != entry["sha256"]:
            raise _damaged(path / name)
    return _total_bytes(manifest)


def size(path: Path) -> int:
    """The size of a checkpoint whose files are all there, their bytes not looked at. Raises
    CheckpointError."""
    manifest = read_manifest(path / "MANIFEST.json")
    for name, entry in manifest["files"].items():
        with _naming(path / name):
            _check_size(path / name, entry)
    return _total_bytes(manifest)


def _total_bytes(manifest: dict[str, Any]) -> int:
    return sum(entry["bytes"] for entry in manifest["files"].values())


def read_manifest(path: Path) -> dict[str, Any]:
    """A manifest that is whole and belongs to the folder it lies in."""
    try:
        manifest = json_files.read_json(path, max_bytes=1 << 24)
        schema = manifest["schema"]
        if type(schema) is not int or schema not in FILES_OF:
            raise CheckpointError(
                f"{path}: expected schema {SCHEMA}, found {units.shown(schema)}: another version's"
            )
        body = {key: value for key, value in manifest.items() if key != "manifest_sha256"}
        if manifest["manifest_sha256"] != _own_hash(body):
            raise ValueError("its own sha256 does not match")
        entries = manifest["files"]
        if set(entries) != set(FILES_OF[schema]) or type(manifest["step"]) is not int:
            raise ValueError("it does not list a checkpoint's files")
        for entry in entries.values():
            if type(entry["bytes"]) is not int or entry["bytes"] < 0:
                raise ValueError("an entry has no size")
            if not isinstance(entry["sha256"], str):
                raise ValueError("an entry has no hash")
        said = manifest["step"], int(manifest["attempt"], 16)
        if parse_name(path.parent.name) not in (None, said):
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
