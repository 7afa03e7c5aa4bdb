"""Sampling: cached, seeded, and careful with what it prints."""

import re
from pathlib import Path

import pytest
import torch

from helpers import MODEL, prepare_tiny, train_tiny
from stepglass.cli import main
from stepglass.data import tokenizer
from stepglass.measure.shapes import GPTConfig, ModernConfig
from stepglass.models.decoding import Draw, generate, keep_top_k, keep_top_p, pick_token
from stepglass.models.gpt2 import GPT
from stepglass.models.kv_cache import KVCache
from stepglass.models.modern import Modern
from stepglass.run_dir import checkpoints
from stepglass.sample.text import TextStream


def net() -> GPT | Modern:
    torch.manual_seed(3)
    sizes = {"vocab_size": 40, "block_size": 16, "n_layer": 2, "n_head": 2, "n_embd": 32}
    model = GPT(GPTConfig(**sizes)) if MODEL == "gpt2" else Modern(ModernConfig(**sizes))
    for parameter in model.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
        parameter.data *= 4  # a model that has opinions
    return model.eval()


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [0, 1.0])
@pytest.mark.parametrize("prompt_length", [1, 10, 16, 50])
def test_cache_changes_nothing_but_the_speed_beyond_the_window_too(temperature, prompt_length):
    prompt = torch.randint(40, (prompt_length,)).tolist()
    options = {"max_new_tokens": 60, "draw": Draw(temperature)}
    assert list(generate(net(), prompt, **options)) == list(
        generate(net(), prompt, **options, use_cache=False)
    )


def test_a_cache_that_forgets_would_be_noticed(monkeypatch):
    """The test above can fail: give back only the newest keys and the texts differ."""
    want = list(generate(net(), [1, 2, 3], max_new_tokens=12, draw=Draw(0), use_cache=False))
    monkeypatch.setattr(KVCache, "update", lambda self, layer, keys, values: (keys, values))
    assert list(generate(net(), [1, 2, 3], max_new_tokens=12, draw=Draw(0))) != want


def test_greedy_tokens_are_those_of_recomputing_the_prefix_within_the_window():
    model, ids = net(), [5]
    for _ in range(15):
        ids.append(int(model.next_logits(torch.tensor([ids])).argmax()))
    assert list(generate(model, [5], max_new_tokens=15, draw=Draw(0))) == ids[1:]


def test_same_seed_same_text_other_seed_other_text():
    texts = [
        list(generate(net(), [1], max_new_tokens=30, draw=Draw(1.0, seed=s))) for s in (1, 1, 2)
    ]
    assert texts[0] == texts[1] != texts[2]


def test_padding_rows_of_the_vocabulary_are_never_sampled():
    tokens = list(generate(net(), [1], max_new_tokens=200, draw=Draw(5.0, top_k=0), vocab_size=10))
    assert max(tokens) < 10


def test_top_k_keeps_the_likeliest():
    scores = torch.tensor([1.0, 4.0, 3.0, 2.0])
    assert keep_top_k(scores, 2).isfinite().tolist() == [False, True, True, False]
    assert keep_top_k(scores, 0).isfinite().all()


def test_top_p_keeps_the_likeliest_that_reach_it():
    scores = torch.tensor([0.1, 0.5, 0.3, 0.1]).log()
    assert keep_top_p(scores, 0.6).isfinite().tolist() == [False, True, True, False]
    assert keep_top_p(scores, 0.01).isfinite().tolist() == [False, True, False, False]
    assert keep_top_p(scores, 1.0).isfinite().all()


def test_probabilities_are_those_of_the_softmax():
    scores, generator = torch.tensor([0.0, 1.0, 2.0]), torch.Generator().manual_seed(0)
    draws = torch.tensor([pick_token(scores, Draw(0.5, 0, 1.0), generator) for _ in range(4000)])
    expected = (scores / 0.5).softmax(0)
    assert torch.allclose(draws.bincount(minlength=3) / 4000, expected, atol=0.03)


def test_a_sample_that_ends_in_half_a_character_loses_nothing(monkeypatch, capsys):
    prepare_tiny("ab\ufffd" * 300)  # of which U+FFFD looks like half of another
    train_tiny(max_iters=1)
    capsys.readouterr()
    monkeypatch.setattr(
        "stepglass.sample.command.generate", lambda *args, **options: iter([0, 2, 2])
    )
    assert main(["sample", "out", "--prompt=b"]) == 0
    assert capsys.readouterr().out == "ba\ufffd\ufffd\n"


