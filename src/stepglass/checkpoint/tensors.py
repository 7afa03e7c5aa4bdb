"""Converts the tensors of a run to the bytes of a checkpoint, and back.

A save copies the live tensors to host buffers that have the layout of the files. Training can then
go on while the buffers are written to disk without another copy. A load checks every byte against
the manifest before it makes a tensor. The formats are JSON and safetensors, so loading a checkpoint
cannot run code.

The safetensors header is written by our own code, because the library's writer copies all data.
sharded.py reads a checkpoint that several processes have written.
"""

import json
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from stepglass import json_files
from stepglass.checkpoint.sharded import ShardedTensors, outlines
from stepglass.errors import CheckpointError
from stepglass.hardware.device import Device
from stepglass.hardware.host_copy import Copy, as_bytes
from stepglass.run_dir import checkpoints
from stepglass.run_dir.commit import Contents

DTYPE_NAMES = {
    torch.float64: "F64",
    torch.int64: "I64",
    torch.float32: "F32",
    torch.int32: "I32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}

MT19937_WORDS = 624

Files = dict[str, dict[str, Tensor]]  # file name -> tensor name -> tensor


@dataclass(frozen=True)
class Snapshot:
    """Everything that is needed to resume a run exactly."""

    step: int
    model: Mapping[str, Tensor]
    optim: Mapping[str, Tensor]
    rng: dict[str, Tensor]
    state: dict[str, Any]  # counters, settings, data fingerprint, environment
    tokenizer: dict[str, Any] | None  # None in a checkpoint of the first versions


# -- collecting the tensors ---------------------------------------------------------------------


def model_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers by name. A tied weight appears once, under its first name."""
    seen: set[int] = set()
    tensors: dict[str, Tensor] = {}
    for name, tensor in model.state_dict().items():
        if tensor.data_ptr() not in seen:
            seen.add(tensor.data_ptr())
            tensors[name] = tensor.detach()
    return tensors


def optimizer_tensors(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimizer's state of each parameter, by the parameter's name."""
    return {
        f"{name}.{key}": value
        for name, parameter in model.named_parameters()
        for key, value in optimizer.state.get(parameter, {}).items()
    }


def rng_tensors(device_type: str = "cpu") -> dict[str, Tensor]:
    """The state of every random generator that a run, or user code in it, may use."""
    _, words, gauss = random.getstate()
    numpy_state: Any = np.random.get_state(legacy=True)
    _, keys, position, has_gauss, cached = numpy_state
    states = {
        "torch": torch.get_rng_state(),
        "python": torch.tensor(words, dtype=torch.int64),
        "python.gauss": torch.tensor([gauss is not None, gauss or 0.0], dtype=torch.float64),
        "numpy": torch.tensor([*keys.tolist(), position, has_gauss], dtype=torch.int64),
        "numpy.gauss": torch.tensor([cached], dtype=torch.float64),
    }
    if device_type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state()
    if device_type == "mps":
        states["mps"] = torch.mps.get_rng_state()
    return states


def live_tensors(model: nn.Module, optimizer: torch.optim.Optimizer, device_type: str) -> Files:
    """All tensors of a run, by file. They are not copied."""
    return {
        "model.safetensors": model_tensors(model),
        "optim.safetensors": optimizer_tensors(model, optimizer),
        "rank-00000.safetensors": rng_tensors(device_type),
    }


# -- restoring the tensors ----------------------------------------------------------------------


def load_model(model: nn.Module, tensors: Mapping[str, Tensor], place: str) -> None:
    """Load tensors into a model. Names, shapes and dtypes must match exactly."""
    _fill(model_tensors(model), tensors, place)


def load_optimizer(
    model: nn.Module, optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor], place: str
) -> None:
    """Load tensors into an optimizer's state. Its hyper-parameters do not change: they come from
    this run's settings."""
    _fill(optimizer_tensors(model, optimizer), tensors, place)


