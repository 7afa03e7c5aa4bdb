"""A GGUF file for llama.cpp and Ollama, written by the `gguf` package."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from stepglass.data.library_tokenizer import LibraryTokenizer, letters_of_bytes, word_split_of
from stepglass.data.tokenizer import BpeTokenizer, CharTokenizer, Tokenizer
from stepglass.errors import CheckpointError, ConfigError
from stepglass.export.tokenizer_file import tokenizer_json
from stepglass.measure.shapes import GPTConfig, ModernConfig, Shape
from stepglass.models.gguf_names import NO_END, TABLES, gguf_weights
from stepglass.models.hf_names import LAYER_NORM_EPS
from stepglass.sample.load import Sampler

if TYPE_CHECKING:
    import gguf

INSTALL = "pip install gguf"
FILE_TYPES = {"f32": 0, "f16": 1, "q8_0": 7}  # general.file_type
BLOCK = 32  # numbers that share a scale in q8_0


def require_package() -> None:
    if importlib.util.find_spec("gguf") is None:
        raise ConfigError(f"--to=gguf needs the package gguf, which is not installed: {INSTALL}")


def write_gguf(loaded: Sampler, path: Path, run_dir: Path, dtype: str) -> Iterator[str]:
    """Write one file with the model's shape, weights and tokenizer. Yields lines to print."""
    import gguf  # noqa: PLC0415  an optional package

    shape = loaded.model.config
    if isinstance(shape, GPTConfig) and shape.gelu == "exact":
        yield "note: llama.cpp approximates GPT-2's GELU: its text may differ after a while"
    architecture = architecture_of(shape)
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_name(run_dir.resolve().name)
    writer.add_file_type(FILE_TYPES[dtype])
    is_longer = needs_end(loaded.tokenizer, shape.vocab_size)
    _add_shape(writer, shape)
    writer.add_vocab_size(shape.vocab_size + is_longer)
    _add_tokenizer(writer, loaded.tokenizer, shape.vocab_size)
    for name, tensor in gguf_weights(loaded.model).items():
        _add_tensor(writer, name, with_end(name, tensor) if is_longer else tensor, dtype)
    if isinstance(loaded.tokenizer, CharTokenizer):
        yield "note: llama.cpp shows an error for characters that the model has never seen"
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def architecture_of(shape: Shape) -> str:
    if isinstance(shape, ModernConfig):
        return "qwen3" if shape.qk_norm else "llama"
    return "gpt2"


def _add_shape(writer: "gguf.GGUFWriter", shape: Shape) -> None:
    writer.add_context_length(shape.block_size)
    writer.add_embedding_length(shape.n_embd)
    writer.add_block_count(shape.n_layer)
    writer.add_head_count(shape.n_head)
    if isinstance(shape, ModernConfig):
        writer.add_feed_forward_length(shape.inner)
        writer.add_head_count_kv(shape.kv_heads)
        writer.add_key_length(shape.head_dim)
        writer.add_value_length(shape.head_dim)
        writer.add_rope_dimension_count(shape.head_dim)
        writer.add_rope_freq_base(shape.rope_theta)
        writer.add_layer_norm_rms_eps(shape.norm_eps)
    else:
        writer.add_feed_forward_length(4 * shape.n_embd)
        writer.add_layer_norm_eps(LAYER_NORM_EPS)


def _add_tensor(writer: "gguf.GGUFWriter", name: str, tensor: Tensor, dtype: str) -> None:
    """Vectors stay in float32, as llama.cpp expects them; so do position tables."""
    import gguf  # noqa: PLC0415

    array = tensor.detach().float().contiguous().numpy()
    is_matrix = array.ndim == 2 and not name.startswith("position_embd")
    if is_matrix and dtype == "q8_0" and array.shape[-1] % BLOCK == 0:
        kind = gguf.GGMLQuantizationType.Q8_0
        writer.add_tensor(name, gguf.quants.quantize(array, kind), raw_dtype=kind)
    elif is_matrix and dtype != "f32":
        writer.add_tensor(name, array.astype("float16"))
    else:
        writer.add_tensor(name, array)


