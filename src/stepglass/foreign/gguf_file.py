"""A GGUF file of llama.cpp with a GPT-2, a Qwen3 or a Llama."""

from pathlib import Path
from typing import Any

from torch import Tensor

from stepglass.data.library_tokenizer import WORD_SPLITS, letters_of_bytes
from stepglass.errors import CheckpointError
from stepglass.foreign.confined import read_confined
from stepglass.foreign.foreign_model import ForeignModel, checked, shape_or_refuse
from stepglass.foreign.hf_tokenizer import fitting, of_own_kind
from stepglass.foreign.pieces_tokenizer import pieces_tokenizer
from stepglass.measure.shapes import GPTConfig, ModernConfig, Shape
from stepglass.models.gguf_names import NO_END, TABLES, halved, hf_name
from stepglass.models.hf_names import LAYER_NORM_EPS, TRANSPOSED, own_weights
from stepglass.units import shown

MAGIC = b"GGUF"
KNOWN = ("gpt2", "qwen3", "llama")
NOT_WEIGHTS = ("rope_freqs.weight",)  # a table that scales rotary positions
CONTROL, USER_DEFINED, UNUSED = 3, 4, 5  # kinds of tokens
NAMED_SPLITS = {"default": "gpt-2", "llama3": "llama-bpe", "qwen3": "qwen2"}


def read_gguf_file(path: Path) -> ForeignModel:
    """Read a GGUF file; weights of few bits become float32."""
    with read_confined("gguf", path) as (facts, tensors):
        _drop_our_end(facts, tensors)
        shape = shape_or_refuse(path, lambda: _shape(facts, tensors))
        weights = checked(path, shape, own_weights(_renamed(path, tensors, shape), shape))
    codec = _tokenizer(path, facts, shape.vocab_size)
    return ForeignModel(path, shape, weights, codec)


