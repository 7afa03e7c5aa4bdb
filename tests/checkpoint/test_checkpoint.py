"""Checkpoints: whole or absent, and never trusted unread."""

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
import safetensors.torch
import torch

from disks import failing
from helpers import edit_json, forge
from stepglass.checkpoint import tensors
from stepglass.errors import CheckpointError
from stepglass.files import FileOps, Folder
from stepglass.run_dir import checkpoints, commit
from stepglass.run_dir.commit import Contents, Retention
from stepglass.train.optimizer import MuonAdamW

RUN = Path("run")


WEIGHTS = torch.arange(12, dtype=torch.float32).reshape(3, 4)


def save(step: int = 5) -> Path:
    RUN.mkdir(exist_ok=True)
    files = tensors.contents_of(
        {
            "model.safetensors": {"w": WEIGHTS},
            "optim.safetensors": {"w.exp_avg": WEIGHTS * 2, "w.step": torch.tensor(3.0)},
            "rank-00000.safetensors": tensors.rng_tensors(),
        }
    )
    files["state.json"] = Contents.of(json.dumps({"step": step, "tokens": 123456}).encode())
    files["tokenizer.json"] = Contents.of(b'{"kind": "gpt2"}')
    with Folder.open(RUN) as run:
        return RUN / "ckpt" / commit.write_checkpoint(FileOps(), run, step, files).name


def test_what_was_saved_comes_back():
    path = save()
    loaded = tensors.load_snapshot(path)
    assert (loaded.step, loaded.state) == (5, {"step": 5, "tokens": 123456})
    assert torch.equal(loaded.model["w"], WEIGHTS)
    assert loaded.optim["w.step"].shape == ()
    assert torch.equal(loaded.rng["torch"], torch.get_rng_state())
    assert set(os.listdir(path)) == {*checkpoints.FILES, "MANIFEST.json"}
    assert os.listdir(RUN / "ckpt") == ["step-00000005-000001"]


def test_a_step_saved_again_gets_a_folder_of_its_own_and_counts_as_newer():
    first = save()
    second = save()
    os.utime(first, (2e9, 2e9))  # file times say nothing
    assert checkpoints.committed(RUN) == [second, first]


def test_order_is_by_number_not_by_text():
    for step in (100_000_000, 99_999_999, 5):
        save(step)
    assert [tensors.load_snapshot(p).step for p in checkpoints.committed(RUN)] == [
        100_000_000,
        99_999_999,
        5,
    ]


@pytest.mark.parametrize(
    "name",
    [
        ".tmp-step-00000009-1",
        ".trash-step-00000009-000001",
        "step-00000009",
        "step-9-000001",
        "step-00000009-000001.bak",
        "step-00000009-00000G",
    ],
)
def test_other_names_are_not_checkpoints(name):
    saved = save()
    (RUN / "ckpt" / name).mkdir()
    assert checkpoints.committed(RUN) == [saved]


@pytest.mark.parametrize(
    "foreign",
    [
        "step-00000001-ffffff",  # the next number has seven digits
        "step-00000001-ffffffffffff",
        "step-00000001-" + "f" * 200,
        "step-" + "9" * 100 + "-000001",
        "step-000000001-000001",  # a zero that we would not write
        "step-00000009-00000A",
        "nan-step-00000001-fffffe",
        ".trash-step-00000001-fffff0",
    ],
)
def test_a_foreign_entry_hides_no_later_save_and_is_never_deleted(foreign):
    (RUN / "ckpt" / foreign).mkdir(parents=True)
    (RUN / "ckpt" / foreign / "mine.txt").write_text("mine")
    paths = [save(step) for step in (1, 2, 3, 4)]
    with Folder.open(RUN) as run:
        commit.prune(FileOps(), run, Retention())
    whole = [path for path in checkpoints.committed(RUN) if path.name != foreign]
    assert whole == [paths[3], paths[2]]
    assert (RUN / "ckpt" / foreign / "mine.txt").exists()


def test_a_foreign_folder_of_the_very_name_that_is_next_is_stepped_over():
    (RUN / "ckpt" / "step-00000005-000001").mkdir(parents=True)
    assert save(5).name == "step-00000005-000002"


