"""Models of transformers, nanoGPT and llama.cpp compute here what they compute there."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from exchange import (
    CHARS,
    SHAPES,
    imported,
    in_process,
    logits_of,
    make_run,
    some_ids,
    with_opinions,
)
from helpers import prepare_tiny
from stepglass.cli import main
from stepglass.data import library_tokenizer, text_pieces, tokenizer
from stepglass.data.library_tokenizer import LibraryTokenizer
from stepglass.errors import DataError
from stepglass.foreign.confined_reader import read_gguf
from stepglass.foreign.pieces_tokenizer import pieces_tokenizer

__all__ = ["in_process"]

SIZES = {"vocab_size": 40, "num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 64}
MODERN = {**SIZES, "intermediate_size": 96, "max_position_embeddings": 32, "head_dim": 16}
ROPE = {"rope_type": "default", "rope_theta": 70_000.0}


def model_of(transformers: Any, kind: str) -> nn.Module:
    torch.manual_seed(1)
    if kind == "gpt2":
        config = transformers.GPT2Config(
            vocab_size=40, n_positions=32, n_embd=64, n_layer=2, n_head=4
        )
        model = transformers.GPT2LMHeadModel(config)
    elif kind == "qwen3":
        sizes = MODERN | {"head_dim": 32, "num_key_value_heads": 2}
        config = transformers.Qwen3Config(**sizes, rope_parameters=ROPE, tie_word_embeddings=True)
        model = transformers.Qwen3ForCausalLM(config)
    else:
        config = transformers.LlamaConfig(
            **MODERN, num_key_value_heads=1, rms_norm_eps=3e-5, rope_parameters=ROPE
        )
        model = transformers.LlamaForCausalLM(config)
    for parameter in model.parameters():
        parameter.data += 0.2 * torch.randn_like(parameter)
    return model.eval()


@pytest.mark.parametrize("shards", ["1GB", "20KB"])
@pytest.mark.parametrize("kind", ["gpt2", "qwen3", "llama"])
def test_logits_of_a_folder_are_those_of_transformers(kind, shards, transformers, capsys):
    other = model_of(transformers, kind)
    other.save_pretrained("there", max_shard_size=shards)
    assert Path("there/model.safetensors.index.json").exists() == (shards == "20KB")
    with torch.inference_mode():
        expected = other(some_ids()).logits
    here = imported("there").model
    torch.testing.assert_close(logits_of(here, some_ids()), expected, atol=1e-5, rtol=1e-5)
    assert "there has no tokenizer.json: tokens are shown as numbers" in capsys.readouterr().out


def as_nanogpt(prefix: str = "", moments: bool = True, **more) -> None:
    """A ckpt.pt as nanoGPT's train.py writes it, by torch alone."""
    shape = SHAPES["gpt2"]
    model = with_opinions(shape)
    named = dict(model.named_parameters())
    groups = [
        [p for p in named.values() if p.dim() >= 2],
        [p for p in named.values() if p.dim() < 2],
    ]
    adamw = torch.optim.AdamW([{"params": part} for part in groups], lr=1e-3)
    for parameter in named.values():
        parameter.grad = torch.randn_like(parameter)
    adamw.step()
    state = {prefix + name: tensor for name, tensor in model.state_dict().items()}
    state[prefix + "transformer.h.0.attn.bias"] = torch.ones(1, 1, 32, 32).tril()
    args = {
        key: getattr(shape, key) for key in ("block_size", "n_layer", "n_head", "n_embd", "bias")
    }
    found = {
        "model": state,
        "model_args": args | {"vocab_size": 40, "dropout": 0.0},
        "iter_num": 7,
        "best_val_loss": torch.tensor(1.5),
        "config": {"dataset": "chars", "learning_rate": 0.002, "out_dir": "/etc", "device": "cuda"},
    }
    if moments:
        found["optimizer"] = adamw.state_dict()
    torch.save(found | more, "ckpt.pt")
    torch.save([model.state_dict(), {n: adamw.state[p] for n, p in named.items()}], "truth.pt")


