"""Checkpoints in shards: several processes write their rows of every tensor, and one commits."""

import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import Tensor

from disks import HookedDisk, Killed, dying
from helpers import forge, forge_manifest
from stepglass.checkpoint import tensors
from stepglass.checkpoint.shard_writer import ShardWriter
from stepglass.checkpoint.sharded import ShardedTensors
from stepglass.errors import CheckpointError
from stepglass.files import FileOps, Folder
from stepglass.hardware.choose import pick_device
from stepglass.run_dir import checkpoints, commit
from stepglass.run_dir.checkpoints import shard_name
from stepglass.run_dir.commit import Contents, Entries
from stepglass.run_dir.earlier import CHECKPOINT_FILES
from stepglass.settings.train import TrainConfig

RUN = Path("run")
WHOLE = torch.arange(10.0).view(5, 2)
HEIGHTS = (2, 2, 1, 0)  # rows of each process; the last has none


def rows_of(number: int, value: float = 0.0) -> dict[str, Tensor]:
    first = sum(HEIGHTS[:number])
    return {"w": WHOLE[first : first + HEIGHTS[number]] + value}


def shard(number: int, value: float = 0.0) -> tensors.Files:
    """The files of one process."""
    optim = {f"{name}.exp_avg": tensor for name, tensor in rows_of(number, value).items()}
    counter = {"w.step": torch.tensor(value)} if number == 0 else {}
    files = {
        shard_name("model", number, len(HEIGHTS)): rows_of(number, value),
        shard_name("optim", number, len(HEIGHTS)): optim | counter,
    }
    return files | ({"rank-00000.safetensors": tensors.rng_tensors()} if number == 0 else {})


class OthersHere:
    """The other processes, played by this one. `do` is what each of them does."""

    of, waits = len(HEIGHTS), False

    def __init__(self, do: Callable[[Path, int], Entries]) -> None:
        self._do = do

    def begin(self, folder: Path) -> None:
        self._folder = folder

    def finish(self) -> Entries:
        entries: Entries = {}
        for number in range(1, self.of):
            entries |= self._do(self._folder, number)
        return entries

    def hurry(self) -> None:
        raise AssertionError("nobody waits")

    def cancel(self) -> None:
        raise AssertionError("nobody calls it")


def save(
    step: int,
    do: Callable[[Path, int], Entries] | None = None,
    ops: FileOps | None = None,
) -> Path:
    """Write a checkpoint of which every number is larger by its step."""
    RUN.mkdir(exist_ok=True)

    def write(folder: Path, number: int) -> Entries:
        return commit.write_shard(FileOps(), folder, tensors.contents_of(shard(number, step)))

    files = tensors.contents_of(shard(0, step))
    files["state.json"] = Contents.of(b'{"step": %d}' % step)
    files["tokenizer.json"] = Contents.of(b"{}\n")
    with Folder.open(RUN) as run:
        others = OthersHere(do or write)
        return (
            RUN
            / "ckpt"
            / commit.write_checkpoint(ops or FileOps(), run, step, files, 0, others).name
        )


def save_whole(step: int) -> Path:
    """Write a checkpoint of one process."""
    RUN.mkdir(exist_ok=True)
    files = {"model.safetensors": rows_of(0), "optim.safetensors": rows_of(0)}
    contents = tensors.contents_of(files | {"rank-00000.safetensors": tensors.rng_tensors()})
    contents["state.json"] = Contents.of(b'{"step": %d}' % step)
    contents["tokenizer.json"] = Contents.of(b"{}\n")
    with Folder.open(RUN) as run:
        return RUN / "ckpt" / commit.write_checkpoint(FileOps(), run, step, contents, 0).name


def left_behind() -> list[str]:
    return os.listdir(RUN / "ckpt")


def test_the_shards_of_all_processes_are_one_checkpoint():
    path = save(3)
    loaded = tensors.load_snapshot(path)
    assert isinstance(loaded.model, ShardedTensors)
    assert torch.equal(loaded.model["w"], WHOLE + 3)
    assert torch.equal(loaded.optim["w.exp_avg"], WHOLE + 3)
    assert loaded.optim["w.step"].item() == 3
    assert checkpoints.verify(path) == sum(
        file.stat().st_size for file in path.iterdir() if file.name != "MANIFEST.json"
    )
    ours = [
        *CHECKPOINT_FILES,
        *(f.name for f in path.iterdir() if checkpoints.SHARD.fullmatch(f.name)),
    ]
    assert {file.name for file in path.iterdir()} <= set(ours)