def _drop_our_end(facts: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    """The token that our export adds for llama.cpp is not the model's."""
    tokens = facts.get("tokenizer.ggml.tokens")
    if isinstance(tokens, list) and tokens and tokens[-1] == NO_END:
        facts["tokenizer.ggml.tokens"] = tokens[:-1]
        facts["tokenizer.ggml.token_type"] = (facts.get("tokenizer.ggml.token_type") or [])[:-1]
        for name in TABLES:
            if name in tensors:
                tensors[name] = tensors[name][:-1]


def _shape(facts: dict[str, Any], tensors: dict[str, Tensor]) -> Shape:
    kind = facts.get("general.architecture")
    if kind not in KNOWN:
        raise ValueError(f"general.architecture is {shown(kind)}, expected {', '.join(KNOWN)}")
    if "token_embd.weight" not in tensors or tensors["token_embd.weight"].dim() != 2:
        raise ValueError("token_embd.weight is missing")
    sizes: dict[str, Any] = {
        "vocab_size": len(tensors["token_embd.weight"]),
        "block_size": facts[f"{kind}.context_length"],
        "n_layer": facts[f"{kind}.block_count"],
        "n_head": facts[f"{kind}.attention.head_count"],
        "n_embd": facts[f"{kind}.embedding_length"],
    }
    if kind == "gpt2":
        eps = float(facts.get("gpt2.attention.layer_norm_epsilon", LAYER_NORM_EPS))
        if abs(eps - LAYER_NORM_EPS) > 1e-8:
            raise ValueError(f"its norms have epsilon {eps}, expected {LAYER_NORM_EPS}")
        return GPTConfig(**sizes, bias=True, gelu="tanh")  # as llama.cpp computes it
    if "rope_freqs.weight" in tensors or facts.get(f"{kind}.rope.scaling.type", "none") != "none":
        raise ValueError("its rotary positions are scaled, which is not known here")
    head_dim = facts.get(f"{kind}.attention.key_length", 0)
    is_usual = type(sizes["n_head"]) is int and head_dim * sizes["n_head"] == sizes["n_embd"]
    return ModernConfig(
        **sizes,
        n_kv_head=facts.get(f"{kind}.attention.head_count_kv", 0),
        n_head_dim=0 if is_usual else head_dim,
        n_inner=facts[f"{kind}.feed_forward_length"],
        tie_weights="output.weight" not in tensors,
        rope_theta=_rounded(facts.get(f"{kind}.rope.freq_base", 10_000.0)),
        norm_eps=_rounded(facts[f"{kind}.attention.layer_norm_rms_epsilon"]),
        qk_norm=kind == "qwen3",
    )


def _rounded(value: float) -> float:
    """A number that was stored with 7 digits: 9.999999747378752e-06 was 1e-05."""
    return float(f"{float(value):.7g}")


def _renamed(path: Path, tensors: dict[str, Tensor], shape: Shape) -> dict[str, Tensor]:
    is_gpt2 = isinstance(shape, GPTConfig)
    found = {}
    for name, tensor in tensors.items():
        other = hf_name(name, is_gpt2)
        if other is None:
            raise CheckpointError(f"{path}: {name[:80]}: no model here has such a weight")
        if is_gpt2 and other.endswith(TRANSPOSED) and tensor.dim() == 2:
            tensor = tensor.T
        expected = tensor.dim() == 2 and tensor.size(0) % shape.head_dim == 0
        found[other] = halved(tensor, other, shape) if expected else tensor
    return found


# -- the tokenizer ------------------------------------------------------------------------------


def _tokenizer(path: Path, facts: dict[str, Any], vocab_size: int) -> dict[str, Any]:
    tokens, kinds = facts.get("tokenizer.ggml.tokens"), facts.get("tokenizer.ggml.token_type")
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        raise CheckpointError(f"{path}: expected tokens, found {shown(tokens)}")
    if not isinstance(kinds, list) or len(kinds) != len(tokens):
        kinds = [1] * len(tokens)
    used = {t: i for i, (t, kind) in enumerate(zip(tokens, kinds, strict=True)) if kind != UNUSED}
    model = facts.get("tokenizer.ggml.model")
    if model == "gpt2" and (chars := _characters(used)) is not None:
        return fitting({"kind": "char", "chars": chars}, vocab_size, path)
    if model == "gpt2":
        stored = _bytes_tokenizer(path, facts, used)
    elif model == "llama":
        stored = pieces_tokenizer(path, facts, tokens, used)
    else:
        raise CheckpointError(f"{path}: its tokenizer is {shown(model)}, expected gpt2 or llama")
    special = [i for i, kind in enumerate(kinds) if kind in (CONTROL, USER_DEFINED)]
    stored["added_tokens"] = [_added(i, tokens[i], kinds[i] == CONTROL) for i in special]
    template = facts.get("tokenizer.chat_template")
    found = {
        "kind": "hf",
        "tokenizer": stored,
        "end_of_text": _token(tokens, facts.get("tokenizer.ggml.eos_token_id")),
        "begin_of_text": _token(tokens, facts.get("tokenizer.ggml.bos_token_id")),
        "chat_template": template if isinstance(template, str) else None,
        "word_split": facts.get("tokenizer.ggml.pre"),
    }
    return of_own_kind(fitting(found, vocab_size, path))


def _characters(used: dict[str, int]) -> dict[str, int] | None:
    """The characters of a model that knows nothing longer, as we export it; None of any other."""
    bytes_of = {letter: byte for byte, letter in letters_of_bytes().items()}
    chars: dict[str, int] = {}
    for token, index in used.items():
        try:
            text = bytes(bytes_of[letter] for letter in token).decode()
        except (KeyError, UnicodeDecodeError):
            return None
        if len(text) != 1:
            return None
        chars[text] = index
    return chars or None


def _added(index: int, content: str, is_special: bool) -> dict[str, Any]:
    plain = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": index, "content": content, "special": is_special, **plain}


def _token(tokens: list[str], index: object) -> str | None:
    return tokens[index] if type(index) is int and 0 <= index < len(tokens) else None


def _bytes_tokenizer(path: Path, facts: dict[str, Any], used: dict[str, int]) -> dict[str, Any]:
    """BPE of bytes, as GPT-2, Qwen and newer Llamas have it."""
    name = facts.get("tokenizer.ggml.pre", "default")
    split = WORD_SPLITS.get(NAMED_SPLITS.get(str(name), str(name)))
    if split is None:
        known = ", ".join(WORD_SPLITS)
        raise CheckpointError(
            f"{path}: splits words in the way {shown(name)}, which is not known here ({known} are)"
        )
    merges = facts.get("tokenizer.ggml.merges", [])
    if not isinstance(merges, list) or not all(isinstance(pair, str) for pair in merges):
        raise CheckpointError(f"{path}: expected merges of tokens, found {shown(merges)}")
    pairs = [pair.split(" ") for pair in merges]
    return {
        "version": "1.0",
        "normalizer": {"type": "NFC"} if name in ("qwen2", "qwen3") else None,
        "pre_tokenizer": split,
        "decoder": {**WORD_SPLITS["gpt-2"]},
        "model": {
            "type": "BPE",
            "vocab": used,
            "merges": pairs,
            "ignore_merges": name in ("llama-bpe", "llama3"),
        },
    }
