"""Checkpoints: a new folder for each, complete or absent.

    OUT_DIR/ckpt/step-00000500-00000a/
        model.safetensors, optim.safetensors, rank-00000.safetensors (generators), state.json
        MANIFEST.json               every file's size and sha256
    OUT_DIR/best.json               which of them had the lowest validation loss

A save writes into `.tmp-...`, waits until the disk has every file and the folder's names, and
renames it: the final name is the commit. No folder is ever written to again. The six hex digits
count the saves of a run directory, so of two checkpoints of one step the later one is known. A
load checks every byte against the manifest before a tensor is built, and nothing on the way can
run code: JSON and safetensors only.

This module does not decide when to save, and never deletes the best or the newest two.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from stepglass import atomic
from stepglass.errors import CheckpointError, os_reason

SCHEMA = 1
KEEP_LAST = 2
NAME = re.compile(r"step-(\d{8,})-([0-9a-f]{6})")
FILES = ("model.safetensors", "optim.safetensors", "rank-00000.safetensors", "state.json")


@dataclass(frozen=True)
class Snapshot:
    """Everything a run needs to go on exactly where it was."""

    step: int
    model: dict[str, Tensor]
    optim: dict[str, Tensor]
    rng: dict[str, Tensor]
    state: dict[str, Any]  # counters, settings, data fingerprint, environment


@dataclass(frozen=True)
class Saved:
    """A committed checkpoint."""

    path: Path
    num_bytes: int


# -- what goes in -------------------------------------------------------------------------------


def model_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers by name; a tied weight is stored once, under its first name."""
    seen: set[int] = set()
    tensors: dict[str, Tensor] = {}
    for name, tensor in model.state_dict().items():
        if tensor.data_ptr() not in seen:
            seen.add(tensor.data_ptr())
            tensors[name] = tensor.detach().cpu().contiguous()
    return tensors


def optimizer_tensors(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimizer's memory of each parameter, under the parameter's name."""
    return {
        f"{name}.{key}": value.detach().cpu().contiguous()
        for name, parameter in model.named_parameters()
        for key, value in optimizer.state.get(parameter, {}).items()
    }


def rng_tensors(device_type: str = "cpu") -> dict[str, Tensor]:
    """The state of every generator that dropout may draw from."""
    states = {"torch": torch.get_rng_state()}
    if device_type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state()
    if device_type == "mps":
        states["mps"] = torch.mps.get_rng_state()
    return states


# -- putting it back ----------------------------------------------------------------------------


def load_model(model: nn.Module, tensors: dict[str, Tensor], place: str) -> None:
    """Fill a model. Names, shapes and dtypes must be exactly the model's own."""
    expected = model_tensors(model)
    _same_names(expected, tensors, place)
    for name, tensor in expected.items():
        found = tensors[name]
        if found.shape != tensor.shape or found.dtype != tensor.dtype:
            raise CheckpointError(
                f"{place}: {name}: expected {list(tensor.shape)} {tensor.dtype}, found "
                f"{list(found.shape)} {found.dtype}"
            )
    own = model.state_dict()
    with torch.no_grad():
        for name, tensor in tensors.items():
            own[name].copy_(tensor)


def load_optimizer(
    model: nn.Module, optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor], place: str
) -> None:
    """Fill an optimizer. Hyper-parameters stay those of this run's settings."""
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    state: dict[int, dict[str, Tensor]] = {}
    fresh = optimizer.state_dict()
    index = 0
    known: set[str] = set()
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            prefix = names[id(parameter)] + "."
            mine = {
                key[len(prefix) :]: value
                for key, value in tensors.items()
                if key.rpartition(".")[0] + "." == prefix
            }
            for key, value in mine.items():
                if value.dim() and value.shape != parameter.shape:
                    raise CheckpointError(
                        f"{place}: {prefix}{key}: expected {list(parameter.shape)}, found "
                        f"{list(value.shape)}"
                    )
            known |= {prefix + key for key in mine}
            if mine:
                state[index] = mine
            index += 1
    if known != set(tensors) or (state and len(state) != index):
        raise CheckpointError(f"{place}: its optimizer state does not belong to this model")
    fresh["state"] = state
    optimizer.load_state_dict(fresh)


