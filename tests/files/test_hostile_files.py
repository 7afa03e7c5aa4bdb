"""Files made to do harm: one line, at once, and nothing of theirs on the terminal."""

import io
import os
import pickle
import socket
import tracemalloc
from pathlib import Path

import pytest

from helpers import MODEL, prepare_tiny, tiny_args, train_tiny
from stepglass import units
from stepglass.cli import main
from stepglass.data import nanogpt_meta
from stepglass.errors import DataError
from stepglass.run_dir import checkpoints
from stepglass.train.console import Console

WORDS = {f"w{number}é": number for number in range(3000)}
META = {"vocab_size": 3000, "stoi": WORDS, "itos": {number: w for w, number in WORDS.items()}}


def refused(capsys, *argv: str) -> str:
    capsys.readouterr()
    assert main(list(argv)) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    return error


# -- pickles ------------------------------------------------------------------------------------


def read(data: bytes) -> nanogpt_meta.NanoGPTMeta:
    Path("meta.pkl").write_bytes(data)
    return nanogpt_meta.read_meta_pkl(Path("meta.pkl"))


@pytest.mark.parametrize("protocol", range(6))
def test_a_meta_is_read_in_every_protocol(protocol):
    extra = {"chars": list(WORDS), "a": (1, (2.5, None)), "b": [[], {}, True], "c": 1 << 70, 5: ()}
    meta = read(pickle.dumps({**META, **extra}, protocol))
    assert (meta.vocab_size, meta.table, meta.num_left_out) == (3000, WORDS, 0)


def length(num_bytes: int) -> bytes:
    return num_bytes.to_bytes(8, "little")


def tuple_of_tuples(levels: int) -> bytes:
    """A few bytes whose hash takes two to the power of `levels` steps."""
    return b")" + b"q\x00h\x00\x86" * levels


