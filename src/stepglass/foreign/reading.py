"""Reads a model from wherever it is: a run of ours, a file or a folder of another program."""

from collections.abc import Callable
from pathlib import Path

from stepglass.checkpoint import tensors
from stepglass.errors import CheckpointError, os_reason
from stepglass.foreign import gguf_file, named_models
from stepglass.foreign.foreign_model import ForeignModel, checked, shape_or_refuse
from stepglass.foreign.gguf_file import read_gguf_file
from stepglass.foreign.hf_folder import read_hf_folder
from stepglass.foreign.nanogpt_checkpoint import read_ckpt_pt
from stepglass.measure.shapes import shape_from_record
from stepglass.run_dir import checkpoints

NANOGPTS = "ckpt.pt"
EXPECTED = (
    "expected a run directory, nanoGPT's ckpt.pt, a GGUF file, or a Hugging Face folder with "
    "config.json"
)


def read_model(name: str, say: Callable[[str], None], dataset: str = "") -> ForeignModel:
    """Read a model by the name or the path that a person gives."""
    path = named_models.path_of(name, say)
    try:
        return _read(path, dataset, say)
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {os_reason(error)}") from error


def _read(path: Path, dataset: str, say: Callable[[str], None]) -> ForeignModel:
    if path.is_dir():
        if checkpoints.committed(path):
            return model_of_run(path, say)
        if (path / NANOGPTS).exists():
            return read_ckpt_pt(path / NANOGPTS, dataset)
        if (path / "config.json").exists():
            return read_hf_folder(path)
        files = sorted(path.glob("*.gguf"))
        if len(files) == 1:
            return read_gguf_file(files[0])
        raise CheckpointError(f"{path}: {EXPECTED}, found none of them in it")
    if not path.exists():
        raise CheckpointError(f"{path}: {EXPECTED}, found nothing")
    if not path.is_file():
        raise CheckpointError(f"{path}: {EXPECTED}, found something else")
    with open(path, "rb") as file:
        start = file.read(len(gguf_file.MAGIC))
    if start == gguf_file.MAGIC:
        return read_gguf_file(path)
    if path.suffix == ".safetensors" and (path.parent / "config.json").exists():
        return read_hf_folder(path.parent)
    if not start:
        raise CheckpointError(f"{path}: {EXPECTED}, found an empty file")
    return read_ckpt_pt(path, dataset)


def model_of_run(run_dir: Path, say: Callable[[str], None]) -> ForeignModel:
    """The best model of a run of ours, or the newest if the best is not known."""
    try:
        best = checkpoints.best_path(run_dir)
    except CheckpointError as error:
        say(f"note: taking the newest checkpoint: {error}")
        best = None
    path, snapshot = tensors.newest(run_dir, say, first=best)
    shape = shape_or_refuse(path, lambda: shape_from_record(snapshot.state.get("model_config")))
    weights = checked(path, shape, dict(snapshot.model))
    if snapshot.tokenizer is None:
        raise CheckpointError(f"{path}: has no tokenizer: it is of a version before 0.2")
    return ForeignModel(path, shape, weights, snapshot.tokenizer)
