"""The process that opens a checkpoint of torch, or a GGUF file: `confined.py` starts it.

    python -m stepglass.foreign.confined_reader pt|gguf PATH FOLDER

It limits its own memory and time before it opens the file, and writes tensors.safetensors and
facts.json to the folder. If the file is refused, the last line of its standard error says why.
"""

import contextlib
import json
import os
import stat
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch
from torch import Tensor

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None  # type: ignore[assignment]

GIB = 1 << 30
MAX_MEMBERS = 100_000
MAX_FACTS = 1 << 28  # bytes of JSON
CPU_S, CPU_S_PER_GIB = 60, 240
GGUF_SIZES = {
    0: 1,
    1: 1,
    2: 2,
    3: 2,
    4: 4,
    5: 4,
    6: 4,
    7: 1,
    10: 8,
    11: 8,
    12: 8,
}  # bytes of a value
GGUF_TEXT, GGUF_ARRAY = 8, 9
MEMORY_SHARE = {"pt": 3, "gguf": 12}  # of the file's size; four bits become 32


def limit_self(kind: str, num_bytes: int) -> None:
    """From now on this process may take the memory of its libraries and a multiple of the file."""
    if resource is None:
        return
    seconds = int(CPU_S + num_bytes / GIB * CPU_S_PER_GIB)
    used = resource.getrusage(resource.RUSAGE_SELF)
    now_s = int(used.ru_utime + used.ru_stime)
    resource.setrlimit(resource.RLIMIT_CPU, (now_s + seconds, now_s + seconds + 5))
    with contextlib.suppress(OSError, ValueError):
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * os.sysconf("SC_PAGE_SIZE") + GIB + MEMORY_SHARE[kind] * num_bytes
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


# -- torch --------------------------------------------------------------------------------------