# -- the tokenizer ------------------------------------------------------------------------------


def _add_tokenizer(writer: "gguf.GGUFWriter", codec: Tokenizer, vocab_size: int) -> None:
    import gguf  # noqa: PLC0415

    vocab, merges, split, special = vocabulary(codec)
    by_id = {index: token for token, index in vocab.items()}
    normal, control, unused = (
        int(kind) for kind in (gguf.TokenType.NORMAL, gguf.TokenType.CONTROL, gguf.TokenType.UNUSED)
    )
    free = [index for index in range(vocab_size) if index not in by_id]
    tokens = [by_id.get(index, f"[PAD{index}]") for index in range(vocab_size)]
    kinds = [
        unused if index not in by_id else control if index in special else normal
        for index in range(vocab_size)
    ]
    end = codec.end_of_text
    if end is None and free:
        end = free[0]
    elif end is None:
        end = vocab_size
        tokens.append(NO_END)
        kinds.append(unused)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(split)
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges(merges)
    writer.add_add_bos_token(False)
    writer.add_eos_token_id(end)
    begin = getattr(codec, "begin_of_text", None)
    writer.add_bos_token_id(end if begin is None else begin)
    template = getattr(codec, "chat_template", None)
    if template:
        writer.add_chat_template(template)


def needs_end(codec: Tokenizer, vocab_size: int) -> bool:
    """True if the table of tokens must become longer by one. llama.cpp takes token 11 for the end
    of a text if a file names no other, and would stop there. A model of characters has none, and
    every id may be a character."""
    return codec.end_of_text is None and len(set(vocabulary(codec)[0].values())) >= vocab_size


def with_end(name: str, tensor: Tensor) -> Tensor:
    """A table of tokens with one row more, the mean of all. Its logit is the mean of all logits, so
    it is never the likeliest, and seldom drawn."""
    if name not in TABLES:
        return tensor
    return torch.cat([tensor, tensor.mean(0, keepdim=True)])


Vocabulary = tuple[dict[str, int], list[str], str, set[int]]


def vocabulary(codec: Tokenizer) -> Vocabulary:
    """Tokens with their ids, merges, the name of the way to split words, and special ids. All
    tokens are written as bytes, each byte as one printable character, as GPT-2 does."""
    if isinstance(codec, CharTokenizer):
        return _of_characters(codec.to_json()["chars"])
    found: Any = tokenizer_json(codec)
    if found is None or found["model"].get("type") != "BPE":
        raise CheckpointError(
            "this tokenizer cannot be written to a GGUF file: expected characters or BPE of bytes, "
            "found another; export with --to=hf"
        )
    split = "gpt-2" if isinstance(codec, BpeTokenizer) else word_split_of(found)
    if isinstance(codec, LibraryTokenizer):
        split = codec.to_json().get("word_split") or split
    if split is None:
        raise CheckpointError(
            "this tokenizer splits words in a way that is not known to GGUF files; export with "
            "--to=hf"
        )
    vocab = dict(found["model"]["vocab"])
    added = found.get("added_tokens", [])
    vocab |= {token["content"]: token["id"] for token in added}
    merges = [m if isinstance(m, str) else " ".join(m) for m in found["model"]["merges"]]
    return vocab, merges, split, {token["id"] for token in added if token["special"]}


def _of_characters(chars: dict[str, int]) -> Vocabulary:
    """A character of several bytes is merged from them, first the first two."""
    letters = letters_of_bytes()
    vocab: dict[str, int] = {}
    # llama.cpp expects at least one merge. No text has two bytes 255, so this one changes nothing.
    merges: dict[str, None] = {f"{letters[255]} {letters[255]}": None}
    for char, index in chars.items():
        parts = [letters[byte] for byte in char.encode("utf-8", errors="surrogatepass")]
        vocab["".join(parts)] = index
        for end in range(1, len(parts)):
            merges[f"{''.join(parts[:end])} {parts[end]}"] = None
    return vocab, list(merges), "gpt-2", set()
