"""Which data a run is trained on: told by all of its bytes, and noticed when it changes."""

import hashlib
import os
import threading
from pathlib import Path

import numpy as np
import pytest

from helpers import prepare_tiny, train_tiny, write_tokens
from stepglass.data import dataset, identity, token_file
from stepglass.errors import CheckpointError, DataError
from stepglass.run_dir import checkpoints

TRAIN = Path("data/big/train.bin")


def nanogpts_folder(num_tokens: int = 5000) -> np.ndarray:
    """A data set that no manifest vouches for. Returns its tokens."""
    tokens = np.arange(num_tokens) % 97
    write_tokens(TRAIN, tokens)
    write_tokens(TRAIN.with_name("val.bin"), tokens[:300])
    return tokens


@pytest.fixture
def all_files_are_large(monkeypatch, tmp_path):
    """Every hash is worked out beside training, and only the very ends are known at once."""
    monkeypatch.setattr(identity, "AT_ONCE_BYTES", 0)
    monkeypatch.setattr(token_file, "EDGE_TOKENS", 16)
    monkeypatch.setenv("STEPGLASS_CACHE", str(tmp_path / "cache"))


def opened() -> dataset.Dataset:
    return dataset.load_dataset("big", 8)


def wait_for_hashes(data: dataset.Dataset) -> None:
    for split in (data.train, data.val):
        split.windows(np.array([0]), 9)
        if split._file.thread is not None:
            split._file.thread.join()


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def change_the_middle(tokens: np.ndarray) -> None:
    changed = tokens.copy()
    changed[len(tokens) // 2] += 1
    write_tokens(TRAIN, changed)


def test_a_token_changed_in_the_middle_makes_other_data(monkeypatch):
    monkeypatch.setattr(token_file, "EDGE_TOKENS", 16)
    tokens = nanogpts_folder()
    before = opened().fingerprint
    opened().resume("ckpt", before)
    change_the_middle(tokens)
    with pytest.raises(CheckpointError) as caught:
        opened().resume("ckpt", before)
    assert str(caught.value) == (
        "ckpt: was trained on other data than data/big holds now (train.bin: as many tokens, but "
        "others); prepare the old text there again, or start from scratch with another --out_dir"
    )


def test_a_large_file_is_hashed_beside_training_and_kept_in_mind(all_files_are_large, monkeypatch):
    nanogpts_folder()
    may_go_on = threading.Event()
    real = identity.OpenFile._digest

    def slow(self):
        may_go_on.wait()
        return real(self)

    monkeypatch.setattr(identity.OpenFile, "_digest", slow)
    data = opened()
    data.batch(1, 1, 4, 8)  # nothing has waited for the hash
    assert "sha256" not in data.fingerprint["train"]
    may_go_on.set()
    wait_for_hashes(data)
    assert data.fingerprint["train"]["sha256"] == sha256(TRAIN)
    monkeypatch.delattr(identity.OpenFile, "_digest")  # it is not worked out again
    assert opened().fingerprint == data.fingerprint


@pytest.mark.parametrize("damage", ["in place", "same size and time"])
def test_a_hash_that_was_kept_is_not_taken_for_that_of_another_file(all_files_are_large, damage):
    tokens = nanogpts_folder()
    wait_for_hashes(opened())
    status = TRAIN.stat()
    change_the_middle(tokens)
    if damage == "same size and time":
        os.utime(TRAIN, ns=(status.st_atime_ns, status.st_mtime_ns))
    data = opened()
    wait_for_hashes(data)
    assert data.fingerprint["train"]["sha256"] == sha256(TRAIN)


@pytest.mark.parametrize("trouble", ["no home", "a file in the way", "junk", "a pipe", "read only"])
def test_a_cache_that_cannot_be_used_does_no_harm(all_files_are_large, trouble, monkeypatch):
    nanogpts_folder()
    wait_for_hashes(opened())
    cached = list(Path("cache/hashes").iterdir())
    assert len(cached) == 2
    if trouble == "no home":
        for name in ("STEPGLASS_CACHE", "XDG_CACHE_HOME", "HOME"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    if trouble == "a file in the way":
        monkeypatch.setenv("STEPGLASS_CACHE", str(TRAIN))
    for path in cached:
        if trouble == "junk":
            path.write_bytes(b"\xff" * 64)
        if trouble == "a pipe":
            path.unlink()
            os.mkfifo(path)
    if trouble == "read only":
        monkeypatch.setattr(Path, "mkdir", lambda *args, **options: os.mkdir("/proc/nothing"))
        for path in cached:
            path.unlink()
    data = opened()
    wait_for_hashes(data)
    assert data.fingerprint["train"]["sha256"] == sha256(TRAIN)


def test_other_data_is_noticed_when_the_hash_of_a_large_file_comes(all_files_are_large):
    tokens = nanogpts_folder()
    first = opened()
    wait_for_hashes(first)
    change_the_middle(tokens)
    second = opened()
    second.resume("ckpt", first.fingerprint)  # its ends are the same, and more is not known
    wait_for_hashes(second)
    with pytest.raises(CheckpointError, match="ckpt: was trained on other data"):
        second.batch(1, 1, 4, 8)


def test_a_large_file_is_held_to_its_manifest_when_its_hash_comes(all_files_are_large):
    prepare_tiny(name="big")
    promised = sha256(TRAIN)
    assert opened().fingerprint["train"]["sha256"] == promised
    tokens = np.fromfile(TRAIN, "<u2")
    tokens[100:110] = tokens[200:210]
    tokens.tofile(TRAIN)
    data = opened()
    wait_for_hashes(data)
    with pytest.raises(DataError, match=r"its sha256 is not the one in data/big/meta\.json"):
        data.batch(1, 1, 4, 8)


@pytest.mark.parametrize(
    ("stored", "is_same"),
    [
        ({}, True),
        ({"vocab_size": 5}, False),
        ({"train": None}, False),
        ({"train": {}}, False),
        ({"train": {"tokens": 5000, "dtype": "uint16"}}, False),
        ({"train": {"tokens": 5000, "dtype": "uint16", "edges_sha256": "x"}}, False),
    ],
)
def test_a_checkpoint_is_held_to_what_it_says_of_its_data(stored, is_same):
    nanogpts_folder()
    found = opened().fingerprint
    assert identity.is_same_data(found | stored, found) == is_same


def test_a_checkpoint_of_an_earlier_version_knows_the_ends_of_its_data(monkeypatch):
    monkeypatch.setattr(token_file, "EDGE_TOKENS", 16)
    tokens = nanogpts_folder()
    stored = opened().fingerprint
    for split in ("train", "val"):
        del stored[split]["sha256"]
    opened().resume("ckpt", stored)
    write_tokens(TRAIN, np.roll(tokens, 1))
    with pytest.raises(CheckpointError):
        opened().resume("ckpt", stored)
    with pytest.raises(CheckpointError):
        opened().resume("ckpt", None)


def overwrite() -> None:
    with open(TRAIN, "r+b") as file:
        file.seek(5000)
        file.write(b"\1\0")


def replace() -> None:
    TRAIN.with_name("other").write_bytes(b"\1\0" * 5000)
    os.replace(TRAIN.with_name("other"), TRAIN)


def grow() -> None:
    with open(TRAIN, "ab") as file:
        file.write(b"\1\0")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (overwrite, "was written to during the run; restore it and resume"),
        (grow, "was written to during the run; restore it and resume"),
        (
            lambda: os.truncate(TRAIN, 10),
            "expected 10000 bytes, found 10: it shrank during the run",
        ),
    ],
)
def test_a_file_that_changes_while_it_is_read_is_noticed_at_the_next_batch(change, message):
    nanogpts_folder()
    data = opened()
    data.batch(1, 1, 4, 8)
    change()
    with pytest.raises(DataError) as caught:
        data.batch(1, 2, 4, 8)
    assert str(caught.value) == f"{TRAIN}: {message}"


