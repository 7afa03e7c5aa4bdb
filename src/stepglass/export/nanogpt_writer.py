"""A ckpt.pt that nanoGPT samples from and trains on."""

import pickle
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from stepglass.checkpoint import tensors
from stepglass.data.tokenizer import CharTokenizer
from stepglass.errors import CheckpointError
from stepglass.measure.shapes import GPTConfig
from stepglass.models.gpt2 import GPT
from stepglass.run_dir import listing
from stepglass.sample.load import Sampler
from stepglass.settings.nanogpt_defaults import NANOGPT

ARGS = ("n_layer", "n_head", "n_embd", "block_size", "bias", "vocab_size", "dropout")
MOMENTS = ("step", "exp_avg", "exp_avg_sq")


def write_nanogpt(loaded: Sampler, folder: Path, run_dir: Path, dtype: str) -> Iterator[str]:
    """Write ckpt.pt and, for characters, meta.pkl. Yields lines to print."""
    model, shape = loaded.model, loaded.model.config
    if not isinstance(model, GPT) or not isinstance(shape, GPTConfig):
        raise CheckpointError(
            f"{run_dir}: nanoGPT has only GPT-2, and this is the model {shape.name}; export it "
            "with --to=hf, or train with --model=gpt2"
        )
    if shape.gelu == "tanh":
        yield "note: nanoGPT computes the exact GELU, this model another: the losses differ a bit"
    kind = torch.float32 if dtype == "f32" else torch.float16
    snapshot = tensors.load_snapshot(loaded.path)
    config = listing.settings_in(run_dir)
    checkpoint: dict[str, Any] = {
        "model": {name: tensor.to(kind) for name, tensor in model.state_dict().items()},
        "model_args": {name: getattr(shape, name) for name in ARGS},
        "iter_num": snapshot.step,
        "best_val_loss": snapshot.state.get("best_val_loss") or 1e9,
        "config": {key: config.get(key, NANOGPT[key]) for key in NANOGPT},
    }
    optimizer = _optimizer(model, snapshot.optim, checkpoint["config"])
    if optimizer is None:
        yield "note: without the optimizer's state: nanoGPT can sample from it, but not resume it"
    else:
        checkpoint["optimizer"] = optimizer
    folder.mkdir()
    torch.save(checkpoint, folder / "ckpt.pt")
    if isinstance(loaded.tokenizer, CharTokenizer):
        chars = loaded.tokenizer.to_json()["chars"]
        meta = {
            "vocab_size": shape.vocab_size,
            "stoi": chars,
            "itos": {index: char for char, index in chars.items()},
        }
        (folder / "meta.pkl").write_bytes(pickle.dumps(meta))
        yield (
            f"note: nanoGPT reads its characters from data/{checkpoint['config']['dataset']}/"
            "meta.pkl: put the meta.pkl beside ckpt.pt there"
        )
    elif loaded.tokenizer.to_json().get("kind") != "gpt2":
        yield (
            "note: nanoGPT does not know this model's tokens: its train.py works with data that "
            "has these tokens, but its sample.py writes wrong text; to write text, export with "
            "--to=hf"
        )


def _optimizer(model: GPT, stored: Mapping[str, Tensor], config: dict[str, Any]) -> Any:
    """AdamW's state as nanoGPT's optimizer stores it: matrices first, then vectors. None if this
    run had another optimizer."""
    named = dict(model.named_parameters())
    order = [
        [n for n, p in named.items() if p.dim() >= 2],
        [n for n, p in named.items() if p.dim() < 2],
    ]
    names = [*order[0], *order[1]]
    if any(f"{name}.{key}" not in stored for name in names for key in MOMENTS):
        return None
    like = torch.optim.AdamW([torch.zeros(1)]).state_dict()["param_groups"][0]
    rates = {"lr": config["learning_rate"], "betas": (config["beta1"], config["beta2"])}
    groups = []
    for part, decay in zip(order, (config["weight_decay"], 0.0), strict=True):
        numbers = [names.index(name) for name in part]
        groups.append({**like, **rates, "weight_decay": decay, "params": numbers})
    state = {i: {key: stored[f"{n}.{key}"] for key in MOMENTS} for i, n in enumerate(names)}
    return {"state": state, "param_groups": groups}