def load_rng(tensors: dict[str, Tensor]) -> None:
    """Restore the generators. Done last: building a model and warming up draw from them."""
    torch.set_rng_state(tensors["torch"])
    if "cuda" in tensors and torch.cuda.is_available():
        torch.cuda.set_rng_state(tensors["cuda"])
    if "mps" in tensors and torch.backends.mps.is_available():
        torch.mps.set_rng_state(tensors["mps"])


def _same_names(expected: dict[str, Tensor], found: dict[str, Tensor], place: str) -> None:
    missing, extra = sorted(expected.keys() - found.keys()), sorted(found.keys() - expected.keys())
    if missing or extra:
        what = f"{missing[0]} is missing" if missing else f"{extra[0]} is unknown"
        raise CheckpointError(f"{place}: not a checkpoint of this model: {what}")


# -- writing ------------------------------------------------------------------------------------


def save(run_dir: Path, snapshot: Snapshot) -> Saved:
    """Write and commit a checkpoint. Raises CheckpointError, with nothing left behind."""
    folder = run_dir / "ckpt"
    temporary = folder / f".tmp-step-{snapshot.step:08d}-{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(temporary, ignore_errors=True)
        final = folder / f"step-{snapshot.step:08d}-{_next_attempt(folder):06x}"
        temporary.mkdir()
        contents = {
            "model.safetensors": safetensors.torch.save(snapshot.model),
            "optim.safetensors": safetensors.torch.save(snapshot.optim),
            "rank-00000.safetensors": safetensors.torch.save(snapshot.rng),
            "state.json": atomic.json_bytes(snapshot.state),
        }
        manifest = {
            "schema": SCHEMA,
            "step": snapshot.step,
            "attempt": final.name.rpartition("-")[2],
            "files": {
                name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
                for name, data in contents.items()
            },
        }
        for name, data in contents.items():
            atomic.write_durably(temporary / name, data)
        atomic.write_durably(temporary / "MANIFEST.json", atomic.json_bytes(manifest))
        atomic.fsync_directory(temporary)
        os.rename(temporary, final)
        atomic.fsync_directory(folder)
    except OSError as error:
        shutil.rmtree(temporary, ignore_errors=True)
        raise CheckpointError(
            f"{folder}: cannot save step {snapshot.step}: {os_reason(error)}"
        ) from error
    return Saved(final, sum(len(data) for data in contents.values()))


def _next_attempt(folder: Path) -> int:
    return 1 + max(
        (int(match[2], 16) for match in map(NAME.fullmatch, os.listdir(folder)) if match), default=0
    )


def mark_best(run_dir: Path, path: Path, val_loss: float) -> None:
    """Point best.json at a checkpoint."""
    atomic.write_json(run_dir / "best.json", {"dir": path.name, "val_loss": val_loss})


def prune(run_dir: Path) -> None:
    """Delete all but the last two saved and the best. What will not go away is left alone."""
    best = best_path(run_dir)
    by_saving = sorted(committed(run_dir), key=lambda path: path.name[-6:], reverse=True)
    for path in by_saving[KEEP_LAST:]:
        if path != best:
            trash = path.with_name(f".trash-{path.name}")
            try:
                os.rename(path, trash)
            except OSError:
                continue
            shutil.rmtree(trash, ignore_errors=True)


def sweep(run_dir: Path) -> None:
    """Remove what a killed run left half-written or half-deleted. Call it with the run locked."""
    for pattern in (".tmp-*", ".trash-*"):
        for path in (run_dir / "ckpt").glob(pattern):
            shutil.rmtree(path, ignore_errors=True)


