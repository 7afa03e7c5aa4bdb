"""Power cuts and kills at every point of a save, on a simulated disk: nothing that was reported is
lost, and nothing that is found is wrong."""

import errno
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from disks import HookedDisk, Killed, Recorder, after_power_loss, build, dying, failing, syncs
from helpers import open_run
from stepglass.checkpoint import tensors
from stepglass.checkpoint.writer import CheckpointWriter, SaveRequest
from stepglass.errors import CheckpointError
from stepglass.files import FileOps, Folder
from stepglass.hardware.choose import pick_device
from stepglass.json_files import read_json
from stepglass.measure.records import StartRecord
from stepglass.measure.run_log import RunLogWriter
from stepglass.run_dir import checkpoints, commit
from stepglass.run_dir.commit import Retention
from stepglass.run_dir.folder import FolderLost
from stepglass.settings.train import TrainConfig

BEST = {2: 3.0, 3: 2.0, 4: 1.5}  # step -> validation loss, where it was the lowest so far
STEPS = (1, 2, 3, 4)
DEVICE = pick_device(TrainConfig(device="cpu"))


def weights(step: int) -> tensors.Files:
    return {
        "model.safetensors": {"w": torch.full((3,), float(step))},
        "optim.safetensors": {"w.exp_avg": torch.full((3,), -float(step))},
        "rank-00000.safetensors": {"torch": torch.tensor([step], dtype=torch.uint8)},
    }


class Run:
    """A run directory with a saver on a given disk."""

    def __init__(self, folder: Path, disk: FileOps | None = None) -> None:
        self.run = open_run(folder)
        self.log = RunLogWriter(self.run.folder, self.run.check)
        self.log.write(StartRecord.from_dict({"run_id": self.run.run_id}))
        self.saver = CheckpointWriter(self.run, DEVICE, self.log, Retention(), disk)

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *error: object) -> None:
        self.saver.close()
        self.log.close()
        self.run.close()

    def save(self, step: int) -> Any:
        if not self.saver.is_reserved:
            self.saver.reserve(weights(step))
        self.saver.wait()
        self.saver.save(weights(step), SaveRequest(step, {"step": step}, BEST.get(step)))
        self.saver.wait()
        assert self.saver.is_tidy.wait(60)
        return self.saver.finished.popleft()


def violations(run_dir: Path, promises: list[int]) -> list[str]:
    """What is wrong with a run directory in which these steps were reported as saved."""
    wrong = []
    whole = []
    for path in checkpoints.committed(run_dir):
        step = checkpoints.step_of(path)
        try:
            loaded = tensors.load_snapshot(path)
            whole.append(step)
        except CheckpointError as error:
            wrong.append(f"{path.name} has its final name and is damaged: {error}")
            continue
        if not torch.equal(loaded.model["w"], weights(step)["model.safetensors"]["w"]):
            wrong.append(f"{path.name} has other weights than were saved")
    if promises and max(whole, default=0) < max(promises):
        wrong.append(f"step {max(promises)} was reported, the newest found is {whole}")
    best = [step for step in promises if step in BEST]
    if (run_dir / "best.json").exists():
        try:
            pointer = read_json(run_dir / "best.json")
            if not (run_dir / "ckpt" / pointer["dir"]).is_dir():
                wrong.append("best.json points at nothing")
            if best and pointer["val_loss"] > BEST[max(best)]:
                wrong.append("best.json points at an older best than was reported")
        except ValueError as error:
            wrong.append(f"best.json: {error}")
    elif best:
        wrong.append("best.json is missing")
    return wrong


def recorded(folder: Path) -> list[tuple[str, Any]]:
    """Every call of a run that saves four times, and every promise it makes."""
    disk = Recorder(folder)
    with Run(folder, disk) as run:
        for step in STEPS:
            assert run.save(step).error is None
            disk.promise(step)
    return disk.log


def power_cuts(
    log: list[tuple[str, Any]], ends: Iterable[int], scratch: Path
) -> Iterator[list[str]]:
    """Cut the power after each of these numbers of calls, in every way there is: what is wrong
    with each state of the disk."""
    seen: set[Any] = set()
    for end in ends:
        for tree, promises in after_power_loss(log[:end]):
            # Of what is not committed only the names count: recovery must not look inside.
            visible = {k: v if "/." not in k else None for k, v in tree.items()}
            state = (frozenset(visible.items()), max(promises, default=0))
            if state in seen:
                continue
            seen.add(state)
            shutil.rmtree(scratch, ignore_errors=True)
            build(tree, scratch)
            yield [f"after call {end}: {text}" for text in violations(scratch, promises)]


def test_no_power_cut_loses_or_spoils_a_checkpoint(tmp_path):
    log = recorded(tmp_path / "run")
    found = list(power_cuts(log, range(len(log) + 1), tmp_path / "after"))
    assert [wrong for wrong in found if wrong] == []
    assert len(found) > 150


