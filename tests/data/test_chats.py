"""Conversations: from JSONL to tokens, of which only the assistant's count."""

import json
from pathlib import Path

import numpy as np
import pytest
import tokenizers

from chats import BLOCK, prepare_chats, write_chats
from stepglass.cli import main
from stepglass.data import dataset, sources, tokenizer
from stepglass.data.chat_template import parts_of
from stepglass.data.library_tokenizer import LibraryTokenizer
from stepglass.data.marked_text import encode_text
from stepglass.errors import CheckpointError, DataError

CHATML = (
    "{% for m in messages %}{% if loop.first and m.role != 'system' %}"
    "{{ '<|im_start|>system\nBe good.<|im_end|>\n' }}{% endif %}"
    "{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def imported(template: str | None) -> LibraryTokenizer:
    """A tokenizer of bytes, as it comes with a model: its <|endoftext|> does not end a text."""
    found = tokenizers.Tokenizer(tokenizers.models.BPE())
    found.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    found.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"], initial_alphabet=alphabet
    )
    found.train_from_iterator(["What is it? It is what it is."], trainer)
    stored = json.loads(found.to_str())
    end = {"end_of_text": "<|im_end|>", "chat_template": template}
    return LibraryTokenizer({"kind": "hf", "tokenizer": stored, **end})


def texts(folder: Path, split: str) -> tuple[str, list[str]]:
    """All of a split, and each of the texts that count."""
    meta = json.loads((folder / "meta.json").read_text())
    codec = tokenizer.from_json(meta["tokenizer"], "meta")
    tokens = np.fromfile(folder / f"{split}.bin", dtype=meta["dtype"])
    mask = np.fromfile(folder / f"{split}.mask", dtype="u1")
    assert len(mask) == len(tokens) == meta["splits"][split]["tokens"]
    assert mask.sum() == meta["splits"][split]["counted"]
    cuts = np.flatnonzero(np.diff(mask)) + 1
    runs = zip(np.split(tokens, cuts), np.split(mask, cuts), strict=True)
    answers = [codec.decode(ids.tolist()) for ids, counts in runs if counts[0]]
    return codec.decode(tokens.tolist()), answers


@pytest.mark.parametrize(
    ("flags", "end"),
    [
        ([], "<|end|>"),
        (["--tokenizer=bpe", "--vocab_size=300"], "<|endoftext|>"),
        (["--tokenizer=gpt2"], "<|endoftext|>"),
    ],
)
def test_what_the_assistant_says_counts_and_its_end(flags, end, capsys):
    folder = prepare_chats(*flags)
    whole, answers = texts(folder, "train")
    assert whole.startswith(
        "<|system|>\nBe brief and kind, and never be late.\n<|user|>\nWhat is 0 and 0?\n"
        f"<|assistant|>\nIt is 0.{end}\n<|user|>\nThanks!\n"
    )
    assert answers[:3] == [f"It is 0.{end}", f"You are welcome.{end}", f"It is 2.{end}"]
    assert len(answers) == 54 + 14  # nine tenths of the conversations, some with two answers
    assert len(texts(folder, "val")[1]) == 6 + 1
    assert "60 conversations: the loss counts what the assistant says" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("template", "first", "answer"),
    [
        (CHATML, "<|im_start|>system\nBe good.<|im_end|>\n<|im_start|>user", "4<|im_end|>"),
        (None, "<|user|>", "4<|im_end|>"),  # the plain template, with the model's own end
    ],
)
def test_an_imported_model_has_its_own_template_and_end(template, first, answer):
    Path("model").mkdir()
    Path("model/tokenizer.json").write_text(json.dumps(imported(template).to_json()))
    line = {"messages": [{"role": "user", "content": "2+2"}, {"role": "assistant", "content": "4"}]}
    Path("c.jsonl").write_text((json.dumps(line) + "\n") * 4)
    assert main(["prepare", "c.jsonl", "--tokenizer=model"]) == 0
    whole, answers = texts(Path("data/c"), "train")
    assert whole.startswith(f"{first}\n2+2")
    assert answers == [answer] * 3


def test_a_mark_of_another_model_is_read_as_that_model_does():
    codec = imported(None)
    ids = [codec.vocab[mark] for mark in ("<|endoftext|>", "<|im_end|>")]
    assert encode_text("<|endoftext|><|im_end|>", codec) == ids
    assert codec.end_of_text == ids[1]
    ours = tokenizer.gpt2()
    assert encode_text("a<|endoftext|>b", ours) == [64, 50256, 65]


def test_a_template_that_changes_what_was_said_is_refused():
    codec = imported("{% for m in messages %}{{ loop.length }}{{ m.content }}{% endfor %}")
    said = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    with pytest.raises(DataError, match="answers cannot be told apart"):
        parts_of(said, codec)