@torch.no_grad()
def _fill(own: dict[str, Tensor], tensors: Mapping[str, Tensor], place: str) -> None:
    """Copy the tensors in place, because replicas share this memory. Everything is checked before
    anything is changed."""
    check_fits(own, tensors, place)
    for name, tensor in own.items():
        tensor.copy_(tensors[name])


def check_fits(own: dict[str, Tensor], tensors: Mapping[str, Tensor], place: str) -> None:
    """Raise an error unless names, shapes and dtypes are the same."""
    tensors = outlines(tensors)
    missing, extra = sorted(own.keys() - tensors.keys()), sorted(tensors.keys() - own.keys())
    if missing or extra:
        what = f"{missing[0]} is missing" if missing else f"{extra[0]} is unknown"
        raise CheckpointError(f"{place}: not a checkpoint of this model: {what}")
    for name, tensor in own.items():
        found = tensors[name]
        if found.shape != tensor.shape or found.dtype != tensor.dtype:
            raise CheckpointError(
                f"{place}: {name}: expected {list(tensor.shape)} {tensor.dtype}, found "
                f"{list(found.shape)} {found.dtype}"
            )


def load_rng(tensors: dict[str, Tensor]) -> None:
    """Restore the random generators. Call this last, because building a model and warming up draw
    random numbers."""
    torch.set_rng_state(tensors["torch"])
    has_gauss, gauss = tensors["python.gauss"].tolist()
    random.setstate((3, tuple(tensors["python"].tolist()), gauss if has_gauss else None))
    *keys, position, has_cached = tensors["numpy"].tolist()
    if not 0 <= position <= len(keys) == MT19937_WORDS:  # NumPy would read out of bounds
        raise ValueError(f"NumPy's generator: {len(keys)} words, position {position}")
    np.random.set_state(
        (
            "MT19937",
            np.array(keys, dtype=np.uint32),
            position,
            has_cached,
            tensors["numpy.gauss"].item(),
        )
    )
    if "cuda" in tensors and torch.cuda.is_available():
        torch.cuda.set_rng_state(tensors["cuda"])
    if "mps" in tensors and torch.backends.mps.is_available():
        torch.mps.set_rng_state(tensors["mps"])


# -- to bytes -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Layout:
    """The layout of a safetensors file: its header, and the offset of each tensor's bytes."""

    header: bytes
    offsets: dict[str, int]
    data_bytes: int

    @property
    def num_bytes(self) -> int:
        return len(self.header) + self.data_bytes


def layout(tensors: dict[str, Tensor]) -> Layout:
    """Order the tensors by element size, largest first, then by name. This way every tensor is
    aligned and there are no gaps."""
    order = sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name))
    entries: dict[str, Any] = {}
    offsets: dict[str, int] = {}
    end = 0
    for name in order:
        tensor = tensors[name]
        offsets[name], end = end, end + tensor.nbytes
        entries[name] = {
            "dtype": DTYPE_NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [offsets[name], end],
        }
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return Layout(len(text).to_bytes(8, "little") + text, offsets, end)


def bytes_of(tensor: Tensor) -> memoryview:
    """The bytes of a contiguous tensor on the host, without a copy."""
    array: Any = as_bytes(tensor.contiguous())
    return memoryview(array)


def contents_of(files: Files) -> dict[str, Contents]:
    """Files made from live tensors. Each tensor is copied to the host when it is written, so this
    needs little memory, but the tensors must not change until all of them are written."""

    def parts(tensors: dict[str, Tensor], plan: Layout) -> Iterator[bytes | memoryview]:
        yield plan.header
        for name in plan.offsets:
            yield bytes_of(tensors[name].cpu())

    contents = {}
    for file, tensors in files.items():
        plan = layout(tensors)
        contents[file] = Contents(plan.num_bytes, parts(tensors, plan))
    return contents


