"""What happens before iteration 0 makes it a step like any other, and leaves no trace."""

import pytest

from helpers import prepare_tiny, train_tiny
from stepglass.checkpoint import tensors
from stepglass.train import loop, setup
from stepglass.train.optimizer import MuonAdamW


@pytest.fixture(autouse=True)
def data():
    prepare_tiny()


def state_of(s):
    """All that a checkpoint would keep, byte for byte: 0.0 is not -0.0 here."""
    files = tensors.live_tensors(s.raw_model, s.optimizer, s.device.type)
    stored = {
        (file, name): tensor.detach().contiguous().numpy().tobytes()
        for file, tensors in files.items()
        for name, tensor in tensors.items()
    }
    return stored, s.scaler.state_dict()


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

    def warm_up(s):
        assert (s.replicas is not None) == (replicas > 1)
        states.append(state_of(s))
        with monkeypatch.context() as patch:
            patch.setattr(MuonAdamW, "step", step)
            real_warm_up(s)
        states.append(state_of(s))
        states.append([p.grad for p in s.raw_model.parameters()] if replicas == 1 else None)

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
    real = loop.forward_backward

    def forward_backward(s, micro_batches):
        reserved.append(s.saver.is_reserved)
        return real(s, micro_batches)

    monkeypatch.setattr(loop, "forward_backward", forward_backward)
    assert train_tiny(max_iters=3) == 0
    assert reserved == [True] * 3


def test_a_run_that_only_evaluates_makes_no_room_for_snapshots(monkeypatch):
    asked = []
    monkeypatch.setattr(
        "stepglass.checkpoint.writer.Saver.reserve", lambda self, files: asked.append(files)
    )
    assert train_tiny(eval_only=True) == 0
    assert asked == []
