"""The model that a run starts from, if it does not start from scratch: `--init_from=PATH`."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from stepglass.checkpoint import tensors
from stepglass.data.dataset import Dataset
from stepglass.errors import CheckpointError, ConfigError
from stepglass.foreign.foreign_model import ForeignModel
from stepglass.foreign.reading import read_model
from stepglass.foreign.run_folder import settings_of_shape
from stepglass.measure.shapes import Shape
from stepglass.models.model import Model
from stepglass.run_dir import checkpoints
from stepglass.settings.train import TrainConfig
from stepglass.train.console import Console

POSITIONS = "transformer.wpe.weight"
GPT2_TOKENS = 50257


@dataclass(frozen=True)
class StartingModel:
    """A trained model, and its shape with the context of this run."""

    found: ForeignModel
    shape: Shape

    def fill(self, model: Model) -> None:
        """Load the weights into a new model of this run."""
        weights = dict(self.found.weights)
        if POSITIONS in weights:
            weights[POSITIONS] = weights[POSITIONS][: self.shape.block_size]
        tensors.load_model(model, weights, str(self.found.path))

    def require_tokens_of(self, data: Dataset) -> None:
        """Raise ConfigError unless the data has the tokens that the model knows."""
        if tokens_of(data.tokenizer_json) == tokens_of(self.found.tokenizer):
            return
        raise ConfigError(
            f"{data.folder}: has other tokens than the model in {self.found.path}; prepare the "
            "text with those of the model: stepglass prepare TEXT --tokenizer=RUN --name=NAME, "
            "where RUN is its run directory (`stepglass import` makes one)"
        )


def tokens_of(tokenizer: dict[str, Any]) -> dict[str, Any]:
    """A tokenizer without its chat template: conversations may have another than the model."""
    return {key: value for key, value in tokenizer.items() if key != "chat_template"}


def starting_model(cfg: TrainConfig, console: Console) -> tuple[TrainConfig, StartingModel | None]:
    """Read the model of `init_from`, and take over its shape. None if there is none."""
    if not cfg.starts_from_model:
        return cfg, None
    if (
        Path(cfg.init_from).exists()
        and Path(cfg.init_from).resolve() == Path(cfg.out_dir).resolve()
    ):
        raise ConfigError(
            f"--out_dir={cfg.out_dir}: is the model to start from; choose another, or type "
            f"stepglass resume {cfg.out_dir} to go on with it"
        )
    found = read_model(cfg.init_from, console.say)
    for note in found.notes:
        console.say(f"note: {note}")
    block_size = min(cfg.block_size, found.shape.block_size)
    changes: dict[str, Any] = {"block_size": block_size, "dropout": cfg.dropout}
    shape = replace(found.shape, **changes)
    console.say(
        f"starting from {found.path}: {shape.name}, {shape.n_layer} layers, width {shape.n_embd}, "
        f"context {shape.block_size} of {found.shape.block_size} tokens"
    )
    return replace(cfg, **settings_of_shape(shape)), StartingModel(found, shape)


def model_vocabulary(cfg: TrainConfig, data: Dataset, start: StartingModel | None) -> int:
    """The number of tokens in the model's table. A model that was not made for this data may have
    more of them than the data, and a run that goes on with it keeps them."""
    if start is not None:
        start.require_tokens_of(data)
    stored = start.shape.vocab_size if start else None
    if cfg.init_from == "resume":
        stored = checkpoints.vocabulary_of_newest(Path(cfg.out_dir))
    if stored is None or stored == data.vocab_size:
        return data.vocab_size
    is_gpt2 = data.tokenizer_json.get("kind") == "gpt2"  # whose table may be padded
    needed = GPT2_TOKENS if is_gpt2 else data.vocab_size
    if stored < needed:
        raise CheckpointError(
            f"{cfg.out_dir if start is None else start.found.path}: the model knows {stored} "
            f"tokens, and {data.folder} has {needed}"
        )
    return stored