@pytest.mark.slow
def test_every_flipped_bit_is_found_before_a_tensor_is_built(monkeypatch):
    path = save()
    monkeypatch.setattr("safetensors.torch.load", None)
    chosen = random.Random(7)
    found = 0
    for name in (*checkpoints.FILES, "MANIFEST.json"):
        original = (path / name).read_bytes()
        for bit in chosen.sample(range(len(original) * 8), 100):
            damaged = bytearray(original)
            damaged[bit // 8] ^= 1 << (bit % 8)
            (path / name).write_bytes(damaged)
            with pytest.raises(CheckpointError):
                tensors.load_snapshot(path)
            with pytest.raises(CheckpointError):
                checkpoints.verify(path)
            found += 1
        (path / name).write_bytes(original)
    assert found == 600
    checkpoints.verify(path)


def test_every_truncation_of_every_file_is_found_before_a_tensor_is_built(monkeypatch):
    path = save()
    monkeypatch.setattr("safetensors.torch.load", None)
    for name in (*checkpoints.FILES, "MANIFEST.json"):
        original = (path / name).read_bytes()
        for length in range(0, len(original) - 1, 1 + len(original) // 200):
            (path / name).write_bytes(original[:length])
            with pytest.raises(CheckpointError):
                tensors.load_snapshot(path)
        (path / name).write_bytes(original)
    checkpoints.verify(path)


def test_files_and_folders_swapped_between_checkpoints_are_found(monkeypatch):
    first, second = save(1), save(2)
    torch.rand(1)
    third = save(3)
    monkeypatch.setattr("safetensors.torch.load", None)

    def swap(a: Path, b: Path) -> None:
        a.rename("swap")
        b.rename(a)
        Path("swap").rename(b)

    for name in ("rank-00000.safetensors", "state.json", "MANIFEST.json"):
        swap(first / name, third / name)
        for path in (first, third):
            with pytest.raises(CheckpointError):
                tensors.load_snapshot(path)
        swap(first / name, third / name)
    swap(first / "model.safetensors", first / "optim.safetensors")
    swap(second, third)
    for path in (first, second, third):
        with pytest.raises(CheckpointError):
            tensors.load_snapshot(path)


def test_a_symlink_in_a_checkpoint_is_refused():
    path = save()
    (path / "state.json").rename("elsewhere.json")
    (path / "state.json").symlink_to(Path("elsewhere.json").resolve())
    with pytest.raises(CheckpointError, match="not a regular file"):
        tensors.load_snapshot(path)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '{"schema": 1}',
        '{"schema": 1, "schema": 1}',
        "NaN",
        "[" * 100_000,
        "\xff",
    ],
)
def test_a_manifest_that_is_none_is_refused(text):
    path = save()
    (path / "MANIFEST.json").write_text(text, encoding="latin-1")
    with pytest.raises(CheckpointError, match="expected a manifest, found a problem"):
        tensors.load_snapshot(path)


def test_another_versions_manifest_is_refused():
    path = save()
    edit_json(path / "MANIFEST.json", schema=4)
    with pytest.raises(CheckpointError, match="expected schema 3 or less, found 4"):
        tensors.load_snapshot(path)


def test_a_manifest_cannot_name_files_elsewhere():
    path = save()
    manifest = json.loads((path / "MANIFEST.json").read_text())
    manifest["files"]["../../x"] = manifest["files"].pop("state.json")
    (path / "MANIFEST.json").write_text(json.dumps(manifest))
    with pytest.raises(CheckpointError, match="its own sha256 does not match"):
        tensors.load_snapshot(path)


def flips(data: bytes) -> Iterator[bytes]:
    for bit in range(8 * len(data)):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << (bit % 8)
        yield bytes(damaged)


def test_no_flipped_bit_of_best_json_names_another_best():
    save(5)
    other = save(4)
    with Folder.open(RUN) as run:
        commit.mark_best(FileOps(), run, other.name, 1.5)
    told = checkpoints.Best(other.name, 1.5)
    assert checkpoints.best(RUN) == told
    found = 0
    for damaged in flips((RUN / "best.json").read_bytes()):
        (RUN / "best.json").write_bytes(damaged)
        try:
            assert checkpoints.best(RUN) == told  # white space, or a letter's case in a number
        except CheckpointError:
            found += 1
    assert found > 800


def test_a_best_json_of_the_first_versions_is_read():
    saved = save()
    (RUN / "best.json").write_text(json.dumps({"dir": saved.name, "val_loss": 1.5}))
    assert checkpoints.best(RUN) == checkpoints.Best(saved.name, 1.5)


@pytest.mark.parametrize("target", ["../../etc", "step-00000005-000001/..", 7, None, "gone"])
def test_best_points_only_at_checkpoints_of_the_run(target):
    save()
    (RUN / "best.json").write_text(json.dumps({"dir": target, "val_loss": 1.0}))
    with pytest.raises(CheckpointError, match=r"best\.json: damaged"):
        checkpoints.best_path(RUN)


def test_newest_whole_one_wins_and_each_skipped_one_gets_a_line():
    paths = [save(step) for step in (1, 2, 3)]
    (paths[2] / "MANIFEST.json").unlink()
    (paths[1] / "optim.safetensors").unlink()
    lines: list[str] = []
    path, loaded = tensors.newest(RUN, lines.append)
    assert (path, loaded.step) == (paths[0], 1)
    assert [line.split(":")[0] for line in lines] == [
        "skipped step-00000003-000003",
        "skipped step-00000002-000002",
    ]


