"""The background writer: what training waits for, and what it does not."""

import errno
import itertools
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from disks import HookedDisk
from helpers import open_run, prepare_tiny, records, train_tiny
from stepglass.checkpoint import tensors as checkpoint
from stepglass.checkpoint.writer import CheckpointWriter, SaveRequest
from stepglass.files import FileOps
from stepglass.hardware.choose import pick_device
from stepglass.hardware.host_copy import Copy, SharedCopy
from stepglass.measure.records import IterRecord
from stepglass.measure.run_log import RunLogWriter
from stepglass.run_dir import checkpoints
from stepglass.run_dir.commit import Retention
from stepglass.settings.train import TrainConfig

RUN = Path("run")
DEVICE = pick_device(TrainConfig(device="cpu"))


class Gate:
    """A disk that holds every write until it is opened."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.reached = threading.Event()
        self.disk = HookedDisk(self._before)

    def _before(self, n: int, name: str, args: tuple[Any, ...]) -> None:
        if name == "write":
            self.reached.set()
            assert self.open.wait(60)


@pytest.fixture
def make_saver():
    made: list[Any] = []

    def make(disk: FileOps | None = None, device: Any = DEVICE) -> CheckpointWriter:
        run = open_run(RUN)
        log = RunLogWriter(run.folder, run.check)
        made.append((CheckpointWriter(run, device, log, Retention(), disk), log, run))
        return made[-1][0]

    yield make
    for writer, log, run in made:
        writer.close()
        log.close()
        run.close()


def files(value: float) -> checkpoint.Files:
    return {
        "model.safetensors": {"w": torch.full((1000,), value)},
        "optim.safetensors": {"w.exp_avg": torch.full((1000,), value)},
        "rank-00000.safetensors": checkpoint.rng_tensors(),
    }


def request(step: int) -> SaveRequest:
    return SaveRequest(step, {"step": step})


def newest() -> checkpoint.Snapshot:
    return checkpoint.load_snapshot(checkpoints.committed(RUN)[0])


def test_training_goes_on_while_the_disk_works_and_what_it_changes_is_not_saved(make_saver):
    gate = Gate()
    writer = make_saver(gate.disk)
    live = files(1.0)
    writer.reserve(live)
    writer.wait()
    writer.save(live, request(1))  # returns although nothing can be written yet
    writer.protect_snapshot()
    for tensors in live.values():
        for tensor in tensors.values():
            tensor.zero_()
    assert gate.reached.wait(60)
    assert writer.is_busy()
    assert checkpoints.committed(RUN) == []
    gate.open.set()
    writer.wait()
    assert torch.equal(newest().model["w"], torch.full((1000,), 1.0))


def test_a_save_does_not_begin_while_another_is_being_written(make_saver):
    gate = Gate()
    writer = make_saver(gate.disk)
    writer.reserve(files(1.0))
    writer.wait()
    writer.save(files(1.0), request(1))
    with pytest.raises(AssertionError, match="one save at a time"):
        writer.save(files(2.0), request(2))
    gate.open.set()
    writer.wait()
    writer.save(files(2.0), request(2))
    writer.wait()
    assert [outcome.step for outcome in writer.finished] == [1, 2]
    assert torch.equal(newest().model["w"], torch.full((1000,), 2.0))


def test_the_writer_is_no_daemon_and_close_waits_for_it(make_saver):
    gate = Gate()
    writer = make_saver(gate.disk)
    assert not writer._thread.daemon
    writer.reserve(files(1.0))
    writer.wait()
    writer.save(files(1.0), request(1))
    threading.Timer(0.05, gate.open.set).start()
    writer.close()
    assert not writer._thread.is_alive()
    assert newest().step == 1


def test_buffers_are_made_once_and_used_again(make_saver, monkeypatch):
    writer = make_saver()
    writer.reserve(files(1.0))
    writer.wait()
    room = {name: data.data_ptr() for name, data in writer._buffers._data.items()}
    monkeypatch.setattr(type(DEVICE), "host_buffer", None)  # no more of them
    for step in (1, 2, 3):
        writer.save(files(float(step)), request(step))
        writer.wait()
    assert {name: data.data_ptr() for name, data in writer._buffers._data.items()} == room
    assert newest().step == 3


def test_short_of_memory_a_save_is_written_while_training_waits(make_saver, monkeypatch):
    monkeypatch.setattr("stepglass.checkpoint.background.available_host_bytes", lambda: 9000)
    writer = make_saver()
    writer.reserve(files(1.0))
    assert list(writer.notes) == [
        "note: checkpoints will be written while training waits: a copy needs 23.1 kB of memory, "
        "and 9.0 kB are free"
    ]
    writer.save(files(1.0), request(1))
    assert newest().step == 1  # already there
    assert writer.finished[0].background_ms == 0.0


def test_what_a_save_only_rested_is_known_so_that_the_last_one_can_be_foreseen(
    make_saver, monkeypatch
):
    clock = itertools.count()  # a second later whenever somebody looks
    watch = SimpleNamespace(perf_counter=lambda: next(clock), thread_time=time.thread_time)
    monkeypatch.setattr("stepglass.checkpoint.background.time", watch)
    writer = make_saver()
    writer.reserve(files(1.0))
    writer.wait()
    writer.save(files(1.0), request(1))
    writer.wait()
    pieces = 2 * len(files(1.0))  # the head and the data of each file
    assert writer.finished[0].rested_ms == 1000 * (2 * pieces + 1)  # around each, and for the log


def test_the_checkpoint_a_run_was_resumed_from_stays(make_saver):
    writer = make_saver()
    for step in (1, 2, 3, 4, 5):
        writer.save(files(float(step)), request(step))
        writer.wait()
        if step == 1:
            writer.trust(checkpoints.committed(RUN)[0].name)
    writer.is_tidy.wait(60)
    assert [checkpoint.load_snapshot(path).step for path in checkpoints.committed(RUN)] == [5, 4, 1]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "cannot allocate memory"),  # mmap's
        (RuntimeError("can't allocate memory"), "RuntimeError: can't allocate memory"),
        (MemoryError(), "MemoryError"),
    ],
)
def test_a_copy_that_finds_no_room_after_all_is_done_without(
    error, reason, make_saver, monkeypatch
):
    def no_room(self, num_bytes):
        raise error

    monkeypatch.setattr(type(DEVICE), "host_buffer", no_room)
    writer = make_saver()
    writer.reserve(files(1.0))
    writer.wait()
    assert f"no room for a copy of 23.1 kB: {reason}" in writer.notes[0]
    writer.save(files(1.0), request(1))
    assert newest().step == 1


def test_weights_are_not_changed_while_a_device_still_copies_them(make_saver):
    calls = []

    class Slow(Copy):
        def protect(self) -> None:
            calls.append("device held back")

        def wait(self) -> None:
            calls.append("writer waited")

    class Accelerator:
        type = "cuda"

        def host_buffer(self, num_bytes: int) -> torch.Tensor:
            return torch.zeros(num_bytes, dtype=torch.uint8)

        def copy_to_host(self, pairs: Any) -> Copy:
            for target, source in pairs:
                target.copy_(source)
            return Slow()

    writer = make_saver(device=Accelerator())
    writer.reserve(files(1.0))
    writer.wait()
    writer.save(files(1.0), request(1))
    writer.protect_snapshot()  # training calls this before every update
    writer.wait()
    assert sorted(calls) == ["device held back", "writer waited"]


def test_the_log_is_on_disk_before_the_checkpoint_and_its_place_is_known(make_saver):
    writer = make_saver()
    writer._log.write(IterRecord.from_dict({"iter": 0}))
    writer.reserve(files(1.0))
    writer.wait()
    writer.save(files(1.0), request(1))
    writer._log.write(IterRecord.from_dict({"iter": 1}))
    writer.wait()
    first = (RUN / "run.jsonl").read_bytes().splitlines(keepends=True)[0]
    assert b'"iter":0' in first
    assert newest().state["log_bytes"] == len(first)


def test_a_copy_that_fails_costs_the_save_and_nothing_hangs(make_saver):
    writer = make_saver()
    live = files(1.0)
    writer.reserve(live)
    writer.wait()
    live["model.safetensors"]["w"] = torch.full((2000,), 1.0)[::2]  # has no bytes in a row
    writer.save(live, request(1))
    writer.protect_snapshot()
    writer.wait()
    assert writer.finished[0].error.startswith("RuntimeError: ")
    writer.save(files(2.0), request(2))
    writer.wait()
    assert newest().step == 2


def test_a_state_of_another_shape_is_written_at_once_and_gets_new_room(make_saver):
    writer = make_saver()
    writer.reserve(files(1.0))
    writer.wait()
    larger = files(1.0)
    larger["model.safetensors"]["more"] = torch.zeros(3)
    writer.save(larger, request(1))
    assert newest().step == 1
    assert not writer.is_reserved  # training will reserve again


# -- in a run -----------------------------------------------------------------------------------


def test_only_the_stall_is_in_the_sum_and_the_writer_stands_beside_it(capsys):
    prepare_tiny()
    assert train_tiny(checkpoint_interval=1) == 0
    (end,) = records("end")
    assert sum(end["ledger"]["phases"].values()) == pytest.approx(end["ledger"]["wall_ms"])
    assert end["background"]["checkpoint_writer_ms"] > 0
    assert end["background"]["saves"] == len(records("checkpoint"))
    assert "beside it, in the background: " in capsys.readouterr().out


def test_the_interval_is_apart_from_evaluation():
    prepare_tiny()
    train_tiny(max_iters=9, eval_interval=100, checkpoint_interval=4)
    assert [r["iter"] for r in records("checkpoint")] == [4, 8, 9]


def test_pinned_checkpoints_are_kept_for_good():
    prepare_tiny()
    train_tiny(max_iters=9, eval_interval=100, checkpoint_interval=1, keep_every=3)
    kept = [checkpoints.step_of(path) for path in checkpoints.committed(Path("out"))]
    assert {3, 6, 9} <= set(kept)
    assert len(kept) <= 3 + 2


@pytest.mark.slow
def test_a_save_that_has_to_wait_says_so(monkeypatch, capsys):
    prepare_tiny()
    slow = threading.Event()
    real = FileOps.create

    def create(self, folder, name):
        slow.wait(0.05)
        return real(self, folder, name)

    monkeypatch.setattr(FileOps, "create", create)
    train_tiny(max_iters=4, eval_interval=1, always_save_checkpoint=True)
    assert "for checkpoint 1 to be written\n" in capsys.readouterr().out
    waits = [r for r in records("event") if r["name"] == "checkpoint_wait"]
    assert waits[0]["detail"]["wait_ms"] > 0
    assert [r["iter"] for r in records("checkpoint")] == [1, 2, 3, 4]


def test_training_protects_the_snapshot_before_it_changes_the_weights(monkeypatch):
    """A copy that nobody works on until training asks for it."""
    prepare_tiny()
    monkeypatch.setattr("stepglass.hardware.host_copy.WORTH_A_THREAD", 0)
    monkeypatch.setattr("stepglass.hardware.host_copy.SharedCopy._work", patient(SharedCopy._work))
    train_tiny(checkpoint_interval=1, max_iters=5, eval_interval=100, keep_last=9)
    saved = {
        checkpoints.step_of(path): checkpoint.load_snapshot(path).model
        for path in checkpoints.committed(Path("out"))
    }
    train_tiny(max_iters=3, eval_interval=100, lr_decay_iters=6, out_dir="other")
    other = checkpoint.load_snapshot(checkpoints.committed(Path("other"))[0]).model
    assert all(torch.equal(saved[3][name], other[name]) for name in other)


def patient(real):
    """The other threads' part of the copy comes late, training's own does not."""

    def wait(self):
        if threading.current_thread() is not threading.main_thread():
            self._done.wait(0.05)
        real(self)

    return wait