def read_pt(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """A checkpoint of nanoGPT. Raises ValueError or an error of torch."""
    check_zip(path)
    found = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(found, dict) or not isinstance(found.get("model"), dict):
        raise ValueError("expected a ckpt.pt of nanoGPT, found something else in it")
    tensors = {f"model.{name}": dense(name, t) for name, t in found["model"].items()}
    optimizer = found.get("optimizer")
    moments, groups = _moments(optimizer) if isinstance(optimizer, dict) else ({}, [])
    facts = {
        "model_args": json_value(found.get("model_args")),
        "config": json_value(found.get("config")),
        "iter_num": json_value(found.get("iter_num")),
        "best_val_loss": json_value(found.get("best_val_loss")),
        "order": list(found["model"]),
        "groups": groups,
    }
    return facts, tensors | moments


def _moments(optimizer: dict[Any, Any]) -> tuple[dict[str, Tensor], list[Any]]:
    state = optimizer.get("state")
    tensors = {}
    for index, parts in (state if isinstance(state, dict) else {}).items():
        for key, value in (parts if isinstance(parts, dict) else {}).items():
            if isinstance(value, int | float):
                value = torch.tensor(float(value))
            tensors[f"optim.{index}.{key}"] = dense(f"optimizer {index} {key}", value)
    groups = optimizer.get("param_groups")
    found = groups if isinstance(groups, list) else []
    return tensors, [json_value(g.get("params")) for g in found if isinstance(g, dict)]


def check_zip(path: Path) -> None:
    """Refuse archives that unpack to more than their size."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise ValueError(f"expected a file that torch.save has written, found: {error}") from error
    if len(members) > MAX_MEMBERS:
        raise ValueError(f"{len(members)} members in its archive")
    if any(member.compress_type != zipfile.ZIP_STORED for member in members):
        raise ValueError("its archive is compressed, which torch.save never does")
    if sum(member.file_size for member in members) > path.stat().st_size + (1 << 20):
        raise ValueError("its archive promises more bytes than it has")
    if len({member.filename.partition("/")[0] for member in members}) > 1:
        raise ValueError("its archive has more than one folder")


def dense(name: Any, tensor: Any) -> Tensor:
    """A copy of a plain tensor. Sparse and quantised ones, and views that repeat few numbers many
    times, are refused."""
    if not isinstance(tensor, Tensor) or tensor.layout != torch.strided or tensor.is_quantized:
        raise ValueError(
            f"{str(name)[:80]}: expected a plain tensor, found {type(tensor).__name__}"
        )
    if tensor.device.type != "cpu":
        raise ValueError(f"{str(name)[:80]}: expected numbers, found a tensor without any")
    if tensor.nbytes > tensor.untyped_storage().nbytes():
        raise ValueError(f"{str(name)[:80]}: more numbers than it has bytes for")
    return tensor.detach().clone(memory_format=torch.contiguous_format)


def json_value(value: Any) -> Any:
    """The value as JSON, or None for what is not."""
    if isinstance(value, dict):
        return {str(key): json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(item) for item in value]
    if isinstance(value, Tensor | np.generic) and getattr(value, "ndim", 1) == 0:
        value = value.item()
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value if isinstance(value, str | int | bool) else None


# -- GGUF ---------------------------------------------------------------------------------------


def read_gguf(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """A GGUF file, with all numbers in float32. Raises ValueError or an error of the package."""
    try:
        import gguf  # noqa: PLC0415  an optional package
    except ImportError as error:
        raise ValueError(
            "it needs the package gguf, which is not installed: pip install gguf"
        ) from error
    check_gguf(path)
    reader = gguf.GGUFReader(path)
    facts = {name: json_value(field.contents()) for name, field in reader.fields.items()}
    tensors: dict[str, Tensor] = {}
    for entry in reader.tensors:
        kind = entry.tensor_type
        block, size = gguf.GGML_QUANT_SIZES[kind]
        if entry.n_elements * size // block != entry.n_bytes or entry.data.nbytes != entry.n_bytes:
            raise ValueError(f"{entry.name[:80]}: its size is not that of its shape")
        numbers = gguf.quants.dequantize(entry.data, kind).astype(np.float32)
        shape = [int(side) for side in reversed(entry.shape)]
        tensors[entry.name] = torch.from_numpy(np.ascontiguousarray(numbers)).reshape(shape)
    return facts, tensors


def check_gguf(path: Path) -> None:
    """Refuse a file that promises more than it holds, at once: the package would read beyond its
    end for ever."""
    with open(path, "rb") as file:
        left = path.stat().st_size

        def take(num_bytes: int) -> bytes:
            nonlocal left
            left -= num_bytes
            if left < 0:
                raise ValueError("it ends in the middle, or promises more than it holds")
            return file.read(num_bytes)

        def number(size: int) -> int:
            return int.from_bytes(take(size), "little")

        def skip(kind: int, depth: int = 0) -> None:
            if kind == GGUF_ARRAY:
                inner, count = number(4), number(8)
                if count > left or depth > 1:
                    raise ValueError(f"it promises an array of {count} values")
                if inner in GGUF_SIZES:
                    take(count * GGUF_SIZES[inner])
                else:
                    for _ in range(count):
                        skip(inner, depth + 1)
            elif kind == GGUF_TEXT:
                take(number(8))
            elif kind in GGUF_SIZES:
                take(GGUF_SIZES[kind])
            else:
                raise ValueError(f"it has a value of the unknown kind {kind}")

        take(8)  # GGUF, and its version
        num_tensors, num_fields = number(8), number(8)
        if max(num_tensors, num_fields) > MAX_MEMBERS:
            raise ValueError(f"it promises {num_tensors} tensors and {num_fields} values")
        for _ in range(num_fields):
            take(number(8))
            skip(number(4))


def convert(kind: str, path: Path, folder: Path) -> None:
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise ValueError("not a regular file")
    limit_self(kind, status.st_size)
    facts, tensors = {"pt": read_pt, "gguf": read_gguf}[kind](path)
    text = json.dumps(facts, allow_nan=False)
    if len(text) > MAX_FACTS:
        raise ValueError("its description is larger than 256 MB")
    (folder / "facts.json").write_text(text, encoding="utf-8")
    safetensors.torch.save_file(tensors, folder / "tensors.safetensors")


def entry_point(argv: list[str]) -> int:
    try:
        convert(argv[0], Path(argv[1]), Path(argv[2]))
    except MemoryError:
        reason = "it needs far more memory than its size"
    except Exception as error:  # noqa: BLE001 - damaged files raise anything
        lines = str(error).strip().splitlines() or [""]
        reason = (
            lines[0] if isinstance(error, ValueError) else f"{type(error).__name__}: {lines[0]}"
        )
    else:
        return 0
    sys.stderr.write(f"{reason[:300]}\n")
    return 1


if __name__ == "__main__":
    sys.exit(entry_point(sys.argv[1:]))