def test_leaving_any_single_sync_out_is_found(tmp_path):
    whole = recorded(tmp_path / "run")
    assert len(syncs(whole)) > 25
    missed = []
    for at in syncs(whole):
        log = whole[:at] + whole[at + 1 :]
        # A promise that is broken is found soonest right after it was made.
        ends = sorted(range(at, len(log) + 1), key=lambda end: log[end - 1][0] != "promise")
        missed += [] if any(power_cuts(log, ends, tmp_path / "after")) else [at]
    assert missed == []


def test_no_kill_loses_or_spoils_a_checkpoint(tmp_path):
    whole = HookedDisk(lambda n, name, args: None)
    with Run(tmp_path / "whole", whole) as run:
        for step in STEPS:
            run.save(step)
    for at in range(whole.num_calls):
        promises = []
        disk = dying(at)
        with Run(tmp_path / f"kill-{at}", disk) as run:
            for step in STEPS:
                outcome = run.save(step)
                if outcome.error is not None:
                    assert outcome.error.startswith(Killed.__name__)
                    break
                promises.append(step)
        assert disk.num_calls > at, "it was not killed"
        assert violations(tmp_path / f"kill-{at}", promises) == []
        # The next process sweeps, goes on, and leaves nothing behind.
        with Folder.open(tmp_path / f"kill-{at}") as folder:
            commit.sweep(FileOps(), folder)
        with Run(tmp_path / f"kill-{at}") as run:
            assert run.save(9).error is None
        names = [path.name for path in (tmp_path / f"kill-{at}" / "ckpt").iterdir()]
        assert not [name for name in names if name.startswith(".")]


def failures(num_calls: int) -> Iterator[tuple[int, int]]:
    """Which call fails, and with which code. The codes take turns: what is done about a failure
    does not depend on its code. `make torture` tries every code at every call."""
    codes = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EIO)
    for at in range(num_calls):
        for code in codes if "STEPGLASS_KILLS" in os.environ else codes[at % 5 : at % 5 + 1]:
            yield at, code


def test_a_disk_that_fails_once_at_any_call_costs_that_save_and_nothing_else(tmp_path):
    deletions: list[int] = []

    def note_deletions(n: int, name: str, args: tuple[Any, ...]) -> None:
        if name in ("unlink", "rmdir") or (name == "rename" and ".trash" in args[2]):
            deletions.append(n)

    counting = HookedDisk(note_deletions)
    with Run(tmp_path / "whole", counting) as run:
        for step in (1, 2, 3):
            run.save(step)
    for at, code in failures(counting.num_calls):
        folder = tmp_path / f"fail-{at}-{code}"
        reason = os.strerror(code)
        with Run(folder, failing(at, OSError(code, reason))) as run:
            promises = []
            for step in (1, 2, 3, 4):
                outcome = run.save(step)
                promises += [step] if outcome.error is None else []
                assert outcome.error in (None, reason[:1].lower() + reason[1:])
                assert violations(folder, promises) == []
            assert len(promises) + run.saver.num_failed == 4
            assert run.saver.num_failed == 1 or run.saver.notes or at in deletions
        assert violations(folder, [4]) == []
        assert not [p for p in (folder / "ckpt").iterdir() if p.name.startswith(".")]


def test_a_prune_that_fails_takes_nothing_back(tmp_path):
    """Its failure once counted as the save's, and the new best was forgotten."""

    def before(n: int, name: str, args: tuple[Any, ...]) -> None:
        if name == "rename" and ".trash" in args[2]:
            renamed.append(n)
        if name == "fsync_directory" and renamed == [n - 1]:
            raise OSError(5, "Input/output error")

    renamed: list[int] = []
    with Run(tmp_path / "run", HookedDisk(before)) as run:
        outcomes = [run.save(step) for step in (1, 2, 3)]
        assert [outcome.error for outcome in outcomes] == [None] * 3
        assert outcomes[2].is_best
        assert run.saver.notes.pop() == "note: old checkpoints stay for now: input/output error"
    assert violations(tmp_path / "run", [1, 2, 3]) == []


def test_a_best_json_that_cannot_be_read_just_now_costs_no_checkpoint(tmp_path):
    with Run(tmp_path / "run") as run:
        run.save(2)  # the best
        for step in (5, 6):
            run.save(step)
        (tmp_path / "run" / "best.json").write_bytes(b"\xff")
        run.save(7)
    kept = {checkpoints.step_of(path) for path in checkpoints.committed(tmp_path / "run")}
    assert kept == {2, 5, 6, 7}


def test_a_folder_that_may_not_be_durable_is_made_again(tmp_path):
    def before(n: int, name: str, args: tuple[Any, ...]) -> None:
        calls.append(name)
        if name == "fsync_directory" and len(calls) == 2:
            raise OSError(5, "Input/output error")

    calls: list[str] = []
    with Run(tmp_path / "run", HookedDisk(before)) as run:
        assert run.save(1).error == "input/output error"
        assert run.save(2).error is None
    assert calls[:5] == ["mkdir", "fsync_directory", "rmdir", "mkdir", "fsync_directory"]


