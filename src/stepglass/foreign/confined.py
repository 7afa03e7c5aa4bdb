"""Reads files that could do harm in a process of its own, with limits on its memory and time.

`torch.load` has had holes that ran code, and its files can be made to unpack to a thousand times
their size; a GGUF file can promise more tensors than there is memory. The process writes what it
found as safetensors and JSON to a temporary folder, which this process then reads.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
from torch import Tensor

from stepglass import json_files
from stepglass.errors import CheckpointError

TIMEOUT_S = 3600


@contextmanager
def read_confined(kind: str, path: Path) -> Iterator[tuple[dict[str, Any], dict[str, Tensor]]]:
    """Context manager: facts and tensors of a file. `kind` is `pt` or `gguf`. The tensors are
    mapped from a temporary file, which is deleted at the end."""
    with tempfile.TemporaryDirectory(
        prefix="stepglass-import-", ignore_cleanup_errors=True
    ) as folder:
        _run(kind, path, Path(folder))
        try:
            facts = json_files.read_json(Path(folder) / "facts.json")
            tensors = safetensors.torch.load_file(Path(folder) / "tensors.safetensors")
        except (OSError, ValueError, safetensors.SafetensorError) as error:
            raise CheckpointError(f"{path}: cannot be read: {error}") from error
        yield facts, tensors


def _run(kind: str, path: Path, folder: Path) -> None:
    command = [sys.executable, "-m", "stepglass.foreign.confined_reader", kind, str(path.resolve())]
    own = str(Path(__file__).parents[2])  # of this Stepglass, if another is installed as well
    search = os.pathsep.join([own, *filter(None, [os.environ.get("PYTHONPATH")])])
    try:
        done = subprocess.run(
            [*command, str(folder)],
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=TIMEOUT_S,
            check=False,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": search},
        )
    except subprocess.TimeoutExpired as error:
        raise CheckpointError(f"{path}: reading it took more than an hour") from error
    if done.returncode == 0:
        return
    last = (done.stderr.strip().splitlines() or ["no reason"])[-1][:300]
    if done.returncode < 0:
        last = (
            f"its reader was ended by signal {-done.returncode}: it takes too long, or is damaged"
        )
    raise CheckpointError(f"{path}: cannot be imported: {last}")
