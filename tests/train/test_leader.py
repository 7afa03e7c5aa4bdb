"""Rank 0 when it loses another process: what its checkpoint and its log say then."""

import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest
import torch

from stepglass.errors import ConfigError
from stepglass.hardware.ranks import Rank
from stepglass.train import following
from stepglass.train.engines import group
from stepglass.train.engines.engine import Engine
from stepglass.train.engines.group import GroupLost
from stepglass.train.engines.leading import Leader
from stepglass.train.engines.signs_of_life import SignsOfLife


class LastingShort:
    """A group whose other process ends when it is given this order."""

    def __init__(self, fatal: str) -> None:
        self.fatal, self.signs = fatal, SignsOfLife()

    def tell(self, order: str, **what: object) -> None:
        if order == self.fatal:
            raise GroupLost("rank 1 ended")

    def blaming(self) -> nullcontext[None]:
        return nullcontext()


class DrawingShare(Engine):
    """What a process computes, as far as random numbers go: a dropout in each backward pass."""

    def backward(self, batches, step, counted=1.0):
        return torch.rand(3).sum()

    def update(self, grad_clip):
        return None

    def score(self, x, y):
        return x

    def rehearse_update(self, grad_clip):
        pass


def leader(fatal: str, is_spread: bool = False) -> Leader:
    model = torch.nn.Linear(2, 2)
    device = SimpleNamespace(type="cpu", grad_scaler=lambda: None)
    share = DrawingShare(model, torch.optim.AdamW(model.parameters()), device)
    share.is_spread = is_spread
    return Leader(share, LastingShort(fatal))


def test_a_folder_that_another_process_does_not_see_is_refused_at_the_start():
    """As on two machines without a disk in common."""
    made = leader("nothing")
    made._share.saves_shards = True
    made._group.say_yes = lambda is_yes: [1]
    folder = SimpleNamespace(
        where=lambda: Path("out"), folder=SimpleNamespace(read=lambda name, most: b"locked")
    )
    with pytest.raises(ConfigError) as caught:
        made.check_folder(folder)
    error = str(caught.value)
    assert error.startswith(f"--out_dir={Path.cwd()}/out: rank 1 cannot see this folder of rank 0")
    assert error.endswith("type --checkpoint_shards=False if rank 0 has memory for all parts")


def lose(call: Callable[[], object]) -> None:
    with pytest.raises(GroupLost):
        call()


def test_a_process_lost_in_the_gradients_leaves_the_random_numbers_of_their_start():
    """The checkpoint written then is of that moment, and a resumed run repeats the update."""
    made = leader("backward")
    before = torch.get_rng_state()
    lose(lambda: made.backward([], 0))
    assert torch.equal(torch.get_rng_state(), before)


def test_a_process_lost_in_the_update_leaves_the_random_numbers_of_its_start():
    made = leader("update")
    before = torch.get_rng_state()
    made.backward([], 0)
    assert not torch.equal(torch.get_rng_state(), before)
    lose(lambda: made.update(0.0))
    assert torch.equal(torch.get_rng_state(), before)


def test_random_numbers_of_a_complete_update_are_kept():
    made = leader("has_finite_weights", is_spread=True)
    made.backward([], 0)
    made.update(0.0)
    after = torch.get_rng_state()
    lose(made.has_finite_weights)
    assert torch.equal(torch.get_rng_state(), after)


def test_random_numbers_that_a_checkpoint_brings_are_kept():
    """The warm-up computes gradients as well, before a checkpoint is restored."""
    made = leader("has_finite_weights", is_spread=True)
    made.backward([], 0)
    made.discard_gradients()
    torch.manual_seed(7)
    restored = torch.get_rng_state()
    lose(made.has_finite_weights)
    assert torch.equal(torch.get_rng_state(), restored)


# -- signs of life -------------------------------------------------------------------------------


def test_a_process_that_was_silent_for_a_while_is_told_once_it_is_back():
    signs = SignsOfLife()
    for second in range(30):
        is_cut = 10 <= second < 24
        signs.see({1: b"5 0 9" if is_cut else b"5 0 %d" % second, 2: b"5 0 %d" % second}, second)
        if is_cut:
            assert signs.silences() == []
    assert [event.as_dict() for event in signs.silences()] == [{"rank": 1, "silent_ms": 15_000}]
    assert signs.silences() == []


def test_a_note_that_a_busy_machine_delays_is_no_silence():
    signs = SignsOfLife()
    for at_s in (0.0, 1.0, 5.5, 10.0):
        signs.see({1: b"5 0 %d" % at_s}, at_s)
    assert signs.silences() == []


# -- the end -------------------------------------------------------------------------------------


def test_another_process_ends_its_writer_before_it_ends(monkeypatch):
    made = mock.Mock()
    monkeypatch.setattr(following, "Following", lambda *args: made)
    orders = iter([("start", {"config": {}, "data": {}}), ("discard_gradients", {}), ("close", {})])
    following.take_orders(SimpleNamespace(listen=lambda: next(orders)))
    assert made.mock_calls == [mock.call.discard_gradients(), mock.call.close()]


# -- the connection ------------------------------------------------------------------------------


class SlowStore(dict[str, bytes]):
    """torchrun's store on a busy machine: a note takes a while to arrive."""

    def __init__(self) -> None:
        super().__init__()
        self.is_asked = threading.Event()

    def clone(self) -> "SlowStore":
        return self

    def set(self, key: str, value: str) -> None:
        if key.startswith("at/"):
            self.is_asked.set()
            time.sleep(0.3)
        self[key] = value.encode()

    def get(self, key: str) -> bytes:  # type: ignore[override]
        return self[key]

    def check(self, keys: list[str]) -> bool:
        return all(key in self for key in keys)


@pytest.mark.parametrize("number", [0, 1])
def test_a_group_that_is_closed_has_no_thread_in_the_store(number, monkeypatch):
    """One that comes back from torch's code while the interpreter ends would abort the process."""
    monkeypatch.setattr(group, "NOTE_EVERY_S", 0.01)
    monkeypatch.setattr(group, "dist", mock.Mock())
    store = SlowStore()
    store["pid/0"] = b"1"
    before = set(threading.enumerate())
    made = group.Group(Rank(number=number, of=2, local=number, local_of=2), store, timeout_s=60)
    assert store.is_asked.wait(60)
    made.close()
    assert set(threading.enumerate()) <= before
