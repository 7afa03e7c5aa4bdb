"""Compares llama.cpp with Stepglass on exported GGUF files: 100 greedy tokens of each model.

    make llama-cpp        # fetches the package xllamacpp, which has llama.cpp in it (34 MB)

llama.cpp gets text and not tokens, so that the tokenizer in the file has to be right; of the
trained models it must also make the same tokens of a whole page. Prints a line for each model, and
ends with exit code 1 if one of them differs.
"""

import contextlib
import json
import os
import sys
import tempfile
import urllib.request
from typing import Any

import torch
import xllamacpp

from exported_models import CONTEXT, NUM_TOKENS, PROMPT, difference, exported_models


class LlamaCpp:
    """llama.cpp with a GGUF file, on a port of this machine. It computes in float32 on one core."""

    def __init__(self, path: str) -> None:
        params = xllamacpp.CommonParams()
        params.model.path = path
        params.n_ctx, params.n_parallel, params.cpuparams.n_threads = CONTEXT, 1, 1
        params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
        params.flash_attn_type = (
            xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED  # it computes in float16
        )
        params.warmup, params.verbosity = False, -1
        self._server = xllamacpp.Server(params)

    def tokens_of(self, text: str) -> list[int]:
        return list(self._ask("/tokenize", content=text, parse_special=False)["tokens"])

    def goes_on(self, prompt: str) -> list[int]:
        """The likeliest tokens after a prompt."""
        greedy = {"temperature": 0, "top_k": 1, "ignore_eos": True, "return_tokens": True}
        return list(
            self._ask("/completion", prompt=prompt, n_predict=NUM_TOKENS, **greedy)["tokens"]
        )

    def _ask(self, path: str, **asked: Any) -> Any:
        request = urllib.request.Request(
            self._server.listening_address + path,
            json.dumps(asked).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=300) as answer:
            return json.load(answer)


def compare() -> int:
    torch.set_num_threads(1)
    num_different = 0
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for model in exported_models("gguf", ".gguf"):
            theirs = LlamaCpp(os.path.abspath(f"{model.run}.gguf"))
            found = difference(model, theirs.tokens_of(model.text), theirs.goes_on(PROMPT))
            num_different += bool(found)
            sys.stdout.write(f"{model.name}: {found or f'the same {NUM_TOKENS} tokens'}\n")
            sys.stdout.flush()
    return 1 if num_different else 0


if __name__ == "__main__":
    sys.exit(compare())
