"""Checkpoints: whole or absent, and never trusted unread."""

import json
import os
from pathlib import Path

import pytest
import torch

from helpers import edit_json
from stepglass import checkpoint
from stepglass.checkpoint import Snapshot
from stepglass.errors import CheckpointError

RUN = Path("run")


def snapshot(step: int = 5) -> Snapshot:
    tensors = {"w": torch.arange(12, dtype=torch.float32).reshape(3, 4)}
    return Snapshot(
        step, tensors, {"w.exp_avg": tensors["w"] * 2}, checkpoint.rng_tensors(), {"step": step}
    )


def test_what_was_saved_comes_back():
    saved = checkpoint.save(RUN, snapshot())
    loaded = checkpoint.load(saved.path)
    assert (loaded.step, loaded.state) == (5, {"step": 5})
    assert torch.equal(loaded.model["w"], snapshot().model["w"])
    assert torch.equal(loaded.rng["torch"], torch.get_rng_state())
    assert set(os.listdir(saved.path)) == {*checkpoint.FILES, "MANIFEST.json"}
    assert os.listdir(RUN / "ckpt") == ["step-00000005-000001"]


def test_a_step_saved_again_gets_a_folder_of_its_own_and_counts_as_newer():
    first = checkpoint.save(RUN, snapshot()).path
    second = checkpoint.save(RUN, snapshot()).path
    os.utime(first, (2e9, 2e9))  # file times say nothing
    assert checkpoint.committed(RUN) == [second, first]


