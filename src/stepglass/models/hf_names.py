"""Weights and shapes as the transformers library names them, from our models and back.

    weights = hf_weights(model)                 # of GPT2LMHeadModel, Qwen3- or LlamaForCausalLM
    config = hf_config(model.config)            # its config.json
    weights = own_weights(weights, shape)       # back, for `load_model`

GPT-2 stores its matrices transposed there, and always has biases. The modern model is Qwen3 there,
or Llama if queries and keys are not normed; joined matrices are split.
"""

from typing import Any

import torch
from torch import Tensor

from stepglass.measure.shapes import GPTConfig, ModernConfig, Shape
from stepglass.models.gpt2 import GPT
from stepglass.models.model import Model
from stepglass.models.modern import Modern, qwen3_config, qwen3_weights

ACTIVATION = {"exact": "gelu", "tanh": "gelu_new"}  # transformers' names for the two GELUs
# Names that the library accepts for the same two functions.
GELU_OF = {"gelu": "exact", "gelu_new": "tanh", "gelu_pytorch_tanh": "tanh", "gelu_fast": "tanh"}
TRANSPOSED = ("c_attn.weight", "c_proj.weight", "c_fc.weight")
NOT_WEIGHTS = (".attn.bias", ".attn.masked_bias", "rotary_emb.inv_freq")  # tables of older versions
JOINED = {"qkv_proj": ("q_proj", "k_proj", "v_proj"), "gate_up_proj": ("gate_proj", "up_proj")}
LAYER_NORM_EPS = 1e-5


def hf_weights(model: Model) -> dict[str, Tensor]:
    """The weights with the library's names. A tied head is left out, as the library does."""
    if isinstance(model, GPT):
        return _gpt2_weights(model)
    assert isinstance(model, Modern)
    weights = qwen3_weights(model)
    if model.config.tie_weights:
        del weights["lm_head.weight"]
    return weights


def _gpt2_weights(model: GPT) -> dict[str, Tensor]:
    weights: dict[str, Tensor] = {}
    for name, tensor in model.state_dict().items():
        if name == "lm_head.weight":
            continue
        weights[name] = tensor.T if name.endswith(TRANSPOSED) else tensor
        bias = name.removesuffix("weight") + "bias"
        if (
            not model.config.bias
            and bias != name
            and not name.endswith(("wte.weight", "wpe.weight"))
        ):
            weights[bias] = torch.zeros(len(tensor), dtype=tensor.dtype, device=tensor.device)
    return weights


def hf_config(shape: Shape) -> dict[str, Any]:
    """The shape as config.json of the library."""
    if isinstance(shape, ModernConfig):
        kind = ("qwen3", "Qwen3ForCausalLM") if shape.qk_norm else ("llama", "LlamaForCausalLM")
        extra = {} if shape.qk_norm else {"mlp_bias": False}
        return {"model_type": kind[0], "architectures": [kind[1]], **qwen3_config(shape), **extra}
    assert isinstance(shape, GPTConfig)
    return {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "vocab_size": shape.vocab_size,
        "n_positions": shape.block_size,
        "n_embd": shape.n_embd,
        "n_layer": shape.n_layer,
        "n_head": shape.n_head,
        "activation_function": ACTIVATION[shape.gelu],
        "layer_norm_epsilon": LAYER_NORM_EPS,
        "resid_pdrop": shape.dropout,
        "embd_pdrop": shape.dropout,
        "attn_pdrop": shape.dropout,
        "tie_word_embeddings": True,
        "bias": shape.bias,  # ours: the library's GPT-2 always has biases, which are zero if False
    }


def own_weights(found: dict[str, Tensor], shape: Shape) -> dict[str, Tensor]:
    """The weights with our names, from those of the library or of a nanoGPT. Names that are neither
    stay, for the caller to complain about."""
    found = {name: tensor for name, tensor in found.items() if not name.endswith(NOT_WEIGHTS)}
    if isinstance(shape, ModernConfig):
        return _own_modern(found, shape)
    assert isinstance(shape, GPTConfig)
    return _own_gpt2(found, shape)


def _own_gpt2(found: dict[str, Tensor], shape: GPTConfig) -> dict[str, Tensor]:
    own: dict[str, Tensor] = {}
    for name, tensor in found.items():
        full = name if name.startswith(("transformer.", "lm_head.")) else f"transformer.{name}"
        if full == "lm_head.weight" or (full.endswith(".bias") and not shape.bias):
            continue  # tied to the token table; or zeros
        own[full] = tensor.T.contiguous() if full.endswith(TRANSPOSED) else tensor
    return own


def _own_modern(found: dict[str, Tensor], shape: ModernConfig) -> dict[str, Tensor]:
    left = {name.removeprefix("model."): tensor for name, tensor in found.items()}
    if shape.tie_weights:
        left.pop("lm_head.weight", None)
    own: dict[str, Tensor] = {}
    for joined, parts in JOINED.items():
        first = f".{parts[0]}.weight"
        for place in [name.removesuffix(first) for name in left if name.endswith(first)]:
            names = [f"{place}.{part}.weight" for part in parts]
            pieces = [left[name] for name in names if name in left]
            if len(pieces) == len(names) and len({piece.shape[1:] for piece in pieces}) == 1:
                own[f"{place}.{joined}.weight"] = torch.cat(pieces)
                left = {name: tensor for name, tensor in left.items() if name not in names}
    return own | left