def test_a_file_is_never_synced_again_after_a_sync_failed(tmp_path):
    """Linux drops the pages it could not write: a second fsync of the same file would lie."""
    synced: list[int] = []

    def before(n: int, name: str, args: tuple[Any, ...]) -> None:
        if name == "fsync":
            synced.append(n)
            if len(synced) == 1:
                raise OSError(5, "Input/output error")
        if name == "create":
            created.append(args[1])

    created: list[str] = []
    with Run(tmp_path / "run", HookedDisk(before)) as run:
        assert run.save(1).error == "input/output error"
        assert created == [created[0]]  # the rest of that save was not even begun
        assert run.save(2).error is None
    assert violations(tmp_path / "run", [2]) == []


def test_short_writes_and_a_disk_that_says_try_again_are_ridden_out(tmp_path):
    refused: list[int] = []

    def before(n: int, name: str, args: tuple[Any, ...]) -> int | None:
        if name == "write" and len(refused) < 3:
            refused.append(n)
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return 5

    with Run(tmp_path / "run", HookedDisk(before)) as run:
        assert run.save(1).error is None
    assert len(refused) == 3
    assert violations(tmp_path / "run", [1]) == []


def test_a_writer_that_runs_out_of_memory_tells_and_goes_on(tmp_path):
    def before(n: int, name: str, args: tuple[Any, ...]) -> None:
        if n == 5:
            raise MemoryError("no more")

    with Run(tmp_path / "run", HookedDisk(before)) as run:
        assert run.save(1).error == "MemoryError: no more"
        assert run.save(2).error is None


def test_a_disk_without_space_is_found_before_anything_is_written(tmp_path):
    class Small(FileOps):
        free = 1000

        def free_bytes(self, folder: Folder) -> int | None:
            return self.free

    disk = Small()
    with Run(tmp_path / "run", disk) as run:
        assert run.save(1).error == "expected 67.1 MB of free space, found 1.0 kB"
        assert list((tmp_path / "run" / "ckpt").iterdir()) == []
        disk.free = 1 << 40
        assert run.save(2).error is None


def test_the_last_save_of_a_run_may_use_the_space_that_others_leave_free(tmp_path):
    class Small(FileOps):
        def free_bytes(self, folder: Folder) -> int | None:
            return 8_400_000

    with Run(tmp_path / "run", Small()) as run:
        assert "of free space, found 8.4 MB" in run.save(1).error
        run.saver.save(weights(9), SaveRequest(9, {"step": 9}, is_last=True))
        run.saver.wait()
        assert run.saver.finished.popleft().error is None
    assert violations(tmp_path / "run", [9]) == []


def test_what_is_set_aside_does_not_pile_up_when_saves_follow_each_other(tmp_path):
    """Tidying up once made way for every save, and never had its turn."""
    with Run(tmp_path / "run") as run:
        run.saver._has_task.is_set = lambda: True  # type: ignore[method-assign]
        for step in range(1, 12):
            run.save(step)
            names = [path.name for path in (tmp_path / "run" / "ckpt").iterdir()]
            assert len([name for name in names if name.startswith(".")]) <= 1


@pytest.mark.parametrize("what", ["symlink", "file"])
def test_a_folder_replaced_by_something_else_is_not_written_through(what, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    with Run(tmp_path / "run") as run:
        run.save(1)
        shutil.rmtree(tmp_path / "run" / "ckpt")
        if what == "symlink":
            (tmp_path / "run" / "ckpt").symlink_to(tmp_path / "elsewhere")
        else:
            (tmp_path / "run" / "ckpt").write_text("mine")
        assert "expected a folder of ours, found something else" in run.save(2).error
        assert list((tmp_path / "elsewhere").iterdir()) == []
        (tmp_path / "run" / "ckpt").unlink()
        assert run.save(3).error is None


def test_a_run_directory_that_was_deleted_is_not_made_again_by_the_writer(tmp_path):
    with Run(tmp_path / "run") as run:
        run.save(1)
        shutil.rmtree(tmp_path / "run")
        assert "was deleted while the run was going on" in run.save(2).error
        (tmp_path / "run").mkdir()
        assert "was deleted while the run was going on" in run.save(3).error
        assert list((tmp_path / "run").iterdir()) == []


def test_a_lock_that_somebody_deleted_is_taken_again(tmp_path):
    with Run(tmp_path / "run") as run:
        run.save(1)
        (tmp_path / "run" / "LOCK").unlink()
        assert run.save(2).error is None
        with pytest.raises(CheckpointError, match="another run is using it"):
            open_run(tmp_path / "run")


def test_a_run_directory_taken_over_by_another_run_is_left_alone_even_when_that_has_ended(tmp_path):
    with Run(tmp_path / "run") as run:
        run.save(1)
        (tmp_path / "run" / "LOCK").unlink()
        other = open_run(tmp_path / "run")
        assert "is used by another run now (process" in run.save(2).error
        other.close()
        assert "is used by another run now (process" in run.save(3).error
        with pytest.raises(FolderLost):
            run.run.check()
    assert [checkpoints.step_of(p) for p in checkpoints.committed(tmp_path / "run")] == [1]
