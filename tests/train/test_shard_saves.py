"""What rank 0 and the others tell each other about a save in shards, and who is to blame."""

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stepglass.errors import CheckpointError
from stepglass.train.building import choose_shards
from stepglass.train.engines import shard_saves
from stepglass.train.engines.shard_saves import OthersSaving, SavingOrder, sees_lock


class Store(dict[str, bytes]):
    """torchrun's store, in a dict."""

    def set(self, key: str, value: str) -> None:
        self[key] = value.encode()

    def get(self, key: str) -> bytes:  # type: ignore[override]
        return self[key]

    def check(self, keys: list[str]) -> bool:
        return all(key in self for key in keys)

    def delete_key(self, key: str) -> None:
        del self[key]


class ThreeProcesses:
    """A group of which nobody has ended, and each process gives a new note when asked."""

    timeout_s = 5.0

    def __init__(self, store: Store, number: int = 0) -> None:
        self.here = SimpleNamespace(number=number, of=3)
        self.ended: list[str] = []
        self.silent: list[int] = []
        self.never = False  # the silent ones have not even given a first note
        self._store, self._beats = store, 0

    def own_store(self) -> Store:
        return self._store

    def gone(self) -> list[str]:
        return self.ended

    def notes(self) -> dict[int, list[int]]:
        self._beats += 1
        found = {n: [7, 0, 0 if n in self.silent else self._beats] for n in range(3)}
        return {n: note for n, note in found.items() if not (self.never and n in self.silent)}


