"""The list of bad inputs: exit code 2, one line, nothing half-written.

Numbers are those of docs/bad-input.md; text files are in test_prepare.py, flags in test_config.py.
"""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch

from helpers import (
    TEXT,
    edit_json,
    forge,
    forge_state,
    prepare_tiny,
    tiny_args,
    train_tiny,
    write_tokens,
)
from stepglass.cli import main
from stepglass.data import dataset, token_file
from stepglass.run_dir import checkpoints

TINY = Path("data/tiny")


@pytest.fixture(autouse=True)
def data():
    prepare_tiny()


def refused(capsys, *argv: str) -> str:
    """Run a command that must be refused; returns its one line."""
    before = {str(path) for path in Path().rglob("*")}
    capsys.readouterr()
    assert main(list(argv)) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert "Traceback" not in error
    assert {str(path) for path in Path().rglob("*")} == before
    return error


def foreign(tokens, dtype="<u2", val=None) -> None:
    """A data set without a manifest, as nanoGPT makes it for GPT-2 tokens."""
    write_tokens(Path("data/foreign/train.bin"), tokens, dtype)
    write_tokens(Path("data/foreign/val.bin"), tokens if val is None else val, dtype)


def train_foreign() -> list[str]:
    return ["train", *tiny_args(dataset="foreign")]


def test_missing_data_set_is_named_with_those_that_exist(capsys):  # 1
    error = refused(capsys, "train", *tiny_args(dataset="nothing"))
    assert "data/nothing: no such data set; expected one of tiny, shakespeare" in error


@pytest.mark.parametrize("split", ["train", "val"])
def test_missing_file_is_named(split, capsys):  # 1, 18
    (TINY / f"{split}.bin").unlink()
    assert f"data/tiny/{split}.bin: no such file" in refused(capsys, "train", *tiny_args())


def test_missing_text_is_named(capsys):  # 1
    assert "nothing.txt: expected a text file, a folder, a glob" in refused(
        capsys, "prepare", "nothing.txt"
    )


def test_empty_file_is_refused(capsys):  # 2
    foreign([])
    assert "data/foreign/train.bin: expected tokens, found an empty file" in refused(
        capsys, *train_foreign()
    )


@pytest.mark.parametrize("count", [1, 8])
def test_fewer_tokens_than_a_window_are_refused(count, capsys):  # 3, 4
    foreign(range(count))
    error = refused(capsys, *train_foreign())
    assert f"expected at least 9 tokens for block_size=8, found {count}" in error


def test_validation_shorter_than_a_window_is_refused(capsys):  # 18
    foreign(range(100), val=range(5))
    assert "data/foreign/val.bin: expected at least 9 tokens" in refused(capsys, *train_foreign())


def test_half_a_token_is_refused(capsys):  # 5
    foreign(range(100))
    with open("data/foreign/train.bin", "ab") as file:
        file.write(b"x")
    assert "found 201 bytes, not a multiple of 2" in refused(capsys, *train_foreign())


def test_token_beyond_the_vocabulary_is_refused_with_its_place(capsys):  # 6
    foreign([*range(50), 60000, *range(50)])
    error = refused(capsys, *train_foreign())
    assert "train.bin token 50: expected ids below the vocabulary's 50304, found 60000" in error


def test_token_beyond_the_vocabulary_deep_in_a_file_is_found_when_it_is_read(monkeypatch):  # 6
    monkeypatch.setattr(token_file, "SCAN_TOKENS", 50)
    foreign([*range(60), 60000, *range(60)])
    data = dataset.load_dataset("foreign", 8)
    with pytest.raises(dataset.DataError, match="found 60000"):
        data.train.windows(np.array([0, 55]), 9)


def test_vocabulary_that_cannot_fit_its_tokens_is_refused(capsys):  # 7
    chars = {chr(0x4E00 + i): i for i in range(70_000)}
    edit_json(TINY / "meta.json", vocab_size=70_000, tokenizer={"kind": "char", "chars": chars})
    assert "a vocabulary of 70000 does not fit uint16 tokens" in refused(
        capsys, "train", *tiny_args()
    )


def test_wrong_endianness_is_recognised(capsys):  # 8
    foreign(np.arange(1, 200), dtype=">u2")
    assert "the bytes look big-endian" in refused(capsys, *train_foreign())


def test_file_that_shrinks_during_the_run_ends_it_with_a_checkpoint(monkeypatch, capsys):  # 9
    real = dataset.Dataset.batch

    def shrink_at_four(self, seed, step, *args):
        if step == 4:
            os.truncate(TINY / "train.bin", 10)
        return real(self, seed, step, *args)

    monkeypatch.setattr(dataset.Dataset, "batch", shrink_at_four)
    assert train_tiny() == 2
    assert "found 10: it shrank during the run" in capsys.readouterr().err
    assert sorted(os.listdir("out/ckpt"))[-1].startswith("step-00000004-")


