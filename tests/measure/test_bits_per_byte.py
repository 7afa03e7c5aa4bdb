"""Bits per byte, from what `prepare` counts to what a run's log says."""

import json
import math
import pickle
from pathlib import Path

import pytest

from helpers import TEXT, edit_json, prepare_tiny, records, train_tiny, write_tokens
from stepglass.cli import main
from stepglass.data.description import describe
from stepglass.measure.bits_per_byte import bits_per_byte


def splits_of(folder: str) -> dict[str, dict[str, int]]:
    return json.loads(Path(folder, "meta.json").read_text())["splits"]


@pytest.mark.parametrize("bad", [None, 0, -1.0, float("nan"), float("inf"), "1", True, 10**400])
def test_an_unknown_or_senseless_length_has_no_bits_per_byte(bad):
    assert bits_per_byte(1.5, bad) is None


@pytest.mark.parametrize("bad", [None, float("nan"), "1.5", [], 10**400])
def test_an_unknown_loss_has_no_bits_per_byte(bad):
    assert bits_per_byte(bad, 1.0) is None


def test_the_loss_of_long_tokens_is_shared_among_their_bytes():
    assert bits_per_byte(2.0, 4.0) == pytest.approx(2.0 / 4 / math.log(2))


@pytest.mark.parametrize("tokenizer", ["char", "bpe"])
def test_prepare_counts_the_bytes_and_tokens_of_each_split(tokenizer):
    text = "naïve café €5 – " * 400
    Path("text.txt").write_text(text)
    flags = ["--vocab_size=300"] if tokenizer == "bpe" else []
    assert main(["prepare", "text.txt", "--name=x", f"--tokenizer={tokenizer}", *flags]) == 0
    found = splits_of("data/x")
    num_train = int(len(text) * 0.9)
    assert found["train"]["bytes"] == len(text[:num_train].encode())
    assert found["val"]["bytes"] == len(text[num_train:].encode())
    tokens = found["val"]["tokens"]
    expected = found["val"]["bytes"] / tokens
    assert describe(Path("data/x")).bytes_per_token("val") == pytest.approx(expected)
    assert expected > 1


def test_the_end_of_a_document_is_a_token_without_bytes():
    Path("texts").mkdir()
    for name in ("a", "b", "c"):
        Path(f"texts/{name}.txt").write_text(TEXT)
    assert main(["prepare", "texts", "--name=x", "--tokenizer=bpe", "--vocab_size=300"]) == 0
    assert sum(split["bytes"] for split in splits_of("data/x").values()) == 3 * len(TEXT)


def test_a_run_says_how_long_the_tokens_of_its_validation_split_are():
    prepare_tiny()
    edit_json(Path("data/tiny/meta.json"), splits=halved(splits_of("data/tiny")))
    assert train_tiny(max_iters=1) == 0
    [start] = records("start")
    assert start["data"]["val_bytes_per_token"] == 0.5


def halved(splits: dict[str, dict[str, int]]) -> dict[str, dict[str, object]]:
    """As if two tokens made a byte, which no tokenizer does: the number comes from nowhere else."""
    return {name: {**split, "bytes": split["tokens"] / 2} for name, split in splits.items()}


def test_earlier_data_sets_are_known_if_every_token_is_an_ascii_character():
    folder = prepare_tiny()
    assert splits_of(str(folder))["val"]["bytes"] == splits_of(str(folder))["val"]["tokens"]
    for split in (splits := splits_of(str(folder))).values():
        del split["bytes"]
    edit_json(folder / "meta.json", splits=splits)
    assert describe(folder).bytes_per_token("val") == 1.0
    other = prepare_tiny(TEXT + "é" * 900, name="other")
    for split in (splits := splits_of(str(other))).values():
        del split["bytes"]
    edit_json(other / "meta.json", splits=splits)
    assert describe(other).bytes_per_token("val") is None


def test_the_tokens_of_a_folder_of_nanogpts_have_no_known_length_but_as_ascii_characters():
    folder = Path("data/foreign")
    write_tokens(folder / "val.bin", [0, 1] * 50)
    assert describe(folder).bytes_per_token("val") is None  # GPT-2's tokens
    for chars, length in (("ab", 1.0), ("aé", None), (["a", "bc"], None)):
        table = {char: index for index, char in enumerate(chars)}
        meta = {"vocab_size": 2, "stoi": table, "itos": {i: c for c, i in table.items()}}
        (folder / "meta.pkl").write_bytes(pickle.dumps(meta))
        assert describe(folder).bytes_per_token("val") == length


@pytest.mark.parametrize("bad", [0, -5, "many", None, 10**400, [], True])
def test_a_number_of_bytes_that_makes_no_sense_is_not_believed(bad):
    folder = prepare_tiny(TEXT + "é" * 900)
    splits = splits_of(str(folder))
    splits["val"]["bytes"] = bad
    edit_json(folder / "meta.json", splits=splits)
    assert describe(folder).bytes_per_token("val") is None
