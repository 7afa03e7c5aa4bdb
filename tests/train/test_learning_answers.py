"""Training on conversations: the loss is the mean over what the assistant says, however an update
is split."""

import io
import sys
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

from chats import BLOCK, prepare_chats, write_chats
from helpers import TINY, prepare_tiny, records, train_tiny
from runs import digest, evaluations, losses, resume, stop_after
from stepglass.cli import main
from stepglass.data.dataset import IGNORED, inputs_and_targets, load_dataset
from stepglass.measure import memory_model
from stepglass.sample.load import load_run
from stepglass.serve.asked import read_asked

CHATS = {"dataset": "chats", "block_size": BLOCK}


def losses_of_counted(model: torch.nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The losses of all targets that count, computed without the code of the package."""
    logits = model.lm_head(model.hidden(x)).flatten(0, 1)
    picked = (y != IGNORED).flatten()
    return F.cross_entropy(logits[picked], y.flatten()[picked], reduction="none")


@pytest.fixture(autouse=True)
def conversations():
    prepare_chats()


def test_the_loss_of_an_update_is_the_mean_over_what_counts():
    settings = CHATS | {"gradient_accumulation_steps": 3, "eval_interval": 2}
    assert train_tiny(**settings, max_iters=2, out_dir="before") == 0
    assert train_tiny(**settings, max_iters=3) == 0
    loaded = load_run(Path("before"), torch.device("cpu"), print)
    assert loaded.path.name.startswith("step-00000002")
    before = loaded.model
    x, y = load_dataset("chats", BLOCK).batch(1337, 2, 12, BLOCK)
    mean = losses_of_counted(before, x, y).mean().item()
    assert records("iter")[2]["loss"] == pytest.approx(mean, rel=1e-5)
    # What the user says has no say: other targets there would change any other mean.
    assert mean != pytest.approx(before(x, y).item(), rel=0.1)


def test_an_evaluation_is_the_mean_over_what_counts():
    assert train_tiny(**CHATS, max_iters=4, eval_interval=4, eval_iters=1000) == 0
    model = load_run(Path("out"), torch.device("cpu"), print).model
    data = load_dataset("chats", BLOCK)
    windows = data.eval_windows(data.val, 0, 1000, BLOCK)
    found = losses_of_counted(model, *inputs_and_targets(data.val, windows, BLOCK))
    last = records("eval")[-1]
    assert last["val_loss"] == pytest.approx(found.mean().item(), rel=1e-5)
    assert 0 < last["val_se"] < last["val_loss"]


@pytest.mark.parametrize(
    ("rows", "steps", "number"), [(8, 3, 1), (2, 12, 1), (24, 1, 2), (6, 4, 3)]
)
def test_an_update_learns_the_same_however_it_is_split(rows, steps, number, threads):
    settings = CHATS | {"grad_clip": 0.5, "max_iters": 4, "eval_interval": 4}
    assert train_tiny(**settings, out_dir="one", batch_size=24) == 0
    threads(number)
    split = {"batch_size": rows, "gradient_accumulation_steps": steps}
    assert train_tiny(**settings, **split, out_dir="split") == 0
    for key in ("loss", "grad_norm"):
        found = [[r[key] for r in records("iter", out_dir)] for out_dir in ("one", "split")]
        assert found[1] == pytest.approx(found[0], rel=1e-4)


@pytest.mark.parametrize("at_once", [1 << 25, 300])
def test_ignored_targets_have_no_gradient_in_chunks_too(at_once, monkeypatch):
    assert train_tiny(**CHATS, max_iters=1, eval_interval=1) == 0
    model = load_run(Path("out"), torch.device("cpu"), print).model
    x, y = load_dataset("chats", BLOCK).batch(1, 0, 4, BLOCK)
    (losses_of_counted(model, x, y).sum() / y.numel()).backward()
    expected = {name: p.grad.clone() for name, p in model.named_parameters()}
    model.zero_grad()
    monkeypatch.setattr(memory_model, "CHUNK_LOGITS", at_once)
    model(x, y).backward()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, expected[name], rtol=1e-4, atol=1e-7)
    nothing = torch.full_like(y, IGNORED)
    assert model(x, nothing).item() == 0  # and not NaN


def test_a_run_on_conversations_goes_on_to_the_same_bits(monkeypatch):
    settings = CHATS | {"dropout": 0.1}
    assert train_tiny(**settings, out_dir="whole") == 0
    with monkeypatch.context() as patched:
        stop_after(patched, 4)
        assert train_tiny(**settings, out_dir="parts") == 0
    assert resume("parts") == 0
    assert losses("parts") == losses("whole")
    assert evaluations("parts")[-1] == evaluations("whole")[-1]
    assert digest("parts") == digest("whole")


def test_bits_per_byte_are_those_of_the_answers():
    assert train_tiny(**CHATS) == 0
    # "It is 12." has 9 bytes, and 16 tokens with its end.
    assert 9 / 17 < records("start")[0]["data"]["val_bytes_per_token"] < 16 / 22


@pytest.mark.parametrize("kind", ["char", "bpe"])
def test_a_run_on_conversations_answers_and_ends(kind, capsys, monkeypatch):
    flags = ["--tokenizer=bpe", "--vocab_size=300"] if kind == "bpe" else []
    prepare_chats(*flags, name=kind)
    assert train_tiny(dataset=kind, block_size=BLOCK) == 0
    loaded = load_run(Path("out"), torch.device("cpu"), print)
    codec = loaded.tokenizer
    answer = codec.encode("Yes!").tolist()
    end = codec.encode("<|end|>").tolist() if kind == "char" else [codec.end_of_text]
    script = iter((answer + end + answer) * 2)
    seen: list[list[int]] = []

    def add(batch, prompt, draw):
        seen.append(prompt)
        return batch

    monkeypatch.setattr("stepglass.models.batch_decoding.DecodingBatch.add", add)
    monkeypatch.setattr("stepglass.models.batch_decoding.DecodingBatch.remove", lambda *_: None)
    monkeypatch.setattr(
        "stepglass.models.batch_decoding.DecodingBatch.step", lambda batch: [(batch, next(script))]
    )
    monkeypatch.setattr(sys, "stdin", io.StringIO("What is it?\n"))
    capsys.readouterr()
    assert main(["sample", "out", "--interactive", "--device=cpu"]) == 0
    assert capsys.readouterr().out == "Yes!\n"
    assert codec.decode(seen[0]) == "<|user|>\nWhat is it?\n<|assistant|>\n"
    asked = read_asked({"messages": [{"role": "user", "content": "Be"}]}, codec, True, BLOCK)
    assert codec.decode(asked.wanted[0].ids) == "<|user|>\nBe\n<|assistant|>\n"
    assert asked.wanted[0].stop == (("<|end|>",) if kind == "char" else ())
    assert asked.wanted[0].ends == frozenset(end if kind == "bpe" else ())


def test_a_model_of_plain_text_is_tuned_on_conversations(capsys):
    prepare_tiny("".join(map(chr, range(32, 127))) * 20 + "\n", "ascii")
    of_model = {"dataset": "ascii", "block_size": BLOCK}
    assert train_tiny(**of_model) == 0
    write_chats("talk.jsonl")
    kept = ("device", "batch_size", "max_iters", "eval_interval", "eval_iters")
    flags = [f"--{key}={TINY[key]}" for key in kept]
    assert main(["train", "talk.jsonl", "--init_from=out", "--out_dir=tuned", *flags]) == 0
    assert "with the tokens of out" in capsys.readouterr().out
    codec = load_run(Path("tuned"), torch.device("cpu"), print).tokenizer
    assert "<|end|>" in codec.chat_template
    assert main(["export", "tuned", "--to=hf"]) == 0
    assert "chat_template" in Path("tuned-hf/tokenizer_config.json").read_text()