class HostBuffers:
    """Buffers on the host for one snapshot, with the layout of its files."""

    def __init__(self, like: Files, device: Device) -> None:
        self._shapes = shapes(like)
        self._layouts = {file: layout(tensors) for file, tensors in like.items()}
        self._data: dict[str, Tensor] = {}
        self._views: Files = {}
        for file, plan in self._layouts.items():
            data = device.host_buffer(plan.data_bytes)
            self._data[file] = data
            self._views[file] = {
                name: data[plan.offsets[name] :][: tensor.nbytes]
                .view(tensor.dtype)
                .view(tensor.shape)
                for name, tensor in like[file].items()
            }

    def fit(self, files: Files) -> bool:
        return shapes(files) == self._shapes

    def copy(self, files: Files, device: Device) -> Copy:
        """Start to copy live tensors to the buffers. The returned `Copy` says when the tensors may
        change again."""
        return device.copy_to_host(
            [
                (self._views[file][name], tensor)
                for file, tensors in files.items()
                for name, tensor in tensors.items()
            ]
        )

    def contents(self) -> dict[str, Contents]:
        """The files, made directly from the buffers."""
        return {
            file: Contents(plan.num_bytes, [plan.header, bytes_of(self._data[file])])
            for file, plan in self._layouts.items()
        }


def shapes(files: Files) -> dict[str, dict[str, tuple[torch.Size, torch.dtype]]]:
    return {
        file: {name: (tensor.shape, tensor.dtype) for name, tensor in tensors.items()}
        for file, tensors in files.items()
    }


def num_bytes(files: Files) -> int:
    return sum(tensor.nbytes for tensors in files.values() for tensor in tensors.values())


# -- from bytes ---------------------------------------------------------------------------------


def load_snapshot(path: Path) -> Snapshot:
    """Read a checkpoint. Every byte is checked against the manifest first."""
    manifest, contents = checkpoints.read_checkpoint(path)
    model: Mapping[str, Tensor]
    optim: Mapping[str, Tensor]
    try:
        if "shards" in manifest:
            model, optim = map(ShardedTensors, checkpoints.shard_paths(path, manifest))
        else:
            model, optim = (
                safetensors.torch.load(contents.pop(name)) for name in checkpoints.FILES[:2]
            )
        rng = safetensors.torch.load(contents.pop("rank-00000.safetensors"))
        state = json_files.parse_json(contents["state.json"])
        if not isinstance(state, dict) or state.get("step") != manifest["step"]:
            raise ValueError("state.json is not of this step")
        has_tokenizer = "tokenizer.json" in contents
        codec = json_files.parse_json(contents["tokenizer.json"]) if has_tokenizer else None
        for name, tensor in model.items():
            if not tensor.isfinite().all():
                raise ValueError(f"{name} holds weights that are not finite")
    except (OSError, ValueError, KeyError, TypeError, safetensors.SafetensorError) as error:
        raise CheckpointError(f"{path}: cannot be read: {error}") from error
    return Snapshot(manifest["step"], model, optim, rng, state, codec)


def newest_path(run_dir: Path) -> Path | None:
    """The newest checkpoint that is not damaged, or None."""
    try:
        return newest(run_dir, lambda line: None)[0]
    except CheckpointError:
        return None


def newest(
    run_dir: Path, on_skip: Callable[[str], None], first: Path | None = None
) -> tuple[Path, Snapshot]:
    """The newest checkpoint that is not damaged; `first` is tried before all others. `on_skip` is
    called for each damaged one, with the reason."""
    candidates = checkpoints.committed(run_dir)
    for path in dict.fromkeys([*([first] if first else []), *candidates]):
        try:
            return path, load_snapshot(path)
        except CheckpointError as error:
            on_skip(f"skipped {path.name}: {error}")
    found = f"{len(candidates)} damaged ones" if candidates else "none"
    if not candidates and (run_dir / "ckpt.pt").exists():
        found = "nanoGPT's ckpt.pt, for `stepglass import`"
    raise CheckpointError(
        f"{run_dir}: expected a checkpoint, found {found}; train one with `stepglass train`"
    )