class Clock:
    """Passes while somebody sleeps, and not otherwise."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


@pytest.fixture
def clock(monkeypatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(shard_saves, "time", made)
    return made


def others(group: Any, has_lost: Any = lambda: False) -> OthersSaving:
    return OthersSaving(group, 4, waits=False, has_lost=has_lost)


def entry(size: int) -> dict[str, Any]:
    return {"bytes": size, "sha256": "0"}


def test_rank_0_gets_what_each_process_has_written(clock):
    store = Store()
    saving = others(ThreeProcesses(store))
    orders = [SavingOrder(ThreeProcesses(store, n), 4) for n in (1, 2)]  # type: ignore[arg-type]
    saving.begin(Path("out/ckpt/.tmp"))
    assert [order.folder() for order in orders] == [Path("out/ckpt/.tmp")] * 2
    for number, order in enumerate(orders, 1):
        order.answer({f"model-{number}": entry(number)}, None)
    assert saving.finish() == {"model-1": entry(1), "model-2": entry(2)}
    assert not any(key.startswith("save/4/") and key[-1].isdecimal() for key in store)


def test_the_error_of_another_process_is_named(clock):
    store = Store()
    saving = others(ThreeProcesses(store))
    SavingOrder(ThreeProcesses(store, 1), 4).answer({}, None)  # type: ignore[arg-type]
    SavingOrder(ThreeProcesses(store, 2), 4).answer({}, "no space left")  # type: ignore[arg-type]
    with pytest.raises(CheckpointError, match="rank 2: no space left"):
        saving.finish()


def test_a_save_that_rank_0_cannot_begin_is_forgotten(clock):
    store = Store()
    saving = others(ThreeProcesses(store))
    saving.cancel()
    assert SavingOrder(ThreeProcesses(store, 1), 4).folder() is None  # type: ignore[arg-type]
    begun = OthersSaving(ThreeProcesses(store), 5, waits=False, has_lost=lambda: False)  # type: ignore[arg-type]
    begun.begin(Path("out"))
    begun.cancel()
    order = SavingOrder(ThreeProcesses(store, 1), 5)  # type: ignore[arg-type]
    clock.sleep(1)
    assert (order.folder(), order.is_urgent()) == (Path("out"), True)  # to be ready soon


def test_training_that_waits_lets_the_others_hurry(clock):
    store = Store()
    order = SavingOrder(ThreeProcesses(store, 1), 4)  # type: ignore[arg-type]
    clock.sleep(1)
    assert not order.is_urgent()
    others(ThreeProcesses(store)).hurry()
    assert not order.is_urgent()  # it has just asked
    clock.sleep(1)
    assert order.is_urgent()


def test_rank_0_does_not_wait_for_a_process_that_has_ended(clock):
    group = ThreeProcesses(Store())
    group.ended = ["rank 2 (process 77)"]
    with pytest.raises(CheckpointError, match=r"rank 2 \(process 77\) ended before"):
        others(group).finish()


@pytest.mark.parametrize("never", [False, True])
def test_rank_0_does_not_wait_for_a_process_that_hangs(clock, never):
    group = ThreeProcesses(Store())
    group.silent = [1]
    group.never = never
    with pytest.raises(CheckpointError, match=r"rank 1 gave no sign of life for 5\.0s"):
        others(group).finish()
    assert 5 < clock.now_s < 9


def test_rank_0_waits_for_a_slow_process_as_long_as_it_lives(clock):
    store = Store()
    group = ThreeProcesses(store)
    SavingOrder(group, 4).answer({}, None)  # type: ignore[arg-type]
    lost = threading.Event()

    def has_lost() -> bool:
        if clock.now_s > 1000:
            lost.set()
        return lost.is_set()

    with pytest.raises(CheckpointError, match="was lost before"):
        others(group, has_lost).finish()
    assert clock.now_s > 1000


class DeadStore(Store):
    """A store on a machine that is gone: a call that waits for an answer does not return. torch
    lets one call at a time use a connection."""

    def __init__(self) -> None:
        super().__init__()
        self._never = threading.Event()

    def check(self, keys: list[str]) -> bool:
        return self._never.wait()


def test_rank_0_does_not_wait_for_a_store_on_a_machine_that_is_gone():
    asked = []

    def has_lost() -> bool:  # rank 0 notices in what it does meanwhile
        asked.append(1)
        return len(asked) > 2

    with pytest.raises(CheckpointError, match="was lost before"):
        others(ThreeProcesses(DeadStore()), has_lost).finish()


def test_training_that_waits_is_not_held_by_a_connection_that_another_thread_uses():
    stores = []
    group = ThreeProcesses(Store())
    group.own_store = lambda: stores.append(Store()) or stores[-1]  # type: ignore[func-returns-value]
    others(group).hurry()
    assert [bool(store) for store in stores] == [False, True]


def test_the_folder_of_rank_0_is_known_by_its_lock(clock):
    Path("LOCK").write_bytes(b"mine")
    assert sees_lock(Path(), b"mine")
    assert clock.now_s == 0
    assert not sees_lock(Path(), b"another")
    assert not sees_lock(Path("nothing"), b"mine")


@pytest.mark.parametrize(
    ("parallel", "asked", "free", "saves_shards"),
    [
        ("fsdp", "auto", 10**12, False),
        ("fsdp", "auto", 28 * 10**9, False),  # 1.2 times 24 bytes for each parameter
        ("fsdp", "auto", 29 * 10**9 // 2, True),
        ("fsdp", "auto", None, False),
        ("fsdp", True, 10**12, True),
        ("fsdp", False, 0, False),
        ("ddp", True, 0, False),
        ("ddp", "auto", 0, False),
    ],
)
def test_shards_are_chosen_where_rank_0_has_no_memory_for_all(
    parallel, asked, free, saves_shards, monkeypatch
):
    monkeypatch.setattr("stepglass.train.building.available_host_bytes", lambda: free)
    cfg = SimpleNamespace(parallel=parallel, checkpoint_shards=asked)
    shape = SimpleNamespace(num_params=lambda: 950_000_000)
    said: list[str] = []
    plan = SimpleNamespace(cfg=cfg, shape=shape)
    found = choose_shards(plan, SimpleNamespace(say=said.append))  # type: ignore[arg-type]
    assert found == saves_shards == bool(said)