def test_characters_of_several_tokens_are_written_whole():
    codec = tokenizer.gpt2()
    decoder = TextStream(codec)
    pieces = [decoder.text(token) for token in codec.encode("a東京🙂b").tolist()]
    assert "".join(pieces) == "a東京🙂b"
    assert decoder.rest() == ""
    assert not any("\ufffd" in piece for piece in pieces)
    cut = [decoder.text(token) for token in codec.encode("a🙂").tolist()[:-1]]
    assert ("".join(cut), decoder.rest()) == ("a", "\ufffd")


@pytest.mark.finished_run
def test_command_writes_the_prompt_and_goes_on(capsys):
    capsys.readouterr()
    assert main(["sample", "out", "--prompt=To be", "--max_new_tokens=20", "--num_samples=2"]) == 0
    first, second = capsys.readouterr().out.split("---------------\n")
    assert first.startswith("To be")
    assert second.startswith("To be")
    assert len(first) == len("To be") + 20 + 1
    assert first != second
    Path("p.txt").write_text("that is")
    for words in (["out", "--prompt=FILE:p.txt"], ["--out_dir=out", "--start=FILE:p.txt"]):
        assert main(["sample", *words, "--max_new_tokens=1"]) == 0
        assert capsys.readouterr().out.startswith("that is")


def test_a_model_that_knows_no_line_ends_is_sampled_without_a_prompt(capsys):
    Path("dna.txt").write_text("ACGTTGCA" * 300)
    assert main(["prepare", "dna.txt"]) == 0
    assert train_tiny(dataset="dna") == 0
    capsys.readouterr()
    assert main(["sample", "out", "--max_new_tokens=10"]) == 0
    assert re.fullmatch("[ACGT]{11}\n", capsys.readouterr().out)


def test_a_run_of_nanogpts_is_named_as_what_it_is(capsys):
    Path("nano").mkdir()
    Path("nano/ckpt.pt").write_bytes(b"")
    for words in (["sample", "nano"], ["train", "--out_dir=nano", "--init_from=resume"]):
        assert main(words) == 2
        assert "found nanoGPT's ckpt.pt, for `stepglass import`" in capsys.readouterr().err


@pytest.mark.finished_run
def test_bad_prompts_and_runs_are_named(capsys):
    capsys.readouterr()
    cases = {
        (
            "out",
            "--prompt=naïve Ω",
        ): "characters the model has never seen: 'v' (U+0076), 'ï' (U+00EF), 'Ω'",
        ("out", "--prompt="): "--prompt expects at least one character, found none",
        ("out", "--prompt=FILE:nothing"): "nothing: cannot be read: no such file or directory",
        ("nowhere",): "nowhere: expected a run directory, found nothing",
        ("data",): "data: expected a checkpoint, found none",
        ("out", "--temperature=-1"): "--temperature: temperature must be at least 0, found -1.0",
        ("out", "--device=tpu"): "--device expects auto, cpu, cuda, cuda:N or mps, found 'tpu'",
        ("out", "again"): "expected one run directory, found",
        ("out", "--prompt=a", "--start=b"): "--prompt and --start mean the same; keep one",
    }
    for words, message in cases.items():
        assert main(["sample", *words]) == 2, words
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1


@pytest.mark.finished_run
def test_a_damaged_best_checkpoint_is_passed_over_with_its_reason(capsys):
    best = checkpoints.best_path(Path("out"))
    (best / "model.safetensors").write_bytes(b"junk")
    capsys.readouterr()
    assert main(["sample", "out", "--max_new_tokens=3"]) == 0
    assert f"skipped {best.name}: " in capsys.readouterr().err


@pytest.mark.parametrize("temperature", ["1e-40", "1e40"])
@pytest.mark.parametrize("top_p", ["1e-9", "1"])
def test_extreme_settings_still_choose_a_token(temperature, top_p):
    draw = Draw(float(temperature), top_p=float(top_p))
    assert len(list(generate(net(), [1], max_new_tokens=5, draw=draw))) == 5


@pytest.mark.finished_run
def test_nanogpts_sampling_flags_are_taken(capsys):
    flags = ["--init_from=resume", "--dtype=bfloat16", "--compile=False", "--num_samples=1"]
    assert main(["sample", "--out_dir=out", "--max_new_tokens=2", *flags]) == 0
    assert "note: sampling is in float32 and not compiled" in capsys.readouterr().err
