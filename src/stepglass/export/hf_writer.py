"""A folder that the transformers library and vLLM load without code of ours."""

from collections.abc import Iterator
from pathlib import Path

import safetensors.torch
import torch

from stepglass import json_files
from stepglass.data.tokenizer import Tokenizer
from stepglass.export.model_card import model_card
from stepglass.export.tokenizer_file import tokenizer_config, tokenizer_json
from stepglass.models.hf_names import hf_config, hf_weights
from stepglass.sample.load import Sampler

DTYPES = {"f32": torch.float32, "f16": torch.float16}


def write_hf(loaded: Sampler, folder: Path, run_dir: Path, dtype: str) -> Iterator[str]:
    """Write weights, config, tokenizer and model card. Yields lines to print."""
    folder.mkdir()
    kind = DTYPES[dtype]
    weights = {n: w.detach().to(kind).contiguous() for n, w in hf_weights(loaded.model).items()}
    safetensors.torch.save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    config = hf_config(loaded.model.config) | _token_ids(loaded.tokenizer)
    config["dtype"] = config["torch_dtype"] = str(kind).removeprefix("torch.")
    json_files.write_json(folder / "config.json", config)
    json_files.write_json(folder / "generation_config.json", _token_ids(loaded.tokenizer))
    found = tokenizer_json(loaded.tokenizer)
    if found is None:
        yield "note: no tokenizer is written: a table of words has no tokenizer.json"
    else:
        json_files.write_json(folder / "tokenizer.json", found)
        settings = tokenizer_config(loaded.tokenizer, loaded.model.config.block_size)
        json_files.write_json(folder / "tokenizer_config.json", settings)
    (folder / "README.md").write_text(model_card(loaded, run_dir), encoding="utf-8")


def _token_ids(codec: Tokenizer) -> dict[str, int | None]:
    """None, if there is no such token: the library's defaults would be GPT-2's."""
    begin = getattr(codec, "begin_of_text", codec.end_of_text)
    return {"bos_token_id": begin, "eos_token_id": codec.end_of_text}
