"""Reads the tensors of a checkpoint in shards. Nothing is read before it is asked for.

Each file has the rows of every tensor that one process held, in the order of the processes. So a
whole tensor is the rows of all files, one after the other, whatever their number was. A tensor
without rows (a counter) is in the first file only.

The files are mapped into memory: what this process no longer uses, the system can drop.
"""

from collections.abc import Iterator, Mapping
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import safetensors
import torch
from torch import Tensor

from stepglass.errors import CheckpointError
from stepglass.run_dir import checkpoints


class ShardedTensors(Mapping[str, Tensor]):
    """Tensors by name. `outlines` has their shapes and dtypes, as tensors without memory.

    Raises ValueError or SafetensorError if the files do not fit together.
    """

    def __init__(self, paths: list[Path]) -> None:
        self._files: list[Any] = [safetensors.safe_open(str(path), "pt") for path in paths]
        self._bounds: dict[str, list[int]] = {}  # the first row of each file, and the end
        self.outlines: dict[str, Tensor] = {}
        for name in self._files[0].keys():  # noqa: SIM118  it is not a dict
            self._add(name, paths)
        with_rows = {name for name, outline in self.outlines.items() if outline.dim()}
        for path, file in zip(paths[1:], self._files[1:], strict=True):
            if set(file.keys()) != with_rows:
                raise ValueError(f"{path.name} has other tensors than {paths[0].name}")

    def _add(self, name: str, paths: list[Path]) -> None:
        first = self._files[0].get_slice(name)
        shape = first.get_shape()
        if not shape:
            self.outlines[name] = self._files[0].get_tensor(name).to("meta")
            return
        heights = []
        for path, file in zip(paths, self._files, strict=True):
            part = file.get_slice(name)
            if part.get_shape()[1:] != shape[1:] or part.get_dtype() != first.get_dtype():
                raise ValueError(f"{path.name}: {name} does not fit that in {paths[0].name}")
            heights.append(part.get_shape()[0])
        self._bounds[name] = list(accumulate(heights, initial=0))
        dtype = first[:0].dtype
        self.outlines[name] = torch.empty((sum(heights), *shape[1:]), dtype=dtype, device="meta")

    def rows(self, name: str, start: int, stop: int) -> Tensor:
        """A copy of some rows of a tensor, from the files that have them."""
        parts = [
            file.get_slice(name)[max(start, first) - first : min(stop, last) - first]
            for file, (first, last) in zip(self._files, pairwise(self._bounds[name]), strict=True)
            if max(start, first) < min(stop, last)
        ]
        if not parts:
            return torch.empty_like(self.outlines[name][:0], device="cpu")
        return torch.cat(parts)

    def __getitem__(self, name: str) -> Tensor:
        """The whole tensor, put together."""
        if self.outlines[name].dim() == 0:
            counter: Tensor = self._files[0].get_tensor(name)
            return counter.clone()
        return self.rows(name, 0, self._bounds[name][-1])

    def __iter__(self) -> Iterator[str]:
        return iter(self.outlines)

    def __len__(self) -> int:
        return len(self.outlines)


def outlines(tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """Tensors of the same names, shapes and dtypes. Those on disk are not read for it."""
    return tensors.outlines if isinstance(tensors, ShardedTensors) else tensors


def open_shards(path: Path, manifest_sha256: str) -> tuple[ShardedTensors, ShardedTensors]:
    """Weights and optimizer of a checkpoint in shards that rank 0 has read and checked."""
    try:
        manifest = checkpoints.read_manifest(path / "MANIFEST.json")
        if manifest["manifest_sha256"] != manifest_sha256:
            raise CheckpointError(f"{path}: not the checkpoint of this name that rank 0 sees")
        model, optim = map(ShardedTensors, checkpoints.shard_paths(path, manifest))
    except (CheckpointError, OSError, ValueError, safetensors.SafetensorError) as error:
        raise CheckpointError(
            f"{error}; each process reads its part of this checkpoint, so --out_dir must be on a "
            "disk that all of them see"
        ) from error
    return model, optim
