"""What is exported computes the same in transformers, and comes back as it was."""

import json
import random
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from exchange import CHARS, SHAPES, imported, in_process, loaded, logits_of, make_run, some_ids
from helpers import prepare_tiny, train_tiny
from stepglass.cli import main
from stepglass.data import tokenizer
from stepglass.export.tokenizer_file import tokenizer_json
from stepglass.foreign.confined_reader import read_gguf

__all__ = ["in_process"]


@pytest.mark.parametrize("name", SHAPES)
def test_transformers_computes_the_same_logits(name, transformers):
    model = make_run(SHAPES[name])
    assert main(["export", "out", "--to=hf"]) == 0
    other = transformers.AutoModelForCausalLM.from_pretrained("out-hf").eval()
    idx = some_ids()
    with torch.inference_mode():
        expected = other(idx).logits
    torch.testing.assert_close(logits_of(model, idx), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("to", ["hf", "gguf"])
@pytest.mark.parametrize("name", SHAPES)
def test_a_model_comes_back_as_it_was(name, to, in_process):
    model = make_run(SHAPES[name])
    out = {"hf": "out-hf", "gguf": "out.gguf"}[to]
    assert main(["export", "out", f"--to={to}"]) == 0
    back = imported(out)
    if name == "gpt2" and to == "gguf":  # llama.cpp has the other GELU, and always biases
        assert back.model.config.bias
        back.model.config = model.config
        for block in back.model.transformer.h:
            block.mlp.gelu = "none"
    else:
        assert back.model.config == model.config
    assert torch.equal(logits_of(back.model, some_ids()), logits_of(model, some_ids()))
    assert back.tokenizer.to_json() == CHARS.to_json()


@pytest.mark.parametrize("name", ["qwen3", "llama tied", "gpt2 with biases"])
def test_llama_cpp_takes_no_character_for_the_end_of_text(name, in_process):
    """It takes token 11, if a file names no other."""
    shape = replace(SHAPES[name], vocab_size=CHARS.vocab_size)
    model = make_run(shape)
    assert main(["export", "out", "--to=gguf"]) == 0
    facts, tensors = read_gguf(Path("out.gguf"))
    assert facts["tokenizer.ggml.eos_token_id"] == CHARS.vocab_size
    assert len(facts["tokenizer.ggml.tokens"]) == len(tensors["token_embd.weight"])
    assert len(tensors["token_embd.weight"]) == CHARS.vocab_size + 1
    back = imported("out.gguf")
    assert back.model.config == shape
    ids = some_ids(CHARS.vocab_size)
    assert torch.equal(logits_of(back.model, ids), logits_of(model, ids))


@pytest.mark.parametrize(("dtype", "off"), [("f16", 2e-2), ("q8_0", 0.3)])
def test_fewer_bits_change_little(dtype, off, in_process):
    model = make_run(SHAPES["qwen3"])
    assert main(["export", "out", "--to=gguf", f"--dtype={dtype}"]) == 0
    assert Path("out.gguf").stat().st_size < 4 * SHAPES["qwen3"].num_params()
    there, here = logits_of(imported("out.gguf").model, some_ids()), logits_of(model, some_ids())
    assert 0 < (there - here).abs().max() < off * here.abs().max()


@pytest.mark.finished_run(model="gpt2")
def test_nanogpts_checkpoint_comes_back_with_the_optimizers_moments(in_process):
    assert main(["export", "out", "--to=nanogpt"]) == 0
    assert main(["import", "out-nanogpt", "--out_dir=again"]) == 0
    before, after = (next(Path(out, "ckpt").glob("step-00000006-*")) for out in ("out", "again"))
    for name in ("model.safetensors", "optim.safetensors"):
        assert (before / name).read_bytes() == (after / name).read_bytes()
    assert json.loads((after / "tokenizer.json").read_text()) == json.loads(
        (before / "tokenizer.json").read_text()
    )
    settings = json.loads(Path("again/config.json").read_text())
    assert (settings["learning_rate"], settings["dataset"]) == (0.01, "tiny")


@pytest.mark.finished_run(model="gpt2")
def test_nanogpt_reads_the_checkpoint_as_it_does_its_own():
    main(["export", "out", "--to=nanogpt"])
    found = torch.load("out-nanogpt/ckpt.pt", weights_only=True)
    assert set(found) == {"model", "model_args", "iter_num", "best_val_loss", "config", "optimizer"}
    assert torch.equal(found["model"]["lm_head.weight"], found["model"]["transformer.wte.weight"])
    assert set(found["model_args"]) == {
        "n_layer", "n_head", "n_embd", "block_size", "bias", "vocab_size", "dropout",
    }  # fmt: skip
    own = [
        torch.nn.Parameter(torch.zeros_like(w)) for n, w in found["model"].items() if "lm_" not in n
    ]
    groups = [[p for p in own if p.dim() >= 2], [p for p in own if p.dim() < 2]]
    adamw = torch.optim.AdamW([{"params": part} for part in groups])
    adamw.load_state_dict(found["optimizer"])  # fails if the groups have other sizes
    assert all(adamw.state[p]["exp_avg"].shape == p.shape for p in own)


@pytest.mark.parametrize(
    ("codec", "shows_wrong_text"),
    [(CHARS, False), (tokenizer.WordTokenizer({"ab": 0, "cd": 39}), True)],
)
def test_tokens_that_nanogpt_does_not_have_are_remarked_on(codec, shows_wrong_text, capsys):
    make_run(SHAPES["gpt2"], tokenizer=codec.to_json())
    assert main(["export", "out", "--to=nanogpt"]) == 0
    assert ("its sample.py writes wrong text" in capsys.readouterr().out) is shows_wrong_text
    assert Path("out-nanogpt/ckpt.pt").is_file()


@pytest.mark.parametrize(
    ("template", "command"),
    [(None, 'llama-completion -m out.gguf -no-cnv -p "..."'), ("x", "llama-cli -m out.gguf")],
)
def test_what_to_type_for_llama_cpp_depends_on_whether_the_model_answers(template, command, capsys):
    make_run(SHAPES["llama"], tokenizer={**CHARS.to_json(), "chat_template": template})
    assert main(["export", "out", "--to=gguf"]) == 0
    assert f"use it: {command}\n" in capsys.readouterr().out


def strings(alphabet: str, count: int) -> list[str]:
    draw = random.Random(11)
    return ["".join(draw.choices(alphabet, k=draw.randrange(24))) for _ in range(count)]


ANY = "abcdefghij ABC 0123456789 \n\t.,;!?'\"()-_ äöüß éèê €Ω中文字🙂 don't  we'll  "


@pytest.mark.parametrize("kind", ["char", "bpe", "gpt2"])
def test_transformers_makes_the_same_tokens_of_ten_thousand_strings(kind, transformers):
    if kind == "char":
        codec, alphabet = CHARS, "".join(CHARS.to_json()["chars"])
    elif kind == "bpe":
        codec, alphabet = tokenizer.train_bpe(iter([ANY * 40]), 400), ANY
    else:
        codec, alphabet = tokenizer.gpt2(), ANY
    shape = SHAPES["qwen3"].__class__(**{**vars(SHAPES["qwen3"]), "vocab_size": codec.vocab_size})
    make_run(shape, tokenizer=codec.to_json())
    assert main(["export", "out", "--to=hf"]) == 0
    other = transformers.AutoTokenizer.from_pretrained("out-hf")
    texts = strings(alphabet, 10_000)
    expected = other(texts, add_special_tokens=False).input_ids
    assert [codec.encode(text).tolist() for text in texts] == expected
    assert [other.decode(ids) for ids in expected[:500]] == texts[:500]
    assert imported("out-hf").tokenizer.to_json() == codec.to_json()


def test_a_character_of_several_bytes_is_one_token_for_llama_cpp():
    from stepglass.export.gguf_writer import vocabulary  # noqa: PLC0415

    vocab, merges, split, special = vocabulary(CHARS)
    assert vocab["Ġ"] == CHARS.encode(" ")[0]
    assert vocab["Ã©"] == CHARS.encode("é")[0]
    assert {"Ã ©", "â Ĥ", "âĤ ¬"} <= set(merges)
    assert (split, special) == ("gpt-2", set())


def test_a_table_of_words_has_no_tokenizer_json(capsys):
    words = tokenizer.WordTokenizer({"king": 0, "queen": 1})
    assert tokenizer_json(words) is None
    make_run(SHAPES["qwen3"], tokenizer=words.to_json())
    assert main(["export", "out", "--to=hf"]) == 0
    assert "note: no tokenizer is written" in capsys.readouterr().out
    assert not Path("out-hf/tokenizer.json").exists()
    assert main(["export", "out", "--to=gguf"]) == 2
    assert "export with --to=hf" in capsys.readouterr().err
    assert not Path("out.gguf").exists()


@pytest.mark.finished_run
def test_the_card_says_how_well_and_on_what():
    assert main(["export", "out", "--to=hf", "--out=card"]) == 0
    card = Path("card/README.md").read_text()
    best = json.loads(Path("out/best.json").read_text())["val_loss"]
    for line in (
        f"| validation loss (nats per token) | {best:.4f} |",
        "| data | tiny |",
        "| updates | 6 |",
        "| learning_rate | 0.01 |",
        "| forward_backward | ",
        "| wall clock | ",
    ):
        assert line in card
    assert "bits per byte | n/a" not in card


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["out"], "expected --to=hf, --to=gguf or --to=nanogpt"),
        (["out", "--to=onnx"], "--to"),
        (["out", "--to=hf", "--dtype=q8_0"], "--dtype=q8_0 is for --to=gguf"),
        (["nothing", "--to=hf"], "expected a run directory, found nothing"),
        (["out", "--to=hf", "--out=there"], "there: exists already"),
        (["out", "--to=nanogpt"], "nanoGPT has only GPT-2"),
        (["out", "--to=hf", "--out=/proc/nowhere/x"], "cannot be written"),
    ],
)
def test_what_cannot_be_exported_is_one_line(argv, said, capsys):
    make_run(SHAPES["qwen3"])
    Path("there").mkdir()
    before = sorted(Path().rglob("*"))
    capsys.readouterr()
    assert main(["export", *argv]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert sorted(Path().rglob("*")) == before


def test_without_the_package_the_line_names_the_command_that_installs_it(monkeypatch, capsys):
    make_run(SHAPES["qwen3"])
    monkeypatch.setitem(sys.modules, "gguf", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["export", "out", "--to=gguf"]) == 2
    assert "not installed: pip install gguf" in capsys.readouterr().err


def test_a_trained_run_is_exported_from_its_best_checkpoint(capsys):
    prepare_tiny()
    train_tiny()
    main(["export", "out", "--to=hf"])
    best = json.loads(Path("out/best.json").read_text())["dir"]
    assert best in capsys.readouterr().out
    assert np.isfinite(loaded("out").model.lm_head.weight.detach().numpy()).all()