# -- reading ------------------------------------------------------------------------------------


def committed(run_dir: Path) -> list[Path]:
    """Committed checkpoints, newest first: by step, then order of saving, never by file times."""
    folder = run_dir / "ckpt"
    if not folder.is_dir():
        return []
    matches = [match for match in map(NAME.fullmatch, os.listdir(folder)) if match]
    matches.sort(key=lambda match: (int(match[1]), int(match[2], 16)), reverse=True)
    return [folder / match[0] for match in matches if (folder / match[0]).is_dir()]


def best_path(run_dir: Path) -> Path | None:
    """The checkpoint best.json points at, if it points at one of ours."""
    try:
        name = atomic.read_json(run_dir / "best.json")["dir"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if not isinstance(name, str) or not NAME.fullmatch(name):
        return None
    path = run_dir / "ckpt" / name
    return path if path.is_dir() else None


def load(path: Path) -> Snapshot:
    """Read a checkpoint, every byte checked against its manifest first."""
    manifest = _read_manifest(path / "MANIFEST.json")
    contents: dict[str, bytes] = {}
    for name in FILES:
        entry = manifest["files"][name]
        try:
            if (path / name).stat().st_size != entry["bytes"]:
                raise CheckpointError(
                    f"{path / name}: expected {entry['bytes']} bytes, found "
                    f"{(path / name).stat().st_size}"
                )
            contents[name] = atomic.read_regular(path / name, entry["bytes"])
        except OSError as error:
            raise CheckpointError(f"{path / name}: cannot be read: {os_reason(error)}") from error
        except ValueError as error:
            raise CheckpointError(f"{path / name}: cannot be read: {error}") from error
        if hashlib.sha256(contents[name]).hexdigest() != entry["sha256"]:
            raise CheckpointError(
                f"{path / name}: its sha256 is not the manifest's: the file is damaged"
            )
    try:
        model, optim, rng = (safetensors.torch.load(contents[name]) for name in FILES[:3])
        state = atomic.parse_json(contents["state.json"])
        if state["step"] != manifest["step"]:
            raise ValueError("state.json is of another step")
    except (ValueError, KeyError, TypeError, safetensors.SafetensorError) as error:
        raise CheckpointError(f"{path}: cannot be read: {error}") from error
    return Snapshot(manifest["step"], model, optim, rng, state)


def _read_manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = atomic.read_json(path, max_bytes=1 << 24)
        if manifest["schema"] != SCHEMA:
            raise CheckpointError(
                f"{path}: expected schema {SCHEMA}, found {manifest['schema']!r}: another version's"
            )
        entries = manifest["files"]
        if set(entries) != set(FILES) or type(manifest["step"]) is not int:
            raise ValueError("it does not list a checkpoint's files")
        for entry in entries.values():
            if type(entry["bytes"]) is not int or not isinstance(entry["sha256"], str):
                raise ValueError("an entry has no size or hash")
        step = NAME.fullmatch(path.parent.name)
        if step is not None and int(step[1]) != manifest["step"]:
            raise ValueError("it is of another step than its folder")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{path}: expected a manifest, found a problem: {error}") from error
    return dict(manifest)


def newest(
    run_dir: Path, on_skip: Callable[[str], None], first: Path | None = None
) -> tuple[Path, Snapshot]:
    """The newest checkpoint that is whole, or `first` if that is. Damaged ones are passed over,
    each with its reason."""
    candidates = committed(run_dir)
    for path in dict.fromkeys([*([first] if first else []), *candidates]):
        try:
            return path, load(path)
        except CheckpointError as error:
            on_skip(f"skipped {path.name}: {error}")
    found = f"{len(candidates)} damaged ones" if candidates else "none"
    raise CheckpointError(
        f"{run_dir}: expected a checkpoint, found {found}; train one with `stepglass train`"
    )
