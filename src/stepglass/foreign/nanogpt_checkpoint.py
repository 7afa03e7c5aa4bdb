"""nanoGPT's ckpt.pt: model, settings, and the optimizer's moments, so that training goes on."""

from pathlib import Path
from typing import Any

from torch import Tensor

from stepglass.data import description, tokenizer
from stepglass.errors import ConfigError, DataError
from stepglass.foreign.confined import read_confined
from stepglass.foreign.foreign_model import ForeignModel, checked, shape_or_refuse
from stepglass.measure.shapes import GPTConfig
from stepglass.settings.nanogpt_defaults import NANOGPT
from stepglass.settings.train import TRAIN_SETTINGS
from stepglass.units import finite

PREFIXES = ("_orig_mod.", "module.")  # of models that were compiled, or trained on several GPUs
BUFFERS = (".attn.bias", ".attn.masked_bias")  # the causal mask of models without fast attention
MOMENTS = ("exp_avg", "exp_avg_sq", "step")
NOT_TAKEN = ("out_dir", "init_from", "device", "compile", "dtype", "backend", "wandb_log")
GPT2_VOCABULARIES = (50257, description.GPT2_PADDED_VOCAB)


def read_ckpt_pt(path: Path, dataset: str = "") -> ForeignModel:
    """Read a ckpt.pt. `dataset` is the data folder with its characters, if it cannot be found by
    the name that the checkpoint has for it."""
    with read_confined("pt", path) as (facts, tensors):
        args = facts.get("model_args")
        args = args if isinstance(args, dict) else {}
        shape = shape_or_refuse(path, lambda: _shape(args))
        own = {
            _own_name(name): tensor
            for name, tensor in tensors.items()
            if name.startswith("model.") and not name.endswith(BUFFERS)
        }
        own.pop("lm_head.weight", None)  # tied to the token table
        weights = checked(path, shape, own)
        config = facts.get("config")
        settings, notes = _settings(config if isinstance(config, dict) else {})
        optim = _moments(facts, tensors, weights)
    if not optim:
        notes.append("without the optimizer's state: training starts with new moments")
    codec, found = _tokenizer(path, shape.vocab_size, dataset or str(settings.get("dataset", "")))
    step = facts.get("iter_num")
    best = finite(facts.get("best_val_loss"))
    return ForeignModel(
        path,
        shape,
        weights,
        codec,
        notes + found,
        settings,
        optim,
        step=step if type(step) is int and step >= 0 else 0,
        best_val_loss=best if best is not None and best < 1e8 else None,  # 1e9 means none
    )


def _shape(args: dict[str, Any]) -> GPTConfig:
    names = ("vocab_size", "block_size", "n_layer", "n_head", "n_embd")
    return GPTConfig(
        **{name: args[name] for name in names},
        bias=bool(args.get("bias", True)),
        dropout=finite(args.get("dropout")) or 0.0,
    )


def _own_name(name: str) -> str:
    name = name.removeprefix("model.")
    while name.startswith(PREFIXES):
        name = name.partition(".")[2]
    return name


def _settings(config: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """nanoGPT's settings, as far as they are ours as well, and notes about the others."""
    kept: dict[str, Any] = {}
    unknown = []
    for key, value in config.items():
        if key in NANOGPT and key not in NOT_TAKEN:
            try:
                kept[key] = TRAIN_SETTINGS.given(key, value, "ckpt.pt").value
            except ConfigError:
                unknown.append(f"{key[:40]}={str(value)[:40]}")
    return kept, [f"settings that cannot be used: {', '.join(unknown)}"] if unknown else []


def _moments(
    facts: dict[str, Any], tensors: dict[str, Tensor], weights: dict[str, Tensor]
) -> dict[str, Tensor]:
    """AdamW's moments by our names. nanoGPT numbers the matrices first, then the vectors, each in
    the order of the model. Empty if they are not exactly those of this model."""
    order = [_own_name(f"model.{name}") for name in facts.get("order", [])]
    order = [name for name in order if name in weights]
    names = [n for n in order if weights[n].dim() >= 2] + [n for n in order if weights[n].dim() < 2]
    found: dict[str, Tensor] = {}
    for number, name in enumerate(names):
        for key in MOMENTS:
            moment = tensors.get(f"optim.{number}.{key}")
            size = weights[name].shape if key != "step" else ()
            if moment is None or moment.shape != size or not moment.isfinite().all():
                return {}
            found[f"{name}.{key}"] = moment.float()
    return found


def _tokenizer(path: Path, vocab_size: int, dataset: str) -> tuple[dict[str, Any], list[str]]:
    """The tokens of the data set: nanoGPT's checkpoint has none."""
    if vocab_size in GPT2_VOCABULARIES:
        return {"kind": "gpt2"}, []
    name = Path(dataset).name  # a checkpoint must not name any folder of this machine
    for folder in (path.parent, Path("data") / name, path.parent.parent / "data" / name):
        if (folder / "meta.pkl").is_file() or (folder / "meta.json").is_file():
            try:
                said = description.describe(folder)
            except DataError:
                continue
            if said.vocab_size == vocab_size:
                return said.tokenizer_json, [f"its tokens are those of {said.origin}"]
    return tokenizer.of_table({}, vocab_size), [
        f"its {vocab_size} tokens have no text: no meta.pkl of such a data set was found beside it "
        f"or in data/{name}; tokens are shown as numbers"
    ]