@pytest.mark.parametrize("prefix", ["", "_orig_mod.", "module.", "_orig_mod.module."])
def test_nanogpts_weights_and_moments_are_taken_over(prefix, in_process):
    as_nanogpt(prefix)
    model = imported("ckpt.pt").model
    weights, moments = torch.load("truth.pt", weights_only=True)
    assert all(torch.equal(tensor, weights[n]) for n, tensor in model.state_dict().items())
    path = next(Path("again/ckpt").glob("step-00000007-*"))
    from safetensors.torch import load_file  # noqa: PLC0415

    stored = load_file(path / "optim.safetensors")
    assert len(stored) == 3 * len(moments)
    for name, parts in moments.items():
        for key, value in parts.items():
            assert torch.equal(stored[f"{name}.{key}"], value)
    assert json.loads((path / "state.json").read_text())["best_val_loss"] == 1.5
    settings = json.loads(Path("again/config.json").read_text())
    assert settings["learning_rate"] == 0.002
    assert (settings["out_dir"], settings["device"]) == ("again", "auto")


@pytest.mark.long
@pytest.mark.slow
def test_a_process_of_its_own_reads_the_checkpoint(capsys):
    as_nanogpt()
    assert main(["import", "ckpt.pt", "--out_dir=again"]) == 0
    assert "stepglass resume again" in capsys.readouterr().out


def test_training_goes_on_where_nanogpt_stopped(in_process, capsys):
    prepare_tiny()
    vocab = json.loads(Path("data/tiny/meta.json").read_text())["vocab_size"]
    from stepglass.measure.shapes import GPTConfig  # noqa: PLC0415

    shape = GPTConfig(vocab_size=vocab, block_size=8, n_layer=1, n_head=2, n_embd=16)
    Path("nanogpt").mkdir()
    model = with_opinions(shape)
    adamw = torch.optim.AdamW(
        [{"params": [p for p in model.parameters() if (p.dim() >= 2) == big]} for big in (1, 0)]
    )
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    adamw.step()
    config = {"dataset": "tiny", "batch_size": 4, "gradient_accumulation_steps": 1, "max_iters": 5}
    config |= {"eval_iters": 2, "warmup_iters": 1, "lr_decay_iters": 9, "learning_rate": 1e-3}
    args = {
        k: getattr(shape, k) for k in ("vocab_size", "block_size", "n_layer", "n_head", "n_embd")
    }
    torch.save(
        {
            "model": model.state_dict(),
            "optimizer": adamw.state_dict(),
            "model_args": args | {"bias": False},
            "iter_num": 5,
            "best_val_loss": 9.5,
            "config": config,
        },
        "nanogpt/ckpt.pt",
    )
    assert main(["import", "nanogpt", "--out_dir=out"]) == 0
    assert main(["resume", "out", "--max_iters=8", "--device=cpu"]) == 0
    said = capsys.readouterr().out
    assert "Resuming training from out: step-00000005-000001, 5 updates done" in said
    assert "not the same bits" not in said
    assert "step 8: " in said
    assert "its tokens are those of data/tiny/meta.json" in said


def test_a_model_without_an_optimizer_is_not_resumed_but_tuned(in_process, capsys):
    prepare_tiny()
    as_nanogpt(moments=False)
    assert main(["import", "ckpt.pt", "--out_dir=again"]) == 0
    assert "without the optimizer's state" in capsys.readouterr().out


def test_characters_come_from_the_data_set_of_that_name(in_process, capsys):
    as_nanogpt()
    assert imported("ckpt.pt").tokenizer.decode([3, 1]) == "3 1 "
    assert "its 40 tokens have no text" in capsys.readouterr().out


# -- tokenizers of others -----------------------------------------------------------------------


def byte_tokenizer(split: str) -> dict:
    trained = tokenizer.train_bpe(iter([TEXT * 30]), 420).to_json()
    return {
        "kind": "hf",
        "tokenizer": {
            "version": "1.0",
            "pre_tokenizer": library_tokenizer.WORD_SPLITS[split],
            "decoder": library_tokenizer.WORD_SPLITS["gpt-2"],
            "model": {"type": "BPE", "vocab": trained["vocab"], "merges": trained["merges"]},
            "added_tokens": [
                {
                    "id": 0, "content": "<|endoftext|>", "special": True, "single_word": False,
                    "lstrip": False, "rstrip": False, "normalized": False,
                }
            ],
        },
        "end_of_text": "<|endoftext|>",
        "begin_of_text": None,
        "chat_template": "{{ messages }}",
    }  # fmt: skip


