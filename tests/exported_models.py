"""Models that other programs are compared with: in every shape, and trained for a moment.

The ones with random weights have the shapes of tests/exchange.py; the others learn docs/*.md, as
characters and as BPE, for 100 updates. `make llama-cpp` and `make vllm` use them.
"""

import contextlib
import io
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from string import ascii_lowercase
from typing import Any

from exchange import SHAPES, loaded, make_run
from stepglass.cli import main
from stepglass.data.marked_text import encode_text
from stepglass.data.tokenizer import CharTokenizer
from stepglass.measure.shapes import Shape
from stepglass.models.decoding import Draw, generate
from stepglass.sample.load import Sampler

Resized = Callable[[Shape], Shape]

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


@dataclass(frozen=True)
class Exported:
    """A model that was exported from `RUN` to a file or a folder beside it."""

    name: str
    ours: Sampler
    run: Path
    text: str  # that another program must cut into the same tokens

    @property
    def tokens(self) -> list[int]:
        return encode_text(self.text, self.ours.tokenizer)

    def goes_on(self) -> list[int]:
        """The likeliest tokens after the prompt."""
        ids = encode_text(PROMPT, self.ours.tokenizer)
        draw = Draw(temperature=0)
        return list(generate(self.ours.model, ids, max_new_tokens=NUM_TOKENS, draw=draw))


def do(*argv: str) -> None:
    """Run a command without its lines, unless it fails."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = main(list(argv))
    if code:
        sys.exit(f"stepglass {' '.join(argv)}: exit code {code}\n{said.getvalue()}")


def flags(settings: dict[str, Any]) -> list[str]:
    return [f"--{key}={value}" for key, value in settings.items()]


def random_models(resized: Resized) -> Iterator[tuple[str, Path, str]]:
    """The name of each model, its run, and a text that is cut into its tokens."""
    for number, (name, shape) in enumerate(SHAPES.items()):
        run = f"random-{number}"
        sizes = {"block_size": CONTEXT, "vocab_size": CHARS.vocab_size}
        make_run(resized(replace(shape, **sizes)), run, CHARS.to_json())
        yield f"{name}, random", Path(run), PROMPT


def trained_models(**changed: Any) -> Iterator[tuple[str, Path, str]]:
    """The same of models that are trained here, with these settings changed."""
    pages = sorted(map(str, DOCS.glob("*.md")))
    do("prepare", *pages, "--name=char", "--tokenizer=char")
    do("prepare", *pages, "--name=bpe", "--tokenizer=bpe", "--vocab_size=512")
    for number, (name, (data, model)) in enumerate(TRAINED.items()):
        out = f"trained-{number}"
        do("train", data, f"--out_dir={out}", *flags(SMALL | BRIEF | model | changed))
        yield f"{name}, trained", Path(out), PAGE


def exported_models(
    to: str, ending: str, resized: Resized = lambda shape: shape, **changed: Any
) -> Iterator[Exported]:
    """All of them, exported as `RUN` with this ending, such as `out.gguf`. `resized` changes the
    sizes of the random ones, `changed` those of the trained."""
    for models in (random_models(resized), trained_models(**changed)):
        for name, run, text in models:
            do("export", str(run), f"--to={to}", f"--out={run}{ending}")
            yield Exported(name, loaded(str(run)), run, text)


def difference(model: Exported, tokens: Sequence[int], goes_on: Sequence[int]) -> str:
    """How another program's tokens of the text, and after the prompt, differ; or nothing."""
    if list(tokens) != model.tokens:
        return "other tokens of the same text"
    pairs = enumerate(zip_longest(model.goes_on(), goes_on))
    same = next((number for number, (here, there) in pairs if here != there), None)
    return "" if same is None else f"only the first {same} of {NUM_TOKENS} tokens are the same"
