"""Compares llama.cpp with Stepglass on exported GGUF files: 100 greedy tokens of each model.

    make llama-cpp        # fetches the package xllamacpp, which has llama.cpp in it (34 MB)

The models have random weights, in every shape that tests/exchange.py has, or are trained for a
moment on docs/*.md, as characters and as BPE. llama.cpp gets text and not tokens, so that the
tokenizer in the file has to be right; of the trained ones it must also make the same tokens of a
whole page. Prints a line for each model, and ends with exit code 1 if one of them differs.
"""

import contextlib
import io
import json
import os
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import torch
import xllamacpp

from exchange import SHAPES, loaded, make_run
from stepglass.cli import main
from stepglass.data.marked_text import encode_text
from stepglass.data.tokenizer import CharTokenizer
from stepglass.models.decoding import Draw, generate
from stepglass.sample.load import Sampler

DOCS = Path(__file__).parent.parent / "docs"
NUM_TOKENS = 100
CONTEXT = 256
PROMPT = "the run log has "
PAGE = (DOCS / "use-your-model.md").read_text(encoding="utf-8")
# Every id of the random models is a character: llama.cpp must not write the end of a text, which
# would be one of the ids that are free.
CHARS = CharTokenizer(
    {char: index for index, char in enumerate(f"{ascii_lowercase} ,.!?:;'\né€ß→")}
)
SMALL = {"n_layer": 2, "n_head": 4, "n_embd": 64, "block_size": CONTEXT, "batch_size": 4}
BRIEF = {"max_iters": 100, "eval_interval": 100, "eval_iters": 2, "device": "cpu"}
# `gelu=tanh` is how llama.cpp computes GPT-2's GELU.
TRAINED = {
    "modern, characters": ("char", {"model": "modern"}),
    "llama, characters": ("char", {"model": "modern", "qk_norm": False}),
    "gpt2, characters": ("char", {"model": "gpt2", "gelu": "tanh"}),
    "modern, BPE": ("bpe", {"model": "modern"}),
}


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


def do(*argv: str) -> None:
    """Run a command without its lines, unless it fails."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = main(list(argv))
    if code:
        sys.exit(f"stepglass {' '.join(argv)}: exit code {code}\n{said.getvalue()}")


def flags(settings: dict[str, Any]) -> list[str]:
    return [f"--{key}={value}" for key, value in settings.items()]


def random_models() -> Iterator[tuple[str, Sampler, str]]:
    """The name of each model, the model, and a text that is cut into its tokens."""
    for number, (name, shape) in enumerate(SHAPES.items()):
        run, sized = f"random-{number}", {"block_size": CONTEXT, "vocab_size": CHARS.vocab_size}
        make_run(replace(shape, **sized), run, CHARS.to_json())
        yield f"{name}, random", exported(run), PROMPT


def trained_models() -> Iterator[tuple[str, Sampler, str]]:
    pages = sorted(map(str, DOCS.glob("*.md")))
    do("prepare", *pages, "--name=char", "--tokenizer=char")
    do("prepare", *pages, "--name=bpe", "--tokenizer=bpe", "--vocab_size=512")
    for number, (name, (data, model)) in enumerate(TRAINED.items()):
        out = f"trained-{number}"
        do("train", data, f"--out_dir={out}", *flags(SMALL | BRIEF | model))
        yield f"{name}, trained", exported(out), PAGE


def exported(run: str) -> Sampler:
    do("export", run, "--to=gguf", f"--out={run}.gguf")
    return loaded(run)


def difference(ours: Sampler, theirs: LlamaCpp, text: str) -> str:
    """What differs, or nothing."""
    if theirs.tokens_of(text) != encode_text(text, ours.tokenizer):
        return "other tokens of the same text"
    ids = encode_text(PROMPT, ours.tokenizer)
    here = list(generate(ours.model, ids, max_new_tokens=NUM_TOKENS, draw=Draw(temperature=0)))
    there = theirs.goes_on(PROMPT)
    if here != there:
        same = next(n for n, pair in enumerate(zip_longest(here, there)) if pair[0] != pair[1])
        return f"only the first {same} of {NUM_TOKENS} tokens are the same"
    return ""


def compare() -> int:
    torch.set_num_threads(1)
    num_different = 0
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for models in (random_models(), trained_models()):
            for name, ours, text in models:
                run = ours.path.parent.parent
                found = difference(ours, LlamaCpp(os.path.abspath(f"{run}.gguf")), text)
                num_different += bool(found)
                sys.stdout.write(f"{name}: {found or f'the same {NUM_TOKENS} tokens'}\n")
                sys.stdout.flush()
    return 1 if num_different else 0


if __name__ == "__main__":
    sys.exit(compare())
