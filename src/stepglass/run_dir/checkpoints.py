"""Finds and reads checkpoints on disk. Each is a folder that is either complete or absent.

    OUT_DIR/ckpt/step-00000500-00000a/
        model.safetensors, optim.safetensors, rank-00000.safetensors (generators), state.json,
        tokenizer.json
        MANIFEST.json               size and sha256 of every file, and its own sha256
    OUT_DIR/ckpt/step-00000600-00000b/
        model-00000-of-00002.safetensors, model-00001-of-00002.safetensors, optim-... and the others
    OUT_DIR/best.json               the checkpoint with the lowest validation loss

The hex digits at the end of the name count the saves of a run directory. They show which of two
checkpoints of the same step is newer. `commit.py` writes checkpoints. This module reads bytes and
needs no torch.

The second checkpoint is one in shards: each of several processes has written its rows of every
tensor. Its schema is 3, so that versions which cannot read it say so. All others have schema 2.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepglass import json_files, units
from stepglass.errors import CheckpointError, os_reason
from stepglass.files import read_regular

SCHEMA = 2
FILES_OF = {  # by schema: with the first, the tokenizer was only in the run directory
    1: ("model.safetensors", "optim.safetensors", "rank-00000.safetensors", "state.json"),
    2: (
        "model.safetensors",
        "optim.safetensors",
        "rank-00000.safetensors",
        "state.json",
        "tokenizer.json",
    ),
    3: ("rank-00000.safetensors", "state.json", "tokenizer.json"),  # and the shards
}
FILES = FILES_OF[SCHEMA]
SHARDED_SCHEMA = 3
SHARD_KINDS = ("model", "optim")
SHARD = re.compile(rf"({'|'.join(SHARD_KINDS)})-\d{{5,}}-of-\d{{5,}}\.safetensors")
NAME = re.compile(r"step-(\d{8,18})-([0-9a-f]{6,12})")
MAX_BEST_BYTES = 1 << 16  # of best.json


def name_of(step: int, attempt: int) -> str:
    return f"step-{step:08d}-{attempt:06x}"


def parse_name(name: str) -> tuple[int, int] | None:
    """Step and attempt, or None if this is not exactly a name that `name_of` makes."""
    match = NAME.fullmatch(name)
    if match is None:
        return None
    found = int(match[1]), int(match[2], 16)
    return found if name_of(*found) == name else None


def shard_name(kind: str, number: int, of: int) -> str:
    """The file with the rows that one of several processes holds."""
    return f"{kind}-{number:05d}-of-{of:05d}.safetensors"


def step_of(path: Path) -> int:
    """The step in a checkpoint's name."""
    found = parse_name(path.name)
    assert found is not None, f"{path} is not a checkpoint's name"
    return found[0]


def hash_of_json(body: dict[str, Any]) -> str:
    """The sha256 of a JSON object. It does not depend on how the file is indented."""
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def committed(run_dir: Path) -> list[Path]:
    """Committed checkpoints, newest first: sorted by step, then by the order of saving. File times
    are not used."""
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
    """The contents of best.json, or None if it does not exist. Raises CheckpointError if it is
    damaged."""
    path = run_dir / "best.json"
    try:
        return parse_best(read_regular(path, MAX_BEST_BYTES))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {os_reason(error)}") from error
    except ValueError as error:
        raise CheckpointError(f"{path}: damaged: {error}") from error


def best_path(run_dir: Path) -> Path | None:
    """The checkpoint that best.json points at, or None if it does not exist. Raises CheckpointError
    if best.json is damaged."""
    found = best(run_dir)
    path = run_dir / "ckpt" / found.name if found else None
    return path if path is not None and path.is_dir() else None


def parse_best(data: bytes) -> Best:
    """Parse best.json. Raises ValueError. The first versions wrote no sha256."""
    stored = json_files.parse_json(data)
    if not isinstance(stored, dict) or not {"dir", "val_loss"} <= stored.keys():
        raise ValueError("expected a checkpoint's name and its validation loss")
    body = {key: value for key, value in stored.items() if key != "sha256"}
    if set(body) != {"dir", "val_loss"} or stored.get("sha256", hash_of_json(body)) != hash_of_json(
        body
    ):
        raise ValueError("its sha256 is not that of what it says")
    name, val_loss = body["dir"], body["val_loss"]
    if not isinstance(name, str) or parse_name(name) is None or type(val_loss) is not float:
        raise ValueError("expected a checkpoint's name and its validation loss")
    return Best(name, val_loss)