USER = '{"role": "user", "content": "a"}'
GOOD = f'{{"messages": [{USER}, {{"role": "assistant", "content": "b"}}]}}\n'


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "c.jsonl: expected at least 2 conversations"),
        ("\n\n", "c.jsonl: expected at least 2 conversations"),
        (GOOD, "found 1"),
        (GOOD + "{not json}\n", "c.jsonl line 2: expected a JSON object, found '{not json}'"),
        (GOOD + "\n[1]\n", 'c.jsonl line 3: expected {"messages": [...]}, found [1]'),
        ('{"text": "a"}\n', "name the file .txt"),
        (f'{{"messages": [{USER}]}}', "line 1: expected a message of the assistant to learn from"),
        ('{"messages": []}', "line 1: expected a message of the assistant"),
        ('{"messages": [{"role": "user"}]}', "line 1 message 1: expected role"),
        ('{"messages": ["hi"]}', "line 1 message 1: expected role"),
        (GOOD.replace("user", "tool"), "message 1: expected the role system or user or assistant"),
        (GOOD.replace('"user"', "[]"), "message 1: expected the role system or user or assistant"),
        (GOOD.replace('"a"', "7"), "message 1: expected text as content, found 7"),
        (GOOD.replace('"a"', '"\\ud800"'), "message 1: expected text as content"),
        (GOOD + "\0\0", "expected text, found a NUL byte"),
        (b"\xff\xfe" + GOOD.encode(), "expected UTF-8 text, found byte 0xff"),
        ("[" * 100_000 + "\n", "c.jsonl line 1: expected a JSON object"),
        (GOOD.replace('"a"', "[" * 10_000 + "]" * 10_000), "line 1: expected a JSON object"),
        (GOOD.replace('"a"', "[" * 900 + "]" * 900), "expected text as content, found [[["),
        (GOOD.replace('"b"', "null"), "message 2: expected text as content, found None"),
        (GOOD + '{"messages": "x"}', 'c.jsonl line 2: expected {"messages": [...]}'),
        (GOOD + GOOD[:40], 'c.jsonl line 2: expected a JSON object, found \'{"messages":'),
        (GOOD.encode().replace(b'"a"', b'"\xed\xa0\x80"'), "c.jsonl byte 43: expected UTF-8"),
        (GOOD + GOOD.replace("user", "\\ud800"), "expected the role system or user or assistant"),
        (f'{{"messages": [{", ".join([USER] * 1001)}]}}', "at most 1,000 messages"),
        (GOOD * 9 + GOOD.replace('"a"', f'"{"a" * 5_000_000}"'), "c.jsonl line 10: the chat temp"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_what_is_no_conversation_is_one_line_and_leaves_nothing(content, said, capsys):
    data = content if isinstance(content, bytes) else content.encode()
    Path("c.jsonl").write_bytes(data)
    assert main(["prepare", "c.jsonl"]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not Path("data").exists()


def test_of_a_line_of_100_megabytes_only_the_beginning_is_read(monkeypatch, capsys):
    """A good conversation, if it were shorter."""
    with open("c.jsonl", "w") as file:
        before, after = GOOD.split('"a"')
        file.write(GOOD + before + '"')
        for _ in range(100):
            file.write("a" * 1_000_000)
        file.write('"' + after)
    num_read = 0
    real = sources.read_text

    def counted(*args):
        nonlocal num_read
        for piece in real(*args):
            num_read += len(piece)
            yield piece

    monkeypatch.setattr(sources, "read_text", counted)
    assert main(["prepare", "c.jsonl"]) == 2
    error = capsys.readouterr().err
    assert "c.jsonl line 2: expected a conversation of at most 16,777,216 characters" in error
    assert error.count("\n") == 1
    assert num_read < 30_000_000
    assert not Path("data").exists()


@pytest.mark.parametrize(
    ("codec", "said"),
    [
        (imported("{% for m in"), "c.jsonl line 1: the model's chat template cannot be used"),
        (imported("{{ messages[99].content }}"), "the model's chat template cannot be used"),
        (imported("{% for i in range(10**9) %}{% endfor %}"), "Range too big"),
        (imported("{{ raise_exception('no') }}"), "refuses this conversation: no"),
        (tokenizer.CharTokenizer({"a": 0, "b": 1}), "its characters lack '\\n', '<', '>', 'd'"),
        (tokenizer.WordTokenizer({"aa": 0, "b": 1}), "a table of words has no room"),
    ],
)
def test_a_template_that_a_model_cannot_use_is_one_line_and_leaves_nothing(codec, said, capsys):
    Path("model").mkdir()
    Path("model/tokenizer.json").write_text(json.dumps(codec.to_json()))
    Path("c.jsonl").write_text(GOOD * 4)
    assert main(["prepare", "c.jsonl", "--tokenizer=model"]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not Path("data").exists()


def test_conversations_and_text_are_not_mixed(capsys):
    write_chats("c.jsonl")
    Path("t.txt").write_text("some text\n" * 50)
    assert main(["prepare", "c.jsonl", "t.txt"]) == 2
    assert "t.txt: expected only files of conversations" in capsys.readouterr().err


def test_conversations_replace_text_only_when_told_and_leave_no_mask_behind(capsys):
    folder = prepare_chats()
    assert main(["prepare", "chats.jsonl"]) == 0  # the same again
    Path("chats.jsonl").rename("chats.txt")
    assert main(["prepare", "chats.txt", "--name=chats"]) == 2
    assert "the same text, prepared in another way (chat was True)" in capsys.readouterr().err
    assert main(["prepare", "chats.txt", "--name=chats", "--overwrite"]) == 0
    assert sorted(path.name for path in folder.iterdir()) == ["meta.json", "train.bin", "val.bin"]
    assert dataset.load_dataset("chats", BLOCK).train.mask is None


def test_targets_that_do_not_count_are_ignored_and_every_window_has_one_that_does():
    prepare_chats()
    data = dataset.load_dataset("chats", BLOCK)
    mask = data.train.mask
    assert mask is not None
    empty = 0
    for step in range(40):
        x, y = data.batch(1, step, 8, BLOCK)
        drawn = dataset.uniform(1, dataset.TRAIN_STREAM, step, 8, len(data.train) - BLOCK)
        moved = data.train.moved_to_counted(drawn, BLOCK)
        empty += int((drawn != moved).sum())
        for row, start in enumerate(moved):
            counts = mask.tokens[start + 1 : start + 1 + BLOCK]
            assert counts.any()
            tokens = data.train.tokens[start : start + 1 + BLOCK].astype(np.int64)
            assert x[row].tolist() == tokens[:-1].tolist()
            expected = np.where(counts == 1, tokens[1:], dataset.IGNORED)
            assert y[row].tolist() == expected.tolist()
        counted = float((y != dataset.IGNORED).float().mean())
        assert data.counted_share(1, step, 8, BLOCK) == pytest.approx(counted)
    assert empty > 20  # long questions: many windows had to be moved
    for split in (data.train, data.val):
        windows = data.eval_windows(split, 1, 10_000, BLOCK)
        assert (split.num_counted(windows, BLOCK) > 0).all()
        assert len(windows) < (len(split) - 1) // BLOCK


@pytest.mark.parametrize("block_size", [1, 2, 3, 16])
@pytest.mark.parametrize("place", [1, 2, 50, 98, 99])
def test_a_window_is_moved_so_that_it_holds_the_only_token_that_counts(place, block_size):
    folder = prepare_chats()
    tokens = np.arange(100, dtype="<u2") % 40
    mask = np.zeros(100, dtype="u1")
    mask[place] = 1
    tokens.tofile(folder / "train.bin")
    mask.tofile(folder / "train.mask")
    file, marks = (
        dataset.TokenFile(folder / f"train.{kind}", np.dtype(form), 99)
        for kind, form in (("bin", "<u2"), ("mask", "u1"))
    )
    file.add_mask(marks)
    moved = file.moved_to_counted(np.arange(100 - block_size), block_size)
    assert (file.num_counted(moved, block_size) == 1).all()


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda mask: mask.unlink(), "no such file"),
        (lambda mask: mask.write_bytes(mask.read_bytes()[:-1]), "sha256 is not the one"),
        (lambda mask: mask.write_bytes(b"\2" * mask.stat().st_size), "sha256 is not the one"),
    ],
)
def test_a_mask_is_held_to_its_description(damage, said):
    damage(prepare_chats() / "train.mask")
    with pytest.raises(DataError, match=said):
        dataset.load_dataset("chats", BLOCK)


def test_other_tokens_that_count_are_other_data():
    folder = prepare_chats()
    data = dataset.load_dataset("chats", BLOCK)
    before = json.loads(json.dumps(data.fingerprint))
    data.resume("ckpt", before)
    whole = {**before, "train": {k: v for k, v in before["train"].items() if k != "mask"}}
    with pytest.raises(CheckpointError, match=r"train.mask: other tokens count"):
        data.resume("ckpt", whole)
    mask = np.fromfile(folder / "val.mask", dtype="u1")
    mask[5] ^= 1
    mask.tofile(folder / "val.mask")
    meta = json.loads((folder / "meta.json").read_text())
    del meta["splits"]["val"]["mask_sha256"]
    (folder / "meta.json").write_text(json.dumps(meta))
    with pytest.raises(DataError, match="sha256"):  # a description without it is not believed
        dataset.load_dataset("chats", BLOCK)
