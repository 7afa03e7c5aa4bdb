"""Runs that are stopped, resumed and compared to the last bit."""

import hashlib
from pathlib import Path

import pytest
import torch
from torch import Tensor

from helpers import story
from hooks import after_each_update
from stepglass.checkpoint import tensors
from stepglass.cli import main
from stepglass.run_dir import checkpoints
from stepglass.train.run import Run


def digest(out_dir: str) -> dict[str, str]:
    """The sha256 of the newest checkpoint's weights, optimizer and generators."""
    newest = checkpoints.committed(Path(out_dir))[0]
    return {
        name: hashlib.sha256((newest / name).read_bytes()).hexdigest()
        for name in checkpoints.FILES[:3]
    }


def stored_tensors(out_dir: str) -> dict[str, Tensor]:
    """Weights and optimizer of the newest checkpoint, whole or in shards."""
    snapshot = tensors.load_snapshot(checkpoints.committed(Path(out_dir))[0])
    return {**snapshot.model, **snapshot.optim}


def are_same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    """Bit for bit."""
    return one.keys() == other.keys() and all(torch.equal(one[n], other[n]) for n in one)


def losses(out_dir: str) -> list[tuple[int, str]]:
    return [(r["iter"], float(r["loss"] or "nan").hex()) for r in story("iter", out_dir)]


def evaluations(out_dir: str) -> list[tuple[int, float, float]]:
    return [(r["iter"], r["train_loss"], r["val_loss"]) for r in story("eval", out_dir)]


def stop_after(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """A signal that arrives during the given update."""

    def signal(run: Run) -> None:
        if run.state.step + 1 == step:
            run.stop.name = "SIGINT"

    after_each_update(monkeypatch, signal)


def resume(out_dir: str) -> int:
    return main(["train", f"--out_dir={out_dir}", "--init_from=resume"])
