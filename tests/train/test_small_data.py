"""A small text is noticed before step 1, and what suits it is chosen, said, stored and kept."""

import json
import re
from pathlib import Path

import pytest

from helpers import TEXT, records
from stepglass.cli import main

# The recipe is chosen automatically, and so are dropout, patience and the like.
SMALL = {
    "n_layer": 1,
    "n_head": 2,
    "n_embd": 64,
    "block_size": 8,
    "batch_size": 8,
    "max_iters": 150,
    "device": "cpu",
    "log_interval": 1000,
}


def train_notes(*flags: str, **changes) -> int:
    settings = [f"--{key}={value}" for key, value in (SMALL | changes).items()]
    return main(["train", "notes.txt", *settings, *flags])


@pytest.fixture(autouse=True)
def notes():
    Path("notes.txt").write_text(TEXT)


def settings_of(out_dir: str = "out") -> dict:
    return json.loads(Path(out_dir, "config.json").read_text())


def test_small_data_is_said_before_the_first_step_with_every_choice_and_its_reason(capsys):
    assert train_notes() == 0
    lines = capsys.readouterr().out.splitlines()
    before = lines[: next(i for i, line in enumerate(lines) if line.startswith("iter 0"))]
    facts = next(line for line in before if line.startswith("data: small for this run"))
    assert re.fullmatch(
        r"data: small for this run: 4,590 training tokens, [\d,]+ parameters \([\d.]+% of them in "
        r"embeddings\), 2.1 epochs in 150 iterations",
        facts,
    )
    cfg = settings_of()
    for key in ("dropout", "weight_decay", "eval_interval", "patience"):
        assert any(line.startswith(f"{key}: {cfg[key]}: ") for line in before), key
    assert cfg["dropout"] > 0
    started = records("start")[0]["config"]
    assert {key: started[key] for key in cfg if key in ("dropout", "patience")} == {
        key: cfg[key] for key in ("dropout", "patience")
    }


def test_a_setting_that_was_given_is_obeyed(capsys):
    Path("mine.toml").write_text("weight_decay = 0.5\npatience = 7\n")
    assert train_notes("mine.toml", dropout=0.0) == 0
    cfg = settings_of()
    assert (cfg["dropout"], cfg["patience"], cfg["weight_decay"]) == (0.0, 7, 0.5)
    assert "\ndropout:" not in capsys.readouterr().out


def test_a_recipe_that_was_named_is_obeyed_and_the_facts_are_still_said(capsys):
    assert train_notes(recipe="quick") == 0
    said = capsys.readouterr().out
    assert "data: small for this run" in said
    assert (settings_of()["dropout"], settings_of()["patience"]) == (0.0, 0)


def test_a_run_that_is_resumed_keeps_what_was_chosen(capsys):
    assert train_notes() == 0
    before = settings_of()
    capsys.readouterr()
    assert main(["train", "--out_dir=out", "--init_from=resume", "--max_iters=160"]) == 0
    said = capsys.readouterr().out
    assert "data: small" not in said
    assert settings_of() == before | {"max_iters": 160, "init_from": "resume"}


# -- the length in epochs -------------------------------------------------------------------------


def test_the_length_of_a_run_can_be_given_in_epochs(capsys):
    settings = SMALL | {"out_dir": "out"}
    del settings["max_iters"]
    flags = [f"--{key}={value}" for key, value in settings.items()]
    assert main(["train", "notes.txt", *flags, "--epochs=0.5"]) == 0
    assert "epochs: 0.5: 36 iterations" in capsys.readouterr().out  # of 64 of 4590 tokens
    assert len(records("iter")) == 36
    assert settings_of()["max_iters"] == 36
    assert main(["train", "--out_dir=out", "--init_from=resume", "--epochs=0.75"]) == 0
    assert settings_of()["max_iters"] == 54
    assert main(["train", "--out_dir=out", "--init_from=resume", "--max_iters=60"]) == 0
    assert (settings_of()["max_iters"], settings_of()["epochs"]) == (60, 0.0)


def test_epochs_and_iterations_are_not_given_together(capsys):
    assert train_notes("--epochs=2") == 2
    assert capsys.readouterr().err == (
        "error: epochs=2 and max_iters=150 both set the length of the run; keep one\n"
    )
