"""Writes and deletes checkpoints. Only this module changes `OUT_DIR/ckpt`.

A save writes to a folder `.tmp-...`, waits until all files and their names are on disk, and renames
the folder. The rename is the commit. After that, the folder is never written to again. Of a
checkpoint in shards, rank 0 makes the folder and renames it, and other processes write their files
in between.

This module sets aside and deletes only folders (not symlinks) that contain a manifest and have a
name that this module writes. Everything else in `ckpt` was put there by others and is kept.

This module handles only bytes; checkpoint/tensors.py knows what they mean. So it needs no torch,
and the crash simulator can run it thousands of times. It does not decide when to save.
"""

import errno
import re
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from stepglass import json_files, units
from stepglass.errors import CheckpointError
from stepglass.files import (
    FileOps,
    Folder,
    appears_whole,
    discard,
    replace_file,
    write_new_file,
)
from stepglass.run_dir.checkpoints import (
    MAX_BEST_BYTES,
    SCHEMA,
    SHARD_KINDS,
    SHARDED_SCHEMA,
    hash_of_json,
    name_of,
    parse_best,
    parse_name,
    shard_name,
)

SPOILT = "nan-"
# Half-written and half-deleted folders, which a resumed run ignores. The first versions put the
# process id at the end of the name of a half-written folder.
LEFTOVER = re.compile(r"(\.tmp|\.trash)-(step-\d{8,18}-[0-9a-f]+)")
PREFIX = re.compile(rf"^(\.tmp-|\.trash-|{SPOILT})")
RESERVE = 64 << 20  # bytes of disk space that every save except the last leaves free


@dataclass(frozen=True)
class Contents:
    """The contents of a file to write: its size, and its bytes in order."""

    num_bytes: int
    parts: Iterable[bytes | memoryview]

    @classmethod
    def of(cls, data: bytes) -> "Contents":
        return cls(len(data), [data])


@dataclass(frozen=True)
class Retention:
    """The checkpoints that are kept: the last few, the best, and those at multiples of `every` (0:
    none)."""

    last: int = 2
    every: int = 0


Entries = dict[str, dict[str, Any]]  # file name -> its size and sha256


@dataclass(frozen=True)
class Written:
    """A checkpoint that is on disk."""

    name: str
    num_bytes: int


class OtherShards(Protocol):
    """The processes that write the other shards of one checkpoint."""

    of: int  # shards in all
    waits: bool  # True if they cannot write in the background, so that training must wait

    def begin(self, folder: Path) -> None:
        """Let them write to this folder."""

    def finish(self) -> Entries:
        """Wait until they have written their files. Raises CheckpointError if one has not."""

    def hurry(self) -> None:
        """Let them write without pauses."""

    def cancel(self) -> None:
        """Let them forget this checkpoint, or be done with it soon if they have begun."""


def write_checkpoint(
    ops: FileOps,
    run: Folder,
    step: int,
    files: Mapping[str, Contents],
    reserve: int = RESERVE,
    others: OtherShards | None = None,
) -> Written:
    """Write a checkpoint, and return its name once it would survive a power cut.

    Raises OSError, or CheckpointError if `ckpt` is not a folder or another process has not written
    its part. Then nothing is left on disk.
    """
    with _open_folder(ops, run) as folder:
        needed = sum(contents.num_bytes for contents in files.values())
        _ensure_space(ops, run, needed * (others.of if others else 1), reserve)
        final = name_of(step, _next_attempt(folder))
        temporary = f".tmp-{final}"
        with appears_whole(ops, folder, temporary, final):
            ops.mkdir(folder, temporary)
            with folder.sub(temporary) as inside:
                if others is not None:
                    others.begin((run.where() / "ckpt" / temporary).absolute())
                entries = _write_with_others(ops, inside, files, others)
                manifest = _manifest(step, final, entries, others.of if others else 0)
                write_new_file(ops, inside, "MANIFEST.json", len(manifest), [manifest])
                ops.fsync_directory(inside)
    return Written(final, sum(entry["bytes"] for entry in entries.values()))


def write_shard(ops: FileOps, temporary: Path, files: Mapping[str, Contents]) -> Entries:
    """Write this process's part of a checkpoint that rank 0 has begun. Raises OSError."""
    with (
        Folder.open(temporary.parent.parent) as run,
        run.sub(temporary.parent.name) as folder,
        folder.sub(temporary.name) as inside,
    ):
        entries = _write_files(ops, inside, files)
        ops.fsync_directory(inside)  # rank 0's sync may not cover what another machine has written
    return entries