def test_file_that_is_deleted_during_the_run_does_not_matter():  # 10
    data = dataset.load_dataset("tiny", 8)
    before, _ = data.batch(1, 1, 4, 8)
    (TINY / "train.bin").unlink()
    after, _ = data.batch(1, 1, 4, 8)
    assert (before == after).all()


@pytest.mark.parametrize("path", ["fifo", "/dev/zero", "/dev/null"])
def test_a_pipe_or_device_is_no_text(path, capsys):  # 11
    os.mkfifo("fifo")
    assert f"{path}: expected a regular file, found a" in refused(capsys, "prepare", path)


def test_a_folder_is_no_token_file(capsys):  # 11
    foreign(range(100))
    Path("data/foreign/train.bin").unlink()
    Path("data/foreign/train.bin").mkdir()
    assert "data/foreign/train.bin: expected a file of tokens, found something else" in refused(
        capsys, *train_foreign()
    )


def test_a_file_that_may_not_be_read_is_named(monkeypatch, capsys):  # 12
    real = os.open

    def locked(path, *args, **kwargs):  # root may read anything: chmod would prove nothing
        if str(path) in ("locked.txt", "data/tiny/train.bin"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *args, **kwargs)

    Path("locked.txt").write_text(TEXT)
    monkeypatch.setattr(os, "open", locked)
    assert "locked.txt: cannot be read: permission denied" in refused(
        capsys, "prepare", "locked.txt"
    )
    assert "data/tiny/train.bin: cannot be read: permission denied" in refused(
        capsys, "train", *tiny_args()
    )


def test_train_and_validation_that_are_the_same_are_remarked_on(capsys):  # 19
    foreign(list(range(50)) * 20)
    assert main(train_foreign()) == 0
    assert "hold the same tokens: the validation loss will say nothing new" in (
        capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"splits": {"train": {"tokens": 7}, "val": {"tokens": 510}}},
            "data/tiny/meta.json promises 7 tokens, found 4590",
        ),
        ({"vocab_size": 5}, "vocab_size is 5, but its tokenizer has 23"),
        ({"dtype": "float64"}, "dtype 'float64'"),
        ({"dtype": "uint32"}, "promises 4590 tokens, found 2295"),
        ({"tokenizer": {"kind": "magic"}}, "unknown kind 'magic'"),
        ({"tokenizer": {"kind": "char", "chars": {}}}, "its table is empty"),
        (
            {"tokenizer": {"kind": "char", "chars": {"ab": 0}}},
            "chars must map single characters to ids",
        ),
        ({"splits": 3}, "splits is not dict"),
    ],
)
def test_a_manifest_that_disagrees_with_the_data_is_refused(changes, message, capsys):  # 21
    edit_json(TINY / "meta.json", **changes)
    assert message in refused(capsys, "train", *tiny_args())


def test_data_that_changed_behind_its_manifest_is_refused(capsys):  # 21
    tokens = np.fromfile(TINY / "train.bin", "<u2")
    tokens[100] = (tokens[100] + 1) % 23
    tokens.tofile(TINY / "train.bin")
    assert "its sha256 is not the one in data/tiny/meta.json" in refused(
        capsys, "train", *tiny_args()
    )


@pytest.mark.parametrize("text", ["", "{", "null", "[1]", '{"a": NaN}'])
def test_a_broken_manifest_is_refused(text, capsys):  # 21
    (TINY / "meta.json").write_text(text)
    assert "data/tiny/meta.json: expected what `stepglass prepare` writes" in refused(
        capsys, "train", *tiny_args()
    )


def test_a_sparse_file_of_zeros_is_refused(capsys):  # 22
    foreign(range(100))
    with open("data/foreign/train.bin", "wb") as file:
        file.truncate(1_000_000)
    assert "expected text, found the same token 0 everywhere" in refused(capsys, *train_foreign())


def test_a_symlink_loop_is_named(capsys):  # 24
    os.symlink("loop.txt", "loop.txt")
    assert "loop.txt: cannot be read: too many levels of symbolic links" in refused(
        capsys, "prepare", "loop.txt"
    )


def test_a_file_that_is_no_text_cannot_be_trained_on(capsys):
    Path("image.png").write_bytes(b"\x89PNG\r\n" * 100)
    error = refused(capsys, "train", *tiny_args(dataset="image.png"))
    assert "image.png byte 0: expected UTF-8 text, found byte 0x89" in error
    assert not Path("data/image").exists()


@pytest.mark.parametrize(
    "changes",
    [
        {"n_embd": 1_000_000, "n_layer": 10_000},
        {"batch_size": 10**9},
    ],
)
def test_absurd_sizes_are_refused_before_anything_is_allocated(changes, capsys):  # 31
    assert "needs at least" in refused(capsys, "train", *tiny_args(**changes))