def test_order_is_by_number_not_by_text():
    for step in (100_000_000, 99_999_999, 5):
        checkpoint.save(RUN, snapshot(step))
    assert [checkpoint.load(p).step for p in checkpoint.committed(RUN)] == [
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
    saved = checkpoint.save(RUN, snapshot())
    (RUN / "ckpt" / name).mkdir()
    assert checkpoint.committed(RUN) == [saved.path]


class Fatal:
    """Counts calls to several functions and fails at the n-th."""

    def __init__(self, at: int) -> None:
        self.at, self.calls = at, 0

    def wrap(self, real):
        def call(*args):
            self.calls += 1
            if self.calls == self.at:
                raise OSError(5, "Input/output error")
            return real(*args)

        return call


@pytest.mark.parametrize("at", range(1, 9))
def test_a_save_that_dies_at_any_call_leaves_no_broken_checkpoint(at, monkeypatch):
    kept = checkpoint.save(RUN, snapshot(1)).path
    fatal, atomic = Fatal(at), checkpoint.atomic
    monkeypatch.setattr(atomic, "write_durably", fatal.wrap(atomic.write_durably))
    monkeypatch.setattr(atomic, "fsync_directory", fatal.wrap(atomic.fsync_directory))
    monkeypatch.setattr(os, "rename", fatal.wrap(os.rename))
    with pytest.raises(CheckpointError, match="cannot save step 2: input/output error"):
        checkpoint.save(RUN, snapshot(2))
    assert fatal.calls == at
    if at < 8:  # the eighth call comes after the rename: the checkpoint exists, and is whole
        assert os.listdir(RUN / "ckpt") == [kept.name]
    for path in checkpoint.committed(RUN):
        checkpoint.load(path)


def test_every_flipped_bit_is_found():
    path = checkpoint.save(RUN, snapshot()).path
    for name in checkpoint.FILES:
        original = (path / name).read_bytes()
        for bit in range(0, len(original) * 8, max(1, len(original) * 8 // 100)):
            damaged = bytearray(original)
            damaged[bit // 8] ^= 1 << (bit % 8)
            (path / name).write_bytes(damaged)
            with pytest.raises(CheckpointError, match="its sha256 is not the manifest's"):
                checkpoint.load(path)
        (path / name).write_bytes(original)
    checkpoint.load(path)


def test_every_truncation_is_found_before_a_tensor_is_built(monkeypatch):
    path = checkpoint.save(RUN, snapshot()).path
    monkeypatch.setattr("safetensors.torch.load", None)
    original = (path / "model.safetensors").read_bytes()
    for length in range(0, len(original), 7):
        (path / "model.safetensors").write_bytes(original[:length])
        with pytest.raises(
            CheckpointError, match=f"expected {len(original)} bytes, found {length}"
        ):
            checkpoint.load(path)


def test_files_swapped_between_checkpoints_are_found():
    first, second = (checkpoint.save(RUN, snapshot(step)).path for step in (1, 2))
    (first / "state.json").rename("swap")
    (second / "state.json").rename(first / "state.json")
    with pytest.raises(CheckpointError, match="its sha256 is not the manifest's"):
        checkpoint.load(first)


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
    path = checkpoint.save(RUN, snapshot()).path
    (path / "MANIFEST.json").write_text(text, encoding="latin-1")
    with pytest.raises(CheckpointError, match="expected a manifest, found a problem"):
        checkpoint.load(path)


def test_another_versions_manifest_is_refused():
    path = checkpoint.save(RUN, snapshot()).path
    edit_json(path / "MANIFEST.json", schema=2)
    with pytest.raises(CheckpointError, match="expected schema 1, found 2"):
        checkpoint.load(path)


def test_a_manifest_cannot_name_files_elsewhere():
    path = checkpoint.save(RUN, snapshot()).path
    manifest = json.loads((path / "MANIFEST.json").read_text())
    manifest["files"]["../../x"] = manifest["files"].pop("state.json")
    (path / "MANIFEST.json").write_text(json.dumps(manifest))
    with pytest.raises(CheckpointError, match="it does not list a checkpoint's files"):
        checkpoint.load(path)


@pytest.mark.parametrize("target", ["../../etc", "step-00000005-000001/..", 7, None, "gone"])
def test_best_points_only_at_checkpoints_of_the_run(target):
    checkpoint.save(RUN, snapshot())
    (RUN / "best.json").write_text(json.dumps({"dir": target}))
    assert checkpoint.best_path(RUN) is None


def test_newest_whole_one_wins_and_each_skipped_one_gets_a_line():
    paths = [checkpoint.save(RUN, snapshot(step)).path for step in (1, 2, 3)]
    (paths[2] / "MANIFEST.json").unlink()
    (paths[1] / "optim.safetensors").unlink()
    lines: list[str] = []
    path, loaded = checkpoint.newest(RUN, lines.append)
    assert (path, loaded.step) == (paths[0], 1)
    assert [line.split(":")[0] for line in lines] == [
        "skipped step-00000003-000003",
        "skipped step-00000002-000002",
    ]


def test_nothing_whole_is_an_error():
    path = checkpoint.save(RUN, snapshot()).path
    (path / "MANIFEST.json").unlink()
    with pytest.raises(CheckpointError, match="found 1 damaged ones"):
        checkpoint.newest(RUN, lambda line: None)


def test_a_model_of_another_shape_is_named():
    net = torch.nn.Linear(4, 3, bias=False)
    with pytest.raises(CheckpointError, match=r"weight: expected \[3, 4\] .*, found \[4, 3\]"):
        checkpoint.load_model(net, {"weight": torch.zeros(4, 3)}, "x")
    with pytest.raises(CheckpointError, match="weight is missing"):
        checkpoint.load_model(net, {}, "x")
    with pytest.raises(CheckpointError, match="other is unknown"):
        checkpoint.load_model(net, {"weight": torch.zeros(3, 4), "other": torch.zeros(1)}, "x")


def test_an_optimizer_of_another_model_is_refused():
    net = torch.nn.Linear(4, 3, bias=False)
    optimizer = torch.optim.AdamW(net.parameters())
    with pytest.raises(CheckpointError, match="does not belong to this model"):
        checkpoint.load_optimizer(net, optimizer, {"other.exp_avg": torch.zeros(3, 4)}, "x")
    with pytest.raises(
        CheckpointError, match=r"weight\.exp_avg: expected \[3, 4\], found \[4, 4\]"
    ):
        checkpoint.load_optimizer(net, optimizer, {"weight.exp_avg": torch.zeros(4, 4)}, "x")


def test_what_was_just_saved_is_never_pruned():
    """Damaged checkpoints of later steps once pushed out the one saved after a resume."""
    for step in (1000, 1200, 20):
        checkpoint.save(RUN, snapshot(step))
    checkpoint.prune(RUN)
    assert [path.name for path in checkpoint.committed(RUN)] == [
        "step-00001200-000002",
        "step-00000020-000003",
    ]