def _write_files(ops: FileOps, inside: Folder, files: Mapping[str, Contents]) -> Entries:
    entries = {}
    for name, contents in files.items():
        digest = write_new_file(ops, inside, name, contents.num_bytes, contents.parts)
        entries[name] = {"bytes": contents.num_bytes, "sha256": digest}
    return entries


def _write_with_others(
    ops: FileOps, inside: Folder, files: Mapping[str, Contents], others: OtherShards | None
) -> Entries:
    """Write this process's files while the others write theirs. If this process cannot, the folder
    will be deleted, so nobody may be writing to it any more."""
    try:
        entries = _write_files(ops, inside, files)
    except OSError:
        if others is not None:
            others.hurry()
            with suppress(CheckpointError):
                others.finish()
        raise
    return entries if others is None else entries | _written_by_others(inside, others)


def _written_by_others(inside: Folder, others: OtherShards) -> Entries:
    """What the others say they have written. It must be here as well: the folder that they see may
    be on another disk."""
    entries = others.finish()
    for number in range(1, others.of):
        for kind in SHARD_KINDS:
            name = shard_name(kind, number, others.of)
            if name not in entries:
                raise CheckpointError(f"{inside.path / name}: rank {number} has not written it")
            expected, found = entries[name]["bytes"], inside.status(name)
            if found is None or found.st_size != expected:
                size = "none" if found is None else f"{found.st_size}"
                raise CheckpointError(
                    f"{inside.path / name}: rank {number} has written {expected} bytes, found "
                    f"{size} here; --out_dir must be on a disk that all processes see"
                )
    return entries


def _open_folder(ops: FileOps, run: Folder) -> Folder:
    """Open `ckpt`, and create it if it is missing."""
    if run.status("ckpt") is None:
        ops.mkdir(run, "ckpt")
        try:
            ops.fsync_directory(run)
        except OSError:
            ops.rmdir(run, "ckpt")  # so that the next save creates and syncs it again
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
        sweep(ops, run)  # delete leftovers first
        free = ops.free_bytes(run)
    if free is not None and free < wanted:
        raise OSError(
            errno.ENOSPC, f"expected {units.size(wanted)} of free space, found {units.size(free)}"
        )


def _next_attempt(folder: Folder) -> int:
    """An attempt number above those of all saved checkpoints that is not used in any name. A folder
    that is not ours but has a checkpoint's name is not counted for the maximum: its number could be
    so high that it would hide all later checkpoints."""
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
    except OSError:  # a symlink, a file, or no permission to read it
        return False


def _manifest(step: int, name: str, entries: Entries, shards: int) -> bytes:
    body = {
        **({"schema": SHARDED_SCHEMA, "shards": shards} if shards else {"schema": SCHEMA}),
        "step": step,
        "attempt": name.rpartition("-")[2],
        "created": int(time.time()),
        "files": entries,
    }
    return json_files.json_bytes({**body, "manifest_sha256": hash_of_json(body)})


def mark_best(ops: FileOps, run: Folder, name: str, val_loss: float) -> None:
    """Make best.json point at a checkpoint. Readers see either the old or the new best.json."""
    best = {"dir": name, "val_loss": val_loss}
    replace_file(
        ops, run, "best.json", json_files.json_bytes({**best, "sha256": hash_of_json(best)})
    )


def prune(ops: FileOps, run: Folder, keep: Retention, verified: str | None = None) -> None:
    """Set aside the checkpoints that need not be kept, for `sweep` to delete. Kept are the last
    ones saved, the best, those at multiples of `keep.every`, and `verified`, the newest that was
    read and found undamaged."""
    try:
        best = parse_best(run.read("best.json", MAX_BEST_BYTES))
    except FileNotFoundError:
        best = None
    except (OSError, ValueError):
        return  # delete nothing while the best checkpoint is unknown
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
            # Sync the new names before any file is deleted. Otherwise, after a power cut, a folder
            # with missing files could have its final name again.
            ops.fsync_directory(folder)


def mark_spoilt(ops: FileOps, run: Folder, name: str) -> str:
    """Rename a checkpoint of a broken model. It is kept, but no run resumes from it."""
    with run.sub("ckpt") as folder:
        ops.rename(folder, name, SPOILT + name)
        ops.fsync_directory(folder)
    return SPOILT + name


def sweep(ops: FileOps, run: Folder, should_stop: Callable[[], bool] = lambda: False) -> None:
    """Delete what `prune` has set aside, and what a killed run left half-written. Call this only
    while the run is locked and no save is in progress.

    At least two folders are deleted, even if `should_stop` returns True. Otherwise they would pile
    up when saves follow each other quickly.
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
            discard(ops, folder, name)