def test_out_dir_that_is_a_file_is_refused(capsys):  # 36
    Path("file").write_text("x")
    assert "--out_dir=file: expected a folder, found a file" in refused(
        capsys, "train", *tiny_args(out_dir="file")
    )
    assert "--out_dir=file/out: cannot be written: not a directory" in refused(
        capsys, "train", *tiny_args(out_dir="file/out")
    )


@pytest.mark.parametrize("out_dir", ["data/tiny", "data/tiny/out"])
def test_out_dir_inside_the_data_set_is_refused(out_dir, capsys):  # 36
    assert "lies inside the data set data/tiny" in refused(
        capsys, "train", *tiny_args(out_dir=out_dir)
    )


def test_out_dir_that_cannot_be_written_is_refused(capsys, monkeypatch):  # 36
    Path("out").mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write anywhere
    assert "--out_dir=out: cannot be written: permission denied" in refused(
        capsys, "train", *tiny_args()
    )


def test_device_that_is_not_there_is_refused(capsys):  # 39
    assert "--device=cuda: torch" in refused(capsys, "train", *tiny_args(device="cuda"))


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["xyzzy"], "unknown command 'xyzzy'; expected one of prepare, train, resume"),
        (["prepare"], "expected the name of a data set or a text file"),
        (["prepare", "text.txt", "--tokenizer=word"], "tokenizer expects char, bpe, gpt2 or"),
        (["prepare", "text.txt", "--val_fraction=1"], "val_fraction must be at most 0.9, found 1"),
        (["prepare", "text.txt", "--val_fraction=0"], "val_fraction must be above 0, found 0.0"),
        (["prepare", "text.txt", "--tokenizer=bpe", "--vocab_size=10"], "must be at least 258"),
        (["prepare", "text.txt", "--vocab_size=300"], "--vocab_size is for --tokenizer=bpe"),
        (["prepare", "text.txt", "--name=../x"], "--name expects a plain folder name"),
    ],
)
def test_commands_that_make_no_sense_are_refused(argv, message, capsys):
    assert message in refused(capsys, *argv)


@pytest.mark.finished_run
def test_a_hostile_data_set_name_in_a_run_is_not_followed(capsys):
    """nanoGPT joins a checkpoint's data set name into a path and unpickles what it finds there."""
    config = json.loads(Path("out/config.json").read_text())
    Path("out/config.json").write_text(json.dumps(config | {"dataset": "../../etc"}))
    capsys.readouterr()
    assert main(["sample", "out", "--max_new_tokens=1"]) == 0


@pytest.mark.parametrize("name", ["train.bin", "meta.json"])
def test_a_pipe_in_a_data_set_is_refused_and_not_waited_for(name, capsys):  # 11
    (TINY / name).unlink()
    os.mkfifo(TINY / name)
    assert f"data/tiny/{name}: expected" in refused(capsys, "train", *tiny_args())


def test_a_manifest_that_links_to_itself_is_not_taken_for_none(capsys):  # 24
    (TINY / "meta.json").unlink()
    os.symlink("meta.json", TINY / "meta.json")
    assert "data/tiny/meta.json: cannot be read" in refused(capsys, "train", *tiny_args())


@pytest.mark.parametrize(
    "argv",
    [
        ["train", "x" * 300],
        ["train", *tiny_args(out_dir="x" * 300)],
        ["sample", "x" * 300],
        ["prepare", "text.txt", "--name=" + "x" * 300],
    ],
)
def test_names_too_long_for_the_disk_are_refused(argv, capsys):  # 23
    assert "file name too long" in refused(capsys, *argv)


def test_an_out_dir_of_links_in_a_circle_is_refused(capsys):  # 24, 36
    os.symlink("loop", "loop")
    refused(capsys, "train", *tiny_args(out_dir="loop"))
    refused(capsys, "train", *tiny_args(out_dir="loop/x"))


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--gradient_accumulation_steps=10000000000000", "must be at most 1e+06"),
        ("--gradient_accumulation_steps=1000000", "needs at least"),
        ("--out_dir=a\0b", "out_dir expects text"),
        ("--n_layer=" + "9" * 5000, "n_layer"),
    ],
)
def test_numbers_and_names_beyond_reason_are_refused(flag, message, capsys):  # 31
    settings = [arg for arg in tiny_args(batch_size=1000) if not arg.startswith(flag.split("=")[0])]
    error = refused(capsys, "train", *settings, flag)
    assert message in error
    assert len(error) < 400


def test_a_control_character_in_a_name_does_not_reach_the_terminal(capsys):
    error = refused(capsys, "train", *tiny_args(dataset="a\n\x1b[31mb"))
    assert "\x1b" not in error