def test_nothing_whole_is_an_error():
    path = save()
    (path / "MANIFEST.json").unlink()
    with pytest.raises(CheckpointError, match="found 1 damaged ones"):
        tensors.newest(RUN, lambda line: None)


def test_a_model_of_another_shape_is_named():
    net = torch.nn.Linear(4, 3, bias=False)
    with pytest.raises(CheckpointError, match=r"weight: expected \[3, 4\] .*, found \[4, 3\]"):
        tensors.load_model(net, {"weight": torch.zeros(4, 3)}, "x")
    with pytest.raises(CheckpointError, match="weight is missing"):
        tensors.load_model(net, {}, "x")
    with pytest.raises(CheckpointError, match="other is unknown"):
        tensors.load_model(net, {"weight": torch.zeros(3, 4), "other": torch.zeros(1)}, "x")


def test_an_optimizer_of_another_model_is_refused():
    net = torch.nn.Linear(4, 3, bias=False)
    optimizer = MuonAdamW([{"params": list(net.parameters())}])
    kept = tensors.optimizer_tensors(net, optimizer)
    with pytest.raises(CheckpointError, match=r"other\.exp_avg is unknown"):
        tensors.load_optimizer(net, optimizer, kept | {"other.exp_avg": torch.ones(3, 4)}, "x")
    with pytest.raises(CheckpointError, match=r"exp_avg: expected \[3, 4\] .*, found \[4, 4\]"):
        tensors.load_optimizer(net, optimizer, kept | {"weight.exp_avg": torch.ones(4, 4)}, "x")
    with pytest.raises(CheckpointError, match=r"weight\.exp_avg is missing"):
        tensors.load_optimizer(net, optimizer, {}, "x")
    assert not kept["weight.exp_avg"].any()


def test_what_was_just_saved_is_never_pruned():
    """Damaged checkpoints of later steps once pushed out the one saved after a resume."""
    for step in (1000, 1200, 20):
        save(step)
    with Folder.open(RUN) as run:
        commit.prune(FileOps(), run, Retention())
    assert [path.name for path in checkpoints.committed(RUN)] == [
        "step-00001200-000002",
        "step-00000020-000003",
    ]


def test_pinned_best_verified_and_last_survive_pruning():
    paths = {step: save(step) for step in range(10, 90, 10)}
    with Folder.open(RUN) as run:
        commit.mark_best(FileOps(), run, paths[20].name, 1.5)
        kept_ones = Retention(last=3, every=40)
        commit.prune(FileOps(), run, kept_ones, verified=paths[30].name)
    kept = [checkpoints.step_of(path) for path in checkpoints.committed(RUN)]
    assert kept == [80, 70, 60, 40, 30, 20]  # 80, 40: pinned; 20: best; 30: verified


def test_what_cannot_be_deleted_stays_and_stops_nothing():
    for step in (1, 2, 3, 4):
        save(step)
    stuck = failing(0, OSError(13, "Permission denied"))
    with Folder.open(RUN) as run:
        commit.prune(stuck, run, Retention())
    assert [checkpoints.step_of(p) for p in checkpoints.committed(RUN)] == [4, 3, 2]


def test_every_dtype_and_shape_passes_through_the_hand_written_header():
    stored = {
        "a.f32": torch.rand(3, 1),
        "b.f16": torch.rand(5).half(),
        "c.bf16": torch.rand(2, 2, 2).bfloat16(),
        "d.u8": torch.tensor([7], dtype=torch.uint8),
        "e.i64": torch.tensor(-5),
        "f.bool": torch.tensor([True, False, True]),
        "g.empty": torch.zeros(0, 4),
        "h.f64": torch.rand(1, dtype=torch.float64),
        "i.strided": torch.rand(4, 6).t(),
    }
    contents = tensors.contents_of({"x": stored})["x"]
    data = b"".join(bytes(part) for part in contents.parts)
    assert len(data) == contents.num_bytes
    loaded = safetensors.torch.load(data)
    assert loaded.keys() == stored.keys()
    assert all(torch.equal(loaded[name], stored[name]) for name in stored)


def test_weights_that_are_no_numbers_are_never_the_last_good_ones():
    good, spoilt = save(1), save(2)
    broken = {"w": torch.tensor([1.0, float("nan")])}
    forge(spoilt, "model.safetensors", safetensors.torch.save(broken))
    lines: list[str] = []
    assert tensors.newest(RUN, lines.append)[0] == good
    assert "w holds weights that are not finite" in lines[0]
    assert tensors.newest_path(RUN) == good
