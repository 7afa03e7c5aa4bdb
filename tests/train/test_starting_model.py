"""A run that starts from a trained model: its own, an import, or an export."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from exchange import CHARS, SHAPES, make_run
from helpers import TINY, forge_state, prepare_tiny, records
from stepglass.cli import main

OF_MODEL = ("model", "n_layer", "n_head", "n_embd", "block_size", "recipe")


def tune(*flags: str, init_from: str = "out", out_dir: str = "tuned", **changes) -> int:
    settings = {key: value for key, value in TINY.items() if key not in OF_MODEL} | changes
    settings |= {"init_from": init_from, "out_dir": out_dir}
    return main(["train", *(f"--{key}={value}" for key, value in settings.items()), *flags])


@pytest.mark.finished_run
@pytest.mark.parametrize("where", ["out", "out-hf"])
def test_it_begins_with_the_loss_at_which_the_other_run_ended(where, capsys):
    if where == "out-hf":
        assert main(["export", "out", "--to=hf"]) == 0
    assert tune(init_from=where, learning_rate=1e-5, min_lr=1e-6) == 0
    best = json.loads(Path("out/best.json").read_text())["val_loss"]
    first = records("eval", "tuned")[0]
    assert first["iter"] == 0
    assert first["val_loss"] == pytest.approx(best, abs=2e-4)
    assert "context 8 of 8 tokens" in capsys.readouterr().out
    assert records("start", "tuned")[0]["config"]["optimizer"] == "adamw"  # as the recipe says


@pytest.mark.finished_run(model="gpt2")
def test_the_context_is_cropped(capsys):
    assert tune(block_size=4) == 0
    assert "context 4 of 8 tokens" in capsys.readouterr().out
    assert records("start", "tuned")[0]["model"]["block_size"] == 4
    assert main(["resume", "tuned", "--max_iters=8"]) == 0


@pytest.mark.finished_run
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"out_dir": "out"}, "is the model to start from; choose another"),
        ({"n_layer": 3}, "has its own n_layer; leave it out"),
        ({"init_from": "nowhere"}, "nowhere: expected a run directory, nanoGPT's ckpt.pt"),
        ({"init_from": "data"}, "found none of them in it"),
        ({"dataset": "other"}, "has other tokens than the model"),
    ],
)
def test_what_cannot_be_the_start_is_one_line(changes, said, capsys):
    prepare_tiny("quite another text, with fewer letters\n" * 60, "other")
    before = Path("out/config.json").read_bytes()
    capsys.readouterr()
    assert tune(**changes) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert Path("out/config.json").read_bytes() == before
    assert not Path("tuned").exists()


def test_text_is_prepared_with_the_tokens_of_the_model(capsys):
    make_run(replace(SHAPES["llama"], block_size=8), "out")
    Path("notes.txt").write_text("ten green bottles hanging on the wall\n" * 60)
    assert tune(dataset="notes.txt") == 0
    assert "with the tokens of out" in capsys.readouterr().out
    meta = json.loads(Path("data/notes/meta.json").read_text())
    assert meta["tokenizer"] == CHARS.to_json()
    assert records("start", "tuned")[0]["model"]["vocab_size"] == 40  # the model's, not the data's
    assert main(["resume", "tuned", "--max_iters=8"]) == 0  # which keeps it


def test_a_name_that_is_no_run_has_no_tokens(capsys):
    Path("notes.txt").write_text("some text\n" * 60)
    assert main(["prepare", "notes.txt", "--tokenizer=chars"]) == 2
    assert "expects char, bpe, gpt2 or the folder of a run" in capsys.readouterr().err


def test_an_import_without_an_optimizer_is_not_resumed(capsys):
    prepare_tiny()
    vocab = json.loads(Path("data/tiny/meta.json").read_text())
    shape = replace(SHAPES["gpt2"], vocab_size=vocab["vocab_size"], block_size=8)
    make_run(shape, "out", vocab["tokenizer"], settings={"dataset": "tiny"})
    assert main(["resume", "out", "--max_iters=3", "--device=cpu"]) == 2
    assert "has no optimizer's state to go on with" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["gpt2", "hf:someone/something"])
def test_without_a_network_the_line_says_what_to_give_instead(name, capsys, monkeypatch):
    def offline(*args, **options):
        raise OSError("no network\nand more lines")

    monkeypatch.setattr("huggingface_hub.snapshot_download", offline)
    assert main(["import", name, "--out_dir=again"]) == 2
    error = capsys.readouterr().err
    assert "neither in the Hugging Face cache" in error
    assert "--init_from=FOLDER" in error
    assert error.count("\n") == 1


@pytest.mark.finished_run
def test_a_run_of_a_version_without_the_newer_settings_can_be_the_start():
    newest = max(Path("out/ckpt").iterdir())
    best = Path("out/ckpt") / json.loads(Path("out/best.json").read_text())["dir"]
    for checkpoint in {newest, best}:
        shape = json.loads((checkpoint / "state.json").read_text())["model_config"]
        new = ("qk_norm", "norm_eps", "n_head_dim", "gelu")
        old = {key: value for key, value in shape.items() if key not in new}
        assert len(old) < len(shape)
        forge_state(checkpoint, model_config=old)
    assert tune(max_iters=2) == 0
    assert main(["resume", "out", "--max_iters=7"]) == 0