def test_a_data_set_where_a_file_cannot_be_is_refused_before_the_others_change(capsys):
    (TINY / "meta.json").unlink()
    (TINY / "meta.json").mkdir()
    before = (TINY / "train.bin").read_bytes()
    Path("text.txt").write_text("another text " * 100)
    assert "is a directory" in refused(capsys, "prepare", "text.txt", "--name=tiny", "--overwrite")
    assert (TINY / "train.bin").read_bytes() == before


def test_prepared_data_is_not_text_for_another_data_set():
    Path("books").mkdir()
    Path("books/a.txt").write_text(TEXT)
    assert main(["prepare", "books/a.txt", "--data_dir=books/data"]) == 0
    assert main(["prepare", "books"]) == 0
    assert json.loads(Path("data/books/meta.json").read_text())["source"]["documents"] == 1


@pytest.mark.finished_run
@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {"model_config": [1]},
        {"model_config": {"n_head": 0}},
        {"step": -5},
        {"best_val_loss": "x"},
        {"tokens": "x"},
        {"scaler": [1]},
        {"best_step": 10**400},
        {"evaluated_at": None},
        {"config": "x", "environment": [], "data": 7},
        {"run_id": ["\x1b[31m"], "data": None},
    ],
)
def test_a_checkpoint_with_a_hostile_state_is_refused(changes, capsys):
    for path in checkpoints.committed(Path("out"))[1:]:
        shutil.rmtree(path)
    forge_state(checkpoints.committed(Path("out"))[0], **changes)
    capsys.readouterr()
    before = Path("out/config.json").read_bytes()
    assert main(["train", "--out_dir=out", "--init_from=resume", "--max_iters=9"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert Path("out/config.json").read_bytes() == before


@pytest.mark.finished_run
@pytest.mark.slow
@pytest.mark.parametrize(
    "tokenizer",
    [
        {"kind": "char", "chars": {"a": 99999999999}},
        {"kind": "char", "chars": {"a": 0, "b": 0}},
        {"kind": "char", "chars": {chr(97 + i): i for i in range(26)}},
        {"kind": "bpe", "vocab": {"a": 0}, "merges": [["x", "y"]]},
        {"kind": "bpe", "vocab": {"a": -1}, "merges": []},
        [],
    ],
)
def test_a_hostile_tokenizer_in_a_run_is_refused(tokenizer, capsys):
    best = checkpoints.best_path(Path("out"))
    assert best is not None
    forge(best, "tokenizer.json", json.dumps(tokenizer).encode())
    capsys.readouterr()
    assert main(["sample", "out", "--prompt=a"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def shape_of(checkpoint: Path) -> dict[str, Any]:
    state = json.loads((checkpoint / "state.json").read_text())
    return dict(state["model_config"])


@pytest.mark.finished_run(model="modern")
@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {"block_size": 30_000_000},  # 262 kB of weights once took 11.5 GB
        {"block_size": 10**15},
        {"rope_theta": "x"},
        {"rope_theta": 0.0},
        {"rope_theta": 10**400},
        {"n_inner": 96.0},
        {"n_inner": -1},
        {"n_kv_head": True},
        {"dropout": []},
        {"tie_weights": 1},
        {"model": ["modern"]},
        {"model": "llama"},
        {"n_layer": 10**9, "n_embd": 2, "n_head": 1},
        {"unknown": 1},
    ],
)
def test_a_forged_shape_is_refused_before_anything_is_allocated(changes, capsys):
    for path in checkpoints.committed(Path("out")):
        forge_state(path, model_config=shape_of(path) | changes)
    capsys.readouterr()
    assert main(["sample", "out", "--prompt=a"]) == 2
    error = capsys.readouterr().err
    assert "expected a model's shape, found a problem: " in error
    assert error.count("\n") == 1


@pytest.mark.finished_run(max_iters=3)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("numpy", [*range(624), 625, 0]),  # NumPy would read beyond its memory
        ("numpy", [*range(624), -1, 0]),
        ("numpy", [2**40] * 624 + [1, 0]),
        ("numpy", [1, 2, 3]),
        ("python", [2**60] * 625),
        ("python", [1]),
        ("python.gauss", []),
        ("torch", [1, 2, 3]),
    ],
)
def test_a_generators_state_that_is_out_of_range_is_one_line(name, values, capsys):
    for path in checkpoints.committed(Path("out")):
        states = safetensors.torch.load((path / "rank-00000.safetensors").read_bytes())
        states[name] = torch.tensor(values, dtype=states[name].dtype)
        forge(path, "rank-00000.safetensors", safetensors.torch.save(states))
    capsys.readouterr()
    assert main(["train", "--out_dir=out", "--init_from=resume", "--max_iters=9"]) == 2
    error = capsys.readouterr().err
    assert "its state does not fit this run" in error
    assert error.count("\n") == 1