def read_checkpoint(path: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The manifest and the bytes of every file, checked. Of shards, all bytes are checked, but none
    are kept: together, they may need more memory than there is. Raises CheckpointError."""
    manifest = read_manifest(path / "MANIFEST.json")
    contents = {}
    for name, entry in manifest["files"].items():
        if SHARD.fullmatch(name):
            _verify_file(path / name, entry)
        else:
            contents[name] = _read_file(path / name, entry)
    return manifest, contents


def shard_paths(path: Path, manifest: dict[str, Any]) -> list[list[Path]]:
    """The files with the weights and those with the optimizer's state, each in the order of the
    processes that wrote them. The lists are empty if the checkpoint is not in shards."""
    of = manifest.get("shards", 0)
    return [[path / shard_name(kind, number, of) for number in range(of)] for kind in SHARD_KINDS]


def _read_file(path: Path, entry: dict[str, Any]) -> bytes:
    with _path_in_errors(path):
        _check_size(path, entry)
        data = read_regular(path, entry["bytes"])
    if hashlib.sha256(data).hexdigest() != entry["sha256"]:
        raise _damaged(path)
    return data


def settings_of_newest(run_dir: Path) -> tuple[Path, dict[str, Any]] | None:
    """The settings in the newest readable checkpoint, and the file that has them."""
    for file, state in _states(run_dir):
        if isinstance(state.get("config"), dict):
            return file, state["config"]
    return None


def vocabulary_of_newest(run_dir: Path) -> int | None:
    """The number of tokens in the table of the newest readable model."""
    for _, state in _states(run_dir):
        shape = state.get("model_config")
        found = shape.get("vocab_size") if isinstance(shape, dict) else None
        if type(found) is int and found > 0:
            return found
    return None


def _states(run_dir: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The readable state.json of each checkpoint, the newest first."""
    for path in committed(run_dir):
        try:
            manifest = read_manifest(path / "MANIFEST.json")
            file = path / "state.json"
            state = json_files.parse_json(_read_file(file, manifest["files"]["state.json"]))
        except (CheckpointError, ValueError, KeyError, TypeError):
            continue
        if isinstance(state, dict):
            yield file, state


def verify(path: Path) -> int:
    """Check all bytes of a checkpoint with little memory, and return its size. Raises
    CheckpointError."""
    manifest = read_manifest(path / "MANIFEST.json")
    for name, entry in manifest["files"].items():
        _verify_file(path / name, entry)
    return _total_bytes(manifest)


def _verify_file(path: Path, entry: dict[str, Any]) -> None:
    with _path_in_errors(path):
        _check_size(path, entry)
        with open(path, "rb", buffering=0) as file:
            digest = hashlib.file_digest(file, "sha256")
    if digest.hexdigest() != entry["sha256"]:
        raise _damaged(path)


def checkpoint_bytes(path: Path) -> int:
    """The size of a checkpoint. Checks only that every file exists and has the right size. Raises
    CheckpointError."""
    manifest = read_manifest(path / "MANIFEST.json")
    for name, entry in manifest["files"].items():
        with _path_in_errors(path / name):
            _check_size(path / name, entry)
    return _total_bytes(manifest)


def _total_bytes(manifest: dict[str, Any]) -> int:
    return sum(entry["bytes"] for entry in manifest["files"].values())


def read_manifest(path: Path) -> dict[str, Any]:
    """Read a manifest, and check that it is valid and belongs to the folder it is in."""
    try:
        manifest = json_files.read_json(path, max_bytes=1 << 24)
        schema = manifest["schema"]
        if type(schema) is not int or schema not in FILES_OF:
            raise CheckpointError(
                f"{path}: expected schema {SHARDED_SCHEMA} or less, found {units.shown(schema)}: "
                "another version's"
            )
        body = {key: value for key, value in manifest.items() if key != "manifest_sha256"}
        if manifest["manifest_sha256"] != hash_of_json(body):
            raise ValueError("its own sha256 does not match")
        entries = manifest["files"]
        if set(entries) != _expected_files(manifest) or type(manifest["step"]) is not int:
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


def _expected_files(manifest: dict[str, Any]) -> set[str]:
    files, of = set(FILES_OF[manifest["schema"]]), manifest.get("shards", 0)
    is_sharded = manifest["schema"] == SHARDED_SCHEMA
    if is_sharded != ("shards" in manifest) or is_sharded != (type(of) is int and of > 0):
        raise ValueError("it does not say how many shards there are")
    if of > len(manifest["files"]):
        raise ValueError(f"it lists fewer files than {of} shards have")
    return files | {shard_name(kind, number, of) for kind in SHARD_KINDS for number in range(of)}


def _check_size(path: Path, entry: dict[str, Any]) -> None:
    found = path.lstat().st_size
    if not path.is_file() or path.is_symlink():
        raise ValueError("not a regular file")
    if found != entry["bytes"]:
        raise CheckpointError(f"{path}: expected {entry['bytes']} bytes, found {found}")


@contextmanager
def _path_in_errors(path: Path) -> Iterator[None]:
    """Turn OSError and ValueError into a CheckpointError that names the path."""
    try:
        yield
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {os_reason(error)}") from error
    except ValueError as error:
        raise CheckpointError(f"{path}: cannot be read: {error}") from error


def _damaged(path: Path) -> CheckpointError:
    return CheckpointError(f"{path}: its sha256 is not the manifest's: the file is damaged")
