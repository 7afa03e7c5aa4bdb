"""What the tests of export and import share: small models that have opinions, and their logits."""

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from stepglass.cli import main
from stepglass.data.tokenizer import CharTokenizer
from stepglass.foreign import confined, confined_reader
from stepglass.foreign.foreign_model import ForeignModel
from stepglass.foreign.run_folder import write_run
from stepglass.measure.shapes import GPTConfig, ModernConfig, Shape
from stepglass.models.model import Model
from stepglass.models.registry import model_of
from stepglass.sample.load import Sampler, load_run

SIZES: dict[str, Any] = {"block_size": 32, "n_layer": 2, "n_head": 4, "n_embd": 64}
CHARS = CharTokenizer(
    {char: index for index, char in enumerate("\n !'abcdefghijklmnopqrstuvwxyzé€")}
)
MODERN = {**SIZES, "vocab_size": 40, "n_kv_head": 2, "n_inner": 96}
SHAPES: dict[str, Shape] = {
    "qwen3": ModernConfig(**MODERN, rope_theta=50_000.0),
    "qwen3 tied, wide heads": ModernConfig(**MODERN, tie_weights=True, n_head_dim=24),
    "llama": ModernConfig(**MODERN | {"n_kv_head": 1}, qk_norm=False, norm_eps=1e-5),
    "llama tied": ModernConfig(**MODERN | {"n_kv_head": 4}, qk_norm=False, tie_weights=True),
    "gpt2": GPTConfig(vocab_size=40, **SIZES),
    "gpt2 with biases": GPTConfig(vocab_size=40, bias=True, gelu="tanh", **SIZES),
}


def with_opinions(shape: Shape) -> Model:
    """A model no part of which is zero or one."""
    torch.manual_seed(5)
    model = model_of(shape).eval()
    for parameter in model.parameters():
        parameter.data += 0.2 * torch.randn_like(parameter)
    return model


def make_run(
    shape: Shape, out_dir: str = "out", tokenizer: dict[str, Any] | None = None, **more: Any
) -> Model:
    """A run directory with such a model."""
    model = with_opinions(shape)
    weights = {name: p.detach() for name, p in model.named_parameters()}
    codec = tokenizer or CHARS.to_json()
    list(write_run(ForeignModel(Path("x"), shape, weights, codec, **more), Path(out_dir)))
    return model


@torch.inference_mode()
def logits_of(model: Model, idx: Tensor) -> Tensor:
    return model.lm_head(model.hidden(idx))


def some_ids(vocab_size: int = 40, tokens: int = 32) -> Tensor:
    return torch.randint(vocab_size, (2, tokens), generator=torch.Generator().manual_seed(3))


def loaded(out_dir: str) -> Sampler:
    return load_run(Path(out_dir), torch.device("cpu"), on_skip=pytest.fail)


def imported(name: str, out_dir: str = "again") -> Sampler:
    assert main(["import", name, f"--out_dir={out_dir}"]) == 0
    return loaded(out_dir)


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Reads checkpoints and GGUF files in this process and without limits: starting one takes
    seconds. Other tests start it."""
    monkeypatch.setattr(confined_reader, "limit_self", lambda kind, num_bytes: None)

    def run(command: list[str], **options: Any) -> Any:
        stderr = sys.stderr
        code = confined_reader.entry_point(command[3:])
        assert sys.stderr is stderr
        error = capsys.readouterr().err
        return type("Done", (), {"returncode": code, "stderr": error})

    monkeypatch.setattr(confined.subprocess, "run", run)
