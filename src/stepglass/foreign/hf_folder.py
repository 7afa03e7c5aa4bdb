"""A folder of the transformers library with a GPT-2, a Qwen3 or a Llama: JSON and safetensors.

Neither format can run code. Weights may be in several files, of which an index names the tensors.
"""

import os
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
from torch import Tensor

from stepglass.errors import CheckpointError, os_reason
from stepglass.foreign.foreign_model import ForeignModel, checked, shape_or_refuse
from stepglass.foreign.hf_tokenizer import tokenizer_in
from stepglass.foreign.json_object import read_object
from stepglass.measure.shapes import GPTConfig, ModernConfig, Shape
from stepglass.models.hf_names import GELU_OF, LAYER_NORM_EPS, own_weights
from stepglass.units import shown

ONE_FILE, INDEX = "model.safetensors", "model.safetensors.index.json"
MAX_FILES = 1000
KNOWN = ("gpt2", "qwen3", "llama")


def read_hf_folder(folder: Path) -> ForeignModel:
    """Read a folder that `save_pretrained` has written, or one like it."""
    config = read_object(folder / "config.json")
    shape = shape_or_refuse(folder / "config.json", lambda: shape_of_config(config))
    weights = checked(folder, shape, own_weights(_tensors(folder), shape))
    codec, notes = tokenizer_in(folder, shape.vocab_size)
    return ForeignModel(folder, shape, weights, codec, notes)


# -- shape --------------------------------------------------------------------------------------


def shape_of_config(config: dict[str, Any]) -> Shape:
    """The shape in config.json. Raises ValueError, TypeError or KeyError."""
    kind = config.get("model_type")
    if kind not in KNOWN:
        raise ValueError(f"model_type is {shown(kind)}, expected one of {', '.join(KNOWN)}")
    if config.get("quantization_config") is not None:
        raise ValueError("its weights are quantised; take the unquantised model, or a GGUF file")
    return _gpt2(config) if kind == "gpt2" else _modern(config, kind)


def _gpt2(config: dict[str, Any]) -> GPTConfig:
    activation = config.get("activation_function", "gelu_new")
    if activation not in GELU_OF:
        raise ValueError(f"activation_function is {shown(activation)}")
    if config.get("n_inner") not in (None, 4 * config["n_embd"]):
        raise ValueError(f"n_inner is {shown(config['n_inner'])}, expected 4 times n_embd")
    _expect(
        config,
        layer_norm_epsilon=LAYER_NORM_EPS,
        scale_attn_weights=True,
        scale_attn_by_inverse_layer_idx=False,
        add_cross_attention=False,
        tie_word_embeddings=True,
    )
    bias = config.get("bias", True)
    return GPTConfig(
        vocab_size=config["vocab_size"],
        block_size=config["n_positions"],
        n_layer=config["n_layer"],
        n_head=config["n_head"],
        n_embd=config["n_embd"],
        bias=bias is not False,
        gelu=GELU_OF[activation],
    )


def _modern(config: dict[str, Any], kind: str) -> ModernConfig:
    _expect(config, hidden_act="silu", attention_bias=False, mlp_bias=False)
    _expect(config, use_sliding_window=False, pretraining_tp=1)
    heads, width = config["num_attention_heads"], config["hidden_size"]
    given = config.get("head_dim") or 0
    head_dim = 0 if type(heads) is int and given * heads == width else given
    tied = config.get("tie_word_embeddings", False)
    return ModernConfig(
        vocab_size=config["vocab_size"],
        block_size=config["max_position_embeddings"],
        n_layer=config["num_hidden_layers"],
        n_head=heads,
        n_embd=width,
        n_kv_head=_count(config.get("num_key_value_heads") or 0),
        n_head_dim=_count(head_dim),
        n_inner=_count(config["intermediate_size"]),
        tie_weights=tied is True,
        rope_theta=_rope_theta(config),
        norm_eps=float(config.get("rms_norm_eps", 1e-6)),
        qk_norm=kind == "qwen3",
    )


def _count(value: object) -> int:
    if type(value) is not int:
        raise ValueError(f"expected a whole number, found {shown(value)}")
    return value


def _rope_theta(config: dict[str, Any]) -> float:
    """The base of the rotary positions. Newer versions of the library put it into an object."""
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind != "default":
        raise ValueError(
            f"its rotary positions are scaled ({shown(kind)}), which is not known here"
        )
    return float(rope.get("rope_theta", config.get("rope_theta", 10_000.0)))


def _expect(config: dict[str, Any], **expected: Any) -> None:
    for key, value in expected.items():
        if config.get(key, value) not in (value, None):
            raise ValueError(f"{key} is {shown(config[key])}, expected {value}")


# -- weights ------------------------------------------------------------------------------------


def _tensors(folder: Path) -> dict[str, Tensor]:
    """All tensors of a folder. Files are opened only if they are in the folder itself."""
    if (folder / ONE_FILE).exists():
        return _read(folder / ONE_FILE)
    if not (folder / INDEX).exists():
        names = [
            name for name in sorted(os.listdir(folder)) if name.endswith((".bin", ".pt", ".h5"))
        ]
        found = f"{names[0]}, which can run code" if names else "none"
        raise CheckpointError(f"{folder}: expected {ONE_FILE} or {INDEX}, found {found}")
    places = read_object(folder / INDEX).get("weight_map")
    if not isinstance(places, dict) or not all(isinstance(p, str) for p in places.values()):
        raise CheckpointError(f"{folder / INDEX}: expected a weight_map, found none")
    tensors: dict[str, Tensor] = {}
    files = sorted(set(places.values()))
    if len(files) > MAX_FILES:
        raise CheckpointError(f"{folder / INDEX}: names {len(files)} files")
    for name in files:
        if name != Path(name).name or name in (".", ".."):
            raise CheckpointError(
                f"{folder / INDEX}: expected names of files beside it, found {shown(name)}"
            )
        tensors |= _read(folder / name)
    return tensors


def _read(path: Path) -> dict[str, Tensor]:
    try:
        if not path.is_file():
            raise ValueError("not a regular file")
        return dict(safetensors.torch.load_file(path))
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {os_reason(error)}") from error
    except Exception as error:  # the library raises plain errors of several kinds
        first = (str(error).splitlines() or [""])[0]
        raise CheckpointError(f"{path}: expected safetensors, found a problem: {first}") from error
