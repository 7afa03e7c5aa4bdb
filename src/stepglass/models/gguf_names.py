"""Weights as GGUF files name them, from our models and back to the names of transformers.

llama.cpp rotates neighbouring elements of a Llama's heads, where transformers and we rotate the two
halves. So the rows of its queries and keys are in another order in a GGUF file. Those of Qwen3 are
not.
"""

import re

from torch import Tensor

from stepglass.measure.shapes import ModernConfig, Shape
from stepglass.models.gpt2 import GPT
from stepglass.models.hf_names import TRANSPOSED, hf_weights
from stepglass.models.model import Model

LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
GPT2_LAYER = {
    "attn_norm": "ln_1",
    "attn_qkv": "attn.c_attn",
    "attn_output": "attn.c_proj",
    "ffn_norm": "ln_2",
    "ffn_up": "mlp.c_fc",
    "ffn_down": "mlp.c_proj",
}
OUTSIDE = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
}
GPT2_OUTSIDE = {
    "token_embd": "transformer.wte",
    "position_embd": "transformer.wpe",
    "output_norm": "transformer.ln_f",
    "output": "lm_head",
}
TABLES = ("token_embd.weight", "output.weight")  # one row for each token
NO_END = "[NO END]"  # a token that we add to files of models without an end of text
NAME = re.compile(r"(?:blk\.(\d{1,5})\.)?(\w{1,40})\.(weight|bias)")
HF_NAME = re.compile(
    r"(?:(?:model\.layers|transformer\.h)\.(\d{1,5})\.)?([\w.]{1,60})\.(weight|bias)"
)


def gguf_weights(model: Model) -> dict[str, Tensor]:
    """The weights with GGUF's names, in the order that llama.cpp expects."""
    is_gpt2 = isinstance(model, GPT)
    layer = {other: own for own, other in (GPT2_LAYER if is_gpt2 else LAYER).items()}
    outside = {other: own for own, other in (GPT2_OUTSIDE if is_gpt2 else OUTSIDE).items()}
    weights = {}
    for name, tensor in hf_weights(model).items():
        found = HF_NAME.fullmatch(name)
        assert found is not None, name
        number, part, kind = found.groups()
        full = outside[part] if number is None else f"blk.{number}.{layer[part]}"
        if is_gpt2 and name.endswith(TRANSPOSED):
            tensor = tensor.T
        weights[f"{full}.{kind}"] = _paired(tensor, full, model.config)
    return weights


def hf_name(name: str, is_gpt2: bool) -> str | None:
    """The name that transformers has for a weight of a GGUF file, or None if it has none.

    >>> hf_name("blk.3.attn_q.weight", False), hf_name("output_norm.bias", True)
    ('model.layers.3.self_attn.q_proj.weight', 'transformer.ln_f.bias')
    """
    found = NAME.fullmatch(name)
    if found is None:
        return None
    number, part, kind = found.groups()
    if number is None:
        full = (GPT2_OUTSIDE if is_gpt2 else OUTSIDE).get(part)
    else:
        part = (GPT2_LAYER if is_gpt2 else LAYER).get(part, "")
        full = f"{'transformer.h' if is_gpt2 else 'model.layers'}.{number}.{part}" if part else None
    return full and f"{full}.{kind}"


def _rotates_neighbours(shape: Shape) -> bool:
    return isinstance(shape, ModernConfig) and not shape.qk_norm


def _paired(tensor: Tensor, name: str, shape: Shape) -> Tensor:
    """Rows of a Llama's queries or keys from two halves to neighbours."""
    if not _rotates_neighbours(shape) or not name.endswith(("attn_q", "attn_k")):
        return tensor
    D = shape.head_dim
    return tensor.view(-1, 2, D // 2, tensor.size(1)).transpose(1, 2).reshape(tensor.shape)


def halved(tensor: Tensor, name: str, shape: Shape) -> Tensor:
    """Rows of a Llama's queries or keys, as a GGUF file has them, to two halves."""
    if not _rotates_neighbours(shape) or not name.endswith(("q_proj.weight", "k_proj.weight")):
        return tensor
    D = shape.head_dim
    return tensor.view(-1, D // 2, 2, tensor.size(1)).transpose(1, 2).reshape(tensor.shape)
