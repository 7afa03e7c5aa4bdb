"""Loads the model and the tokenizer of a run from its best checkpoint."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from stepglass.checkpoint import tensors
from stepglass.checkpoint.sharded import outlines
from stepglass.data import dataset, tokenizer
from stepglass.data.tokenizer import Tokenizer
from stepglass.errors import CheckpointError
from stepglass.measure.shapes import shape_from_record
from stepglass.models import registry
from stepglass.models.model import Model
from stepglass.run_dir import checkpoints

# Limits for the size of the position tables, in bytes and as a multiple of the weights' size. The
# tables are not weights, so the number of weights in the file does not limit them.
MIN_TABLE = 64 << 20
MAX_TABLE_SHARE = 16


@dataclass(frozen=True)
class Sampler:
    """The best model of a run, ready for sampling."""

    model: Model
    tokenizer: Tokenizer
    path: Path


def load_run(run_dir: Path, device: torch.device, on_skip: Callable[[str], None]) -> Sampler:
    """Load the best checkpoint of a run, or the newest one if the best is unknown."""
    if not run_dir.is_dir():
        found = "a file" if run_dir.exists() else "nothing"
        raise CheckpointError(
            f"{run_dir}: expected a run directory, found {found}; train one with `stepglass train`"
        )
    best = None
    try:
        best = checkpoints.best_path(run_dir)
    except CheckpointError as error:
        on_skip(f"note: taking the newest checkpoint: {error}")
    path, snapshot = tensors.newest(run_dir, on_skip, first=best)
    model = build_model(snapshot, path).to(device).eval()
    if snapshot.tokenizer is not None:
        place = path / "tokenizer.json"
        codec = tokenizer.from_json(snapshot.tokenizer, str(place))
    else:
        place = run_dir / "tokenizer.json"  # where the first versions kept it
        codec = dataset.load_tokenizer(place)
    if codec.vocab_size > model.config.vocab_size:
        raise CheckpointError(
            f"{place}: expected at most {model.config.vocab_size} tokens, the "
            f"model's vocabulary, found {codec.vocab_size}"
        )
    return Sampler(model, codec, path)


def build_model(snapshot: tensors.Snapshot, path: Path) -> Model:
    """Build the model of a checkpoint. Before memory is allocated, check that the shape fits the
    weights.
    """
    try:
        config = shape_from_record(snapshot.state["model_config"])
        stored = sum(tensor.numel() for tensor in outlines(snapshot.model).values())
        if config.num_params() != stored or config.n_layer > len(snapshot.model):
            raise ValueError(f"{stored} weights for a model of {config.num_params()}")
        if 8 * config.block_size * config.head_dim > max(MIN_TABLE, MAX_TABLE_SHARE * 4 * stored):
            raise ValueError(f"block_size={config.block_size} for a model of {stored} weights")
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"{path}: expected a model's shape, found a problem: {error}"
        ) from error
    model = registry.model_of(config)
    tensors.load_model(model, snapshot.model, str(path))
    return model