HOSTILE = {
    "a bytearray of 6 GB": b"\x80\x05\x96" + length(6 << 30) + b".",
    "bytes of 6 GB": b"\x80\x05\x8e" + length(6 << 30) + b".",
    "a text of 6 GB": b"\x80\x05\x8d" + length(6 << 30) + b".",
    "a text of 2 GB": b"\x80\x02X" + length(2 << 30)[:4] + b".",
    "a number of 2 GB": b"\x80\x02\x8b" + length((2 << 30) - 1)[:4] + b".",
    "a frame of 6 GB": b"\x80\x05\x95" + length(6 << 30) + b"N.",
    "a key that is hashed for ever": b"}" + tuple_of_tuples(60) + b"K\x01s.",
    "an item of a set that is hashed for ever": b"\x8f(" + tuple_of_tuples(60) + b"\x90.",
    "a place in memory far away": b"\x80\x02Nr\xff\xff\xff\xff.",
    "more than there is": b"N" * 200_000 + b".",
    "marks without end": b"(" * 200_000 + b".",
    "a list in a list in a list": b"]" * 40_000 + b"a" * 39_999 + b".",
    "a dict in a dict in a dict": b"}" + b"K\x01}" * 30_000 + b"s" * 30_000 + b".",
    "a number of a million digits": b"L" + b"9" * 1_000_000 + b"L\n.",
    "itself": b"]q\x00h\x00a.",
    "half a pair": b"}(K\x01u.",
    "a list as a dict": b"]K\x01K\x02s.",
    "more than it has": b"\x87.",
    "below a mark": b"N(\x85a.",
    "a reference to nothing": b"h\x07.",
    "the next protocol": b"\x80\x06N.",
    "a class": b"cos\nsystem\n(S'true'\ntR.",
    "an extension": b"\x82\x01.",
    "a buffer": b"\x97.",
    "Latin letters of Python 2": b"U\x01\xe9.",
    "a text that is none": b"X\x01\x00\x00\x00\xff.",
    "nothing on the stack": b".",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_pickle_is_refused_in_little_memory(name, monkeypatch):
    # Counting every allocation is slow. `make fuzz` tries the limit as it is.
    monkeypatch.setattr(nanogpt_meta, "MAX_INSTRUCTIONS", 100_000)
    tracemalloc.start()
    try:
        with pytest.raises(DataError) as caught:
            read(HOSTILE[name])
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_keys_that_collide_are_not_hashed():
    """A dict of these takes the square of their number: for 100,000, minutes."""
    keys = b"".join(b"\x8a\x0a" + (n * (2**61 - 1)).to_bytes(10, "little") for n in range(100_000))
    data = b"}(X\x0a\x00\x00\x00vocab_sizeK\x05X\x04\x00\x00\x00stoi}(" + b"".join(
        keys[at : at + 12] + b"K\x01" for at in range(0, len(keys), 12)
    )
    meta = read(data + b"uu.")
    assert (meta.vocab_size, meta.num_left_out) == (5, 100_000)


# -- what is no file ----------------------------------------------------------------------------


@pytest.fixture
def special(monkeypatch):
    """Makes something at a path that is no regular file."""
    opened = []

    def make(path: str, kind: str) -> None:
        Path(path).unlink(missing_ok=True)
        if kind == "a pipe":
            os.mkfifo(path)
        elif kind == "a socket":
            bound = socket.socket(socket.AF_UNIX)
            opened.append(bound)
            bound.bind(path)
        elif kind == "a folder":
            Path(path).mkdir()
        else:
            os.symlink(kind, path)

    yield make
    for bound in opened:
        bound.close()


KINDS = ["a pipe", "a socket", "a folder", "/dev/zero", "/dev/random", "/dev/tty"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["c.toml", "c.py"])
def test_what_is_no_file_is_no_config_file(name, kind, special, capsys):
    special(name, kind)
    found = kind if kind.startswith("a ") else "a device"
    assert refused(capsys, "train", name) == (
        f"error: {name}: expected a config file, found {found}\n"
    )


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "a folder"])
def test_what_is_no_file_is_no_text(kind, special, capsys):
    special("x.txt", kind)
    found = kind if kind.startswith("a ") else "a device"
    assert refused(capsys, "prepare", "x.txt") == (
        f"error: x.txt: expected a regular file, found {found}\n"
    )


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs Linux")
@pytest.mark.parametrize("command", ["prepare k.txt", "train k.toml", "train k.py"])
def test_a_file_of_the_systems_own_is_no_text(command, capsys):
    """It says of itself that it is a regular file without a byte. This one ends; /proc/kmsg, the
    kernel's log, never does, and reading it would take it away from others."""
    verb, name = command.split()
    os.symlink("/proc/self/status", name)
    assert f"{name}: " in refused(capsys, verb, name)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["train.bin", "val.bin", "meta.json", "meta.pkl"])
def test_what_is_no_file_is_no_data(name, kind, special, capsys):
    prepare_tiny()
    if name == "meta.pkl":
        Path("data/tiny/meta.json").unlink()
    special(f"data/tiny/{name}", kind)
    assert f"data/tiny/{name}: " in refused(capsys, "train", *tiny_args())


@pytest.mark.finished_run
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_file_is_no_prompt(kind, special, capsys):
    special("prompt", kind)
    assert "prompt: expected a regular file" in refused(
        capsys, "sample", "out", "--prompt=FILE:prompt"
    )