TEXT = "It's 1969, and we'll see 12345 stars!\n\n  Don't  go… naïve\tcafé € 中文\r\n"


@pytest.mark.parametrize("split", library_tokenizer.WORD_SPLITS)
def test_pieces_of_a_long_text_have_the_tokens_of_the_whole(split, monkeypatch):
    monkeypatch.setattr(text_pieces, "PIECE_CHARS", 7)
    codec = LibraryTokenizer(byte_tokenizer(split))
    draw = random.Random(2)
    words = [*TEXT.split(" "), "\n", "  ", "!\n", "\t ", "..."]
    for _ in range(200):
        text = " ".join(draw.choices(words, k=12))
        assert codec.encode(text).tolist() == codec._encoded(text)
        assert codec.decode(codec.encode(text).tolist()) == text


@pytest.mark.parametrize("split", library_tokenizer.WORD_SPLITS)
def test_the_way_to_split_words_goes_through_a_gguf_file(split, in_process):
    made = byte_tokenizer(split)
    shape = SHAPES["llama"].__class__(**{**vars(SHAPES["llama"]), "vocab_size": 420})
    make_run(shape, tokenizer=made)
    assert main(["export", "out", "--to=gguf"]) == 0
    before, after = LibraryTokenizer(made), imported("out.gguf").tokenizer
    assert after.encode(TEXT).tolist() == before.encode(TEXT).tolist()
    assert (after.chat_template, after.end_of_text) == ("{{ messages }}", 0)


def test_a_pattern_that_never_ends_is_one_line():
    made = byte_tokenizer("gpt-2")
    pattern = {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated"}
    made["tokenizer"]["pre_tokenizer"] = pattern | {"invert": False}
    with pytest.raises(DataError, match=r"tokenizer cannot encode this text: .*retry-limit"):
        LibraryTokenizer(made).encode("a" * 50 + "!")


def test_an_old_llamas_pieces_are_merged_by_their_scores():
    tokens = [
        "<unk>",
        "\u2581",
        "a",
        "b",
        "\u2581a",
        "ab",
        "\u2581ab",
        *(f"<0x{n:02X}>" for n in range(256)),
    ]
    scores = [0.0, -9, -8, -7, -1, -3, -2] + [0.0] * 256
    facts = {"tokenizer.ggml.scores": scores}
    stored = pieces_tokenizer(Path("x"), facts, tokens, {t: i for i, t in enumerate(tokens)})
    codec = LibraryTokenizer({"kind": "hf", "tokenizer": stored})
    assert codec.encode("ab a").tolist() == [6, 4]
    assert codec.encode("a!").tolist() == [4, 7 + ord("!")]
    assert codec.decode([6, 4]) == " ab a"  # as in the middle of a text
    assert codec.decode([4]) == " a"


def test_the_gguf_reader_gives_what_the_writer_was_given(in_process):
    make_run(SHAPES["gpt2 with biases"])
    main(["export", "out", "--to=gguf"])
    facts, tensors = read_gguf(Path("out.gguf"))
    assert facts["general.architecture"] == "gpt2"
    assert facts["gpt2.context_length"] == 32
    assert facts["tokenizer.ggml.tokens"][1] == "Ġ"
    assert tensors["blk.1.attn_qkv.weight"].shape == (192, 64)
    assert CHARS.vocab_size < 40
    assert facts["tokenizer.ggml.tokens"][39] == "[PAD39]"


def test_an_import_is_listed_as_what_it_is_and_not_as_a_fault(capsys):
    make_run(SHAPES["llama"], "theirs")
    capsys.readouterr()
    assert main(["runs", "theirs"]) == 0
    found = capsys.readouterr()
    [_, row] = found.out.splitlines()
    assert row.split()[:2] == ["theirs", "n/a"]
    assert row.endswith("imported")
    assert found.err == ""
    assert main(["runs", "theirs", "--json"]) == 0
    [known] = json.loads(capsys.readouterr().out)
    assert known["parameters"] == SHAPES["llama"].num_params()
    assert (known["iterations"], known["dataset"], known["problems"]) == (0, None, [])
    Path("theirs/run.jsonl").write_text("rubbish\n")
    assert main(["runs", "theirs"]) == 0
    assert "its log cannot be read" in capsys.readouterr().out