@pytest.mark.parametrize("processes", [1, 2, 3, 4, 7])
def test_any_number_of_processes_reads_its_rows(processes):
    """Those that no longer exist in one file come from several, and nothing else is read."""
    model = tensors.load_snapshot(save(0)).model
    assert isinstance(model, ShardedTensors)
    most = -(-len(WHOLE) // processes)
    parts = [model.rows("w", n * most, min((n + 1) * most, len(WHOLE))) for n in range(processes)]
    assert torch.equal(torch.cat(parts), WHOLE)
    assert all(part.untyped_storage().nbytes() == part.nbytes for part in parts)


def test_a_shard_that_is_missing_cut_short_or_swapped_is_refused_and_the_older_one_is_used():
    older, newer = save(1), save(2)
    shutil.copytree(newer, "kept")
    first, second = (newer / shard_name("model", number, 4) for number in (0, 1))
    optim = newer / shard_name("optim", 2, 4)

    def swap() -> None:
        one, other = first.read_bytes(), second.read_bytes()
        first.write_bytes(other)
        second.write_bytes(one)

    breaks: dict[str, Callable[[], Any]] = {
        f"{optim}: cannot be read: no such file": optim.unlink,
        f"{optim}: expected {optim.stat().st_size} bytes, found 9": lambda: os.truncate(optim, 9),
        f"{first}: its sha256 is not the manifest's": swap,
    }
    for problem, do in breaks.items():
        shutil.rmtree(newer)
        shutil.copytree("kept", newer)
        do()
        said: list[str] = []
        path, snapshot = tensors.newest(RUN, said.append)
        assert path == older
        assert torch.equal(snapshot.model["w"], WHOLE + 1)
        assert [
            line.lower().startswith(f"skipped {newer.name}: {problem}".lower()) for line in said
        ] == [True], said
        with pytest.raises(CheckpointError):
            checkpoints.verify(newer)


def test_a_checkpoint_without_all_shards_is_never_committed():
    older = save(1)

    def nobody_writes(folder: Path, number: int) -> Entries:
        return {}

    def another_disk(folder: Path, number: int) -> Entries:
        """Each machine has a folder of this name."""
        (Path("other/ckpt") / folder.name).mkdir(parents=True, exist_ok=True)
        elsewhere = Path("other/ckpt") / folder.name
        return commit.write_shard(FileOps(), elsewhere, tensors.contents_of(shard(number, 2)))

    def fails(folder: Path, number: int) -> Entries:
        raise CheckpointError("rank 2: no space left on device")

    for do, why in (
        (nobody_writes, "rank 1 has not written it"),
        (another_disk, "found none here; --out_dir must be on a disk that all processes see"),
        (fails, "rank 2: no space left"),
    ):
        with pytest.raises(CheckpointError, match=why):
            save(2, do)
        assert left_behind() == [older.name]


def test_a_process_that_dies_at_any_call_of_a_save_leaves_the_older_checkpoint():
    """The end of rank 0 at any call, before or after the others have written."""
    older = save(1)
    counted: list[str] = []
    save(2, ops=HookedDisk(lambda n, name, args: counted.append(name)))
    shutil.rmtree(checkpoints.committed(RUN)[0])
    last = len(counted) - 1  # the sync of the new name
    for fatal in range(last):
        with pytest.raises(Killed):
            save(2, ops=dying(fatal))
        assert tensors.newest(RUN, lambda line: None)[0] == older, counted[fatal]
        with Folder.open(RUN) as run:
            commit.sweep(FileOps(), run)
        assert left_behind() == [older.name]


def test_shards_that_do_not_fit_together_are_refused_in_one_line():
    """By somebody who knows how manifests are made."""
    path = save(1)
    name = shard_name("model", 1, 4)
    for found in (
        {"w": torch.zeros(2, 3)},
        {"w": torch.zeros(2, 2, dtype=torch.float64)},
        {"v": torch.zeros(2, 2)},
        {"w": torch.zeros(2, 2), "v": torch.zeros(2, 2)},
    ):
        forge(path, name, safetensors.torch.save(found))
        with pytest.raises(CheckpointError, match="cannot be read") as caught:
            tensors.load_snapshot(path)
        assert "\n" not in str(caught.value)


def test_a_manifest_with_other_files_than_its_shards_is_refused():
    path = save(1)
    forge(path, shard_name("model", 4, 5), b"")
    with pytest.raises(CheckpointError, match="does not list a checkpoint's files"):
        tensors.load_snapshot(path)


@pytest.mark.parametrize("shards", [0, False, "none", 4])
def test_a_whole_checkpoint_that_claims_to_have_shards_is_refused(shards):
    path = save_whole(1)
    assert tensors.load_snapshot(path).state == {"step": 1}
    forge_manifest(path, shards=shards)
    with pytest.raises(CheckpointError, match="does not say how many shards there are"):
        tensors.load_snapshot(path)


class OthersStillWriting(OthersHere):
    """Others that write for as long as nobody waits for them."""

    waited_in: Path | None = None
    hurried = False

    def hurry(self) -> None:
        self.hurried = True

    def finish(self) -> Entries:
        self.waited_in = self._folder if self._folder.is_dir() else None
        raise CheckpointError("rank 3: no space left on device")


def test_a_disk_that_is_full_in_rank_0_waits_for_the_others_before_it_deletes(monkeypatch):
    RUN.mkdir()
    others = OthersStillWriting(lambda folder, number: {})

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(commit, "_write_files", full)
    files = tensors.contents_of(shard(0))
    with Folder.open(RUN) as run, pytest.raises(OSError, match="No space left on device"):
        commit.write_checkpoint(FileOps(), run, 1, files, 0, others)
    assert others.hurried
    assert others.waited_in is not None
    assert others.waited_in.is_absolute()
    assert left_behind() == []


# -- the thread of another process ---------------------------------------------------------------


class Order:
    """An order of rank 0."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self.answers: list[tuple[Entries, str | None]] = []

    def folder(self) -> Path | None:
        return self._folder

    def is_urgent(self) -> bool:
        return True

    def answer(self, entries: Entries, error: str | None) -> None:
        self.answers.append((entries, error))


def test_processes_of_one_machine_share_its_memory(monkeypatch):
    monkeypatch.setattr("stepglass.checkpoint.background.available_host_bytes", lambda: 100)
    live, device = shard(1), pick_device(TrainConfig(device="cpu"))  # 32 bytes
    for sharers, has_room in ((2, True), (3, False)):
        writer = ShardWriter(device, sharers)
        assert writer.make_room(live) == has_room
        writer.close()


@pytest.mark.parametrize("has_room", [True, False])
def test_another_process_writes_what_it_had_at_the_save_and_says_so(has_room, monkeypatch):
    if not has_room:
        monkeypatch.setattr("stepglass.checkpoint.background.available_host_bytes", lambda: 0)
    folder = RUN / "ckpt" / ".tmp-step-00000001-000001"
    folder.mkdir(parents=True)
    writer = ShardWriter(pick_device(TrainConfig(device="cpu")))
    live, order = shard(1), Order(folder)
    assert writer.make_room(live) == has_room
    writer.save(live, order, waits=not has_room)
    writer.protect_snapshot()
    live[shard_name("model", 1, 4)]["w"].zero_()
    writer.wait()
    [(entries, error)] = order.answers
    assert (set(entries), error) == (set(live), None)
    stored = safetensors.torch.load_file(folder / shard_name("model", 1, 4))
    assert torch.equal(stored["w"], WHOLE[2:4])
    missing, none = Order(RUN / "ckpt/nothing"), Order(None)
    writer.save(live, missing, waits=not has_room)
    writer.wait()
    assert "no such file" in str(missing.answers).lower()
    writer.save(live, none, waits=not has_room)
    writer.wait()
    assert none.answers == []  # rank 0 could not begin
    writer.close()


def test_a_part_that_is_never_done_does_not_keep_the_process(monkeypatch):
    monkeypatch.setattr("stepglass.checkpoint.shard_writer.END_WITHIN_S", 0.01)
    writer, is_gone = ShardWriter(pick_device(TrainConfig(device="cpu"))), threading.Event()
    live, order = shard(1), Order(None)
    order.folder = is_gone.wait  # type: ignore[method-assign]
    assert writer.make_room(live)
    writer.save(live, order, waits=False)
    writer.close()
    assert writer.is_busy()
    is_gone.set()
    writer.close()
    assert not writer.is_busy()