@pytest.mark.finished_run
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["run.jsonl", "config.json", "best.json", "LOCK"])
def test_runs_waits_for_nothing_in_a_run_directory(name, kind, special, capsys):
    special(f"out/{name}", kind)
    capsys.readouterr()
    assert main(["runs", "--verify"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("out ")
    assert [line for line in lines if line.endswith("verified")]


@pytest.mark.finished_run
@pytest.mark.parametrize("name", ["MANIFEST.json", "state.json", "model.safetensors"])
def test_runs_waits_for_nothing_in_a_checkpoint(name, special, capsys):
    special(str(checkpoints.committed(Path("out"))[0] / name), "a pipe")
    for flags in ([], ["--verify"]):
        assert "1 of 2 checkpoints" in refused(capsys, "runs", *flags)


# -- what reaches the terminal ------------------------------------------------------------------

EVIL = "a\x1b[31m\x9b2J\x07\r\n\u2028\u202eb\x00"


@pytest.mark.parametrize("text", [EVIL, EVIL * 2, "\n\n", "\x1b]0;title\x07"])
def test_a_message_is_one_line_without_controls(text):
    line = units.one_line(text)
    assert len(line.splitlines()) == 1
    assert not any(ord(char) < 32 or 127 <= ord(char) < 160 for char in line)
    assert "\u202e" not in line


def test_a_line_of_the_console_is_one_line_whatever_is_in_it():
    stream = io.StringIO()
    Console(stream).say(f"warning: {EVIL}")
    Console(stream).say("  a table's row stays where it is")
    assert stream.getvalue().splitlines() == [
        "warning: a?[31m?2J?  ?b?",
        "  a table's row stays where it is",
    ]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_line_above_the_bar_is_one_line_too(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    console = Console(stream)
    console.start_progress(lambda: 10, lambda: None)
    console.say("x\x1b[31m\nforged: line")
    console.stop_progress()
    assert "x?[31m forged: line" in stream.getvalue()


def test_names_of_files_do_not_reach_the_terminal_raw(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    name = "a\x1b[31m\nforged"
    Path(name).mkdir()
    Path(name, "ok.txt").write_text("some text to learn from\n" * 50)
    Path(name, "no\x1b[31m\ntext").write_bytes(b"\xff\xfe\xff")
    assert main(["prepare", name, f"--data_dir={name}/data", "--name=x"]) == 0
    prepared = capsys.readouterr().out
    assert prepared.count("\n") == 2
    prepare_tiny()
    train_tiny(out_dir=f"runs/{name}")
    trained = capsys.readouterr().out
    for path in checkpoints.committed(Path("runs", name))[:1]:
        (path / "state.json").write_text("{")
    assert main(["sample", f"runs/{name}", "--max_new_tokens=1"]) == 0
    sampled = capsys.readouterr().err
    assert main(["runs", "runs"]) == 2
    listed = capsys.readouterr()
    assert len(listed.out.splitlines()) == 3  # the heading, the run, and its damaged checkpoint
    assert listed.err.count("\n") == 1
    for text in (prepared, trained, sampled, listed.out, listed.err):
        assert "\x1b" not in text
        assert "\nforged" not in text


def test_words_of_a_file_in_an_error_do_not_reach_the_terminal_raw(capsys):
    Path("c.toml").write_text('"a\\u001b[31m\\nb" = 1')
    assert "\x1b" not in refused(capsys, "train", "c.toml")
    Path("c.py").write_text("batch_size = '\\x1b[31m\\n' + 1")
    assert "\x1b" not in refused(capsys, "train", "c.py")


# -- numbers ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "flags",
    [
        {"muon_lr": 1e308},
        {"learning_rate": 1e308},
        {"weight_decay": 1e300},
        {"learning_rate": 1e-320},
        {"learning_rate": 1e20, "min_lr": 1e20, "weight_decay": 1e6},
        {"muon_lr": 1e20, "weight_decay": 1e6},
        {"grad_clip": 1e-320},
        {"beta1": 0.999999, "beta2": 0.999999},
        {"warmup_iters": 2**63 - 1, "lr_decay_iters": 2**63 - 1},
        {"eval_iters": 2**63 - 1},
    ],
)
def test_an_absurd_number_ends_in_a_line_or_in_a_run(flags, capsys):
    if MODEL == "gpt2" and "muon_lr" in flags:
        pytest.skip("gpt2 has no Muon")
    prepare_tiny()
    code = train_tiny(**flags)
    error = capsys.readouterr().err
    assert code in (0, 1, 2)
    assert "no such data set" not in error
    assert error.count("\n") == (code != 0)
    assert "Traceback" not in error