@pytest.mark.parametrize("change", [replace, TRAIN.touch, TRAIN.unlink])
def test_a_file_that_is_replaced_touched_or_deleted_is_read_on_as_it_was(change):
    tokens = nanogpts_folder()
    data = opened()
    before, _ = data.batch(1, 2, 4, 8)
    change()
    after, _ = data.batch(1, 2, 4, 8)
    assert (before == after).all()
    assert len(data.train) == len(tokens)


def test_a_file_that_is_overwritten_ends_the_run_with_a_checkpoint(monkeypatch, capsys):
    prepare_tiny(name="big")
    real = dataset.Dataset.batch

    def overwrite_at_four(self, seed, step, *args):
        if step == 4:
            overwrite()
        return real(self, seed, step, *args)

    monkeypatch.setattr(dataset.Dataset, "batch", overwrite_at_four)
    assert train_tiny(dataset="big") == 2
    assert capsys.readouterr().err == (
        f"error: {TRAIN}: was written to during the run; restore it and resume\n"
    )
    assert checkpoints.step_of(checkpoints.committed(Path("out"))[0]) == 4


def test_a_data_set_that_is_let_go_leaves_no_file_open():
    nanogpts_folder()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        opened().batch(1, 1, 4, 8)
    assert len(os.listdir("/proc/self/fd")) == before
