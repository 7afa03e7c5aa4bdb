"""What happens before iteration 0 makes it a step like any other, and leaves no trace."""

import pytest

from helpers import prepare_tiny, train_tiny
from stepglass.train import setup
from stepglass.train.engines.replicas import Replicas
from stepglass.train.muon import MuonAdamW
from stepglass.train.saves import Saves


@pytest.fixture(autouse=True)
def data():
    prepare_tiny()


def state_of(run):
    """All that a checkpoint would keep, byte for byte: 0.0 is not -0.0 here."""
    files = run.engine.tensors()
    stored = {
        (file, name): tensor.detach().contiguous().numpy().tobytes()
        for file, tensors in files.items()
        for name, tensor in tensors.items()
    }
    return stored, run.engine.state()


@pytest.mark.slow
@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
@pytest.mark.parametrize("grad_clip", [0.0, 1.0])
def test_an_update_is_rehearsed_and_changes_not_a_bit(
    replicas, optimizer, grad_clip, threads, monkeypatch
):
    threads(replicas)
    rehearsed, states = [], []
    real_step, real_warm_up = MuonAdamW.step, setup.warm_up

    def step(self):
        rehearsed.append([p.grad is not None for p in self.parameters()])
        return real_step(self)

    def warm_up(run, windows):
        assert isinstance(run.engine, Replicas) == (replicas > 1)
        states.append(state_of(run))
        with monkeypatch.context() as patch:
            patch.setattr(MuonAdamW, "step", step)
            real_warm_up(run, windows)
        states.append(state_of(run))
        weights = run.engine.model.parameters()
        states.append([p.grad for p in weights] if replicas == 1 else None)

    monkeypatch.setattr(setup, "warm_up", warm_up)
    assert train_tiny(optimizer=optimizer, grad_clip=grad_clip, dropout=0.1, max_iters=1) == 0
    before, after, gradients = states
    assert after == before
    assert len(before[0]) > 20
    assert len(rehearsed) == 1
    assert all(rehearsed[0])  # no weight was passed over
    assert gradients is None or all(gradient is None for gradient in gradients)


def test_room_for_a_snapshot_is_asked_for_before_the_first_iteration(monkeypatch):
    reserved = []
    real = Saves.protect

    def protect(self):
        reserved.append(self.writer.is_reserved)
        real(self)

    monkeypatch.setattr(Saves, "protect", protect)
    assert train_tiny(max_iters=3) == 0
    assert reserved == [True] * 3


def test_a_run_that_only_evaluates_makes_no_room_for_snapshots(monkeypatch):
    asked = []
    monkeypatch.setattr(
        "stepglass.checkpoint.writer.CheckpointWriter.reserve",
        lambda self, files: asked.append(files),
    )
    assert train_tiny(eval_only=True) == 0
    assert asked == []
