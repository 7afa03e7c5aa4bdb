"""Training on text that is not prepared yet."""

import json
from pathlib import Path

import pytest

from helpers import TEXT, tiny_args
from stepglass.cli import main


def small_flags() -> list[str]:
    return [flag for flag in tiny_args() if not flag.startswith("--dataset")]


@pytest.mark.parametrize("word", ["my notes.txt", "texts"])
def test_text_that_is_not_prepared_is_prepared_and_trained_on(word, capsys):
    Path("texts").mkdir()
    for path in ("my notes.txt", "texts/a.txt"):
        Path(path).write_text(TEXT)
    name = "my_notes" if word == "my notes.txt" else "texts"
    assert main(["train", word, *small_flags()]) == 0
    said = capsys.readouterr().out
    assert f"preparing {word}, a token per character; `stepglass prepare` has other ways" in said
    assert f"data/{name}: train 4,590 tokens" in said
    assert json.loads(Path("out/config.json").read_text())["dataset"] == name
    assert main(["train", word, "--init_from=resume", "--max_iters=8", "--out_dir=out"]) == 0


def test_text_that_has_changed_since_is_not_trained_on_unnoticed(capsys):
    Path("notes.txt").write_text(TEXT)
    assert main(["train", "notes.txt", *small_flags()]) == 0
    Path("notes.txt").write_text(TEXT + "One more line.\n")
    capsys.readouterr()
    assert main(["train", "notes.txt", *small_flags()]) == 2
    assert "data/notes: holds another text, or another version of it ('notes'); --overwrite" in (
        capsys.readouterr().err
    )
