"""Files made to do harm: none of them runs, memory is bounded, and each is one line."""

import json
import os
import pickle
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import safetensors.torch
import torch

from exchange import SHAPES, in_process, make_run
from stepglass.cli import main
from stepglass.foreign import confined_reader

__all__ = ["in_process"]


class Harm:
    """What a pickle can hold: a call of any function."""

    def __reduce__(self):
        return (os.system, ("touch harmed",))


def good() -> dict:
    """What is in a ckpt.pt of nanoGPT, as it should be."""
    shape = SHAPES["gpt2"]
    make_run(shape, "good")
    path = next(Path("good/ckpt").iterdir()) / "model.safetensors"
    model = safetensors.torch.load_file(path)
    names = ("vocab_size", "block_size", "n_layer", "n_head", "n_embd", "bias")
    return {"model": model, "model_args": {name: getattr(shape, name) for name in names}}


def saved(**changes) -> str:
    torch.save(good() | changes, "ckpt.pt")
    return "ckpt.pt"


def with_model(**changes) -> str:
    return saved(model={**good()["model"], **changes})


WTE = "transformer.wte.weight"


def malicious() -> str:
    with zipfile.ZipFile("ckpt.pt", "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({"model": Harm()}))
        archive.writestr("archive/version", "3\n")
    return "ckpt.pt"


def bare_pickle() -> str:
    Path("ckpt.pt").write_bytes(pickle.dumps(Harm()))
    return "ckpt.pt"


def bomb() -> str:
    with zipfile.ZipFile("ckpt.pt", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(1 << 24))
    return "ckpt.pt"


def promising() -> str:
    saved()
    data = Path("ckpt.pt").read_bytes()
    start = data.index(b"PK\x01\x02")  # the first entry of the archive's list: its size
    Path("ckpt.pt").write_bytes(
        data[: start + 24] + struct.pack("<I", 1 << 31) + data[start + 28 :]
    )
    return "ckpt.pt"


def truncated() -> str:
    saved()
    Path("ckpt.pt").write_bytes(Path("ckpt.pt").read_bytes()[:5000])
    return "ckpt.pt"


def page() -> str:
    Path("ckpt.pt").write_text("<!DOCTYPE html><html><body>404 Not Found</body></html>")
    return "ckpt.pt"


def empty() -> str:
    Path("ckpt.pt").touch()
    return "ckpt.pt"


def pipe() -> str:
    os.mkfifo("ckpt.pt")
    return "ckpt.pt"


def repeated() -> str:
    return with_model(**{WTE: torch.zeros(1).expand(10**6, 10**6)})


def sparse() -> str:
    return with_model(**{WTE: torch.eye(40).to_sparse()})


def folder(config: dict | None = None, **files: bytes) -> str:
    make_run(SHAPES["qwen3"], "good")
    assert main(["export", "good", "--to=hf", "--out=there"]) == 0
    if config is not None:
        found = json.loads(Path("there/config.json").read_text())
        Path("there/config.json").write_text(json.dumps(found | config))
    for name, data in files.items():
        Path("there", name.replace("__", ".")).write_bytes(data)
    return "there"


def sharded(name: str) -> str:
    folder()
    Path("there/model.safetensors").rename("weights.safetensors")
    index = {"weight_map": {"model.norm.weight": name}}
    Path("there/model.safetensors.index.json").write_text(json.dumps(index))
    return "there"


def only_pickles() -> str:
    folder()
    Path("there/model.safetensors").unlink()
    Path("there/pytorch_model.bin").write_bytes(pickle.dumps(Harm()))
    return "there"


def deep() -> str:
    return folder(config__json=b'{"a":' * 100_000)


def weights(header: dict, data: bytes = bytes(48)) -> str:
    text = json.dumps(header).encode()
    return folder(model__safetensors=struct.pack("<Q", len(text)) + text + data)


def entry(count: int, start: int, end: int) -> dict:
    return {"dtype": "F32", "shape": [count], "data_offsets": [start, end]}


def endless_link() -> str:
    folder()
    Path("there/model.safetensors").unlink()
    Path("there/model.safetensors").symlink_to("/dev/zero")
    return "there"


def with_tokenizer(**changes: object) -> str:
    folder()
    path = Path("there/tokenizer.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return "there"


def steps(count: int, **step: object) -> dict:
    return {"type": "Sequence", "normalizers": [step] * count}


def in_steps(depth: int) -> dict:
    found: dict = {"type": "Lowercase"}
    for _ in range(depth):
        found = {"type": "Sequence", "normalizers": [found]}
    return found


def thin_layers() -> str:
    """There are tensors enough for so many layers, and numbers enough, but they are others."""
    folder({"num_hidden_layers": 50_000, "hidden_size": 2, "intermediate_size": 1})
    folder_config = {"num_attention_heads": 1, "num_key_value_heads": 1, "head_dim": 2}
    path = Path("there/config.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | folder_config))
    one = torch.zeros(2_000_000)
    safetensors.torch.save_file(
        {"one": one} | {f"{n}": one[:0].clone() for n in range(50_000)}, "there/model.safetensors"
    )
    return "there"


HEADER = struct.pack("<Q", 2**63 - 1) + b"{}"


ENDLESS = struct.pack("<Q3sIIQ", 3, b"abc", 9, 0, 1 << 40)  # an array in 31 bytes
NESTED = struct.pack("<Q3sI", 3, b"abc", 9) + struct.pack("<IQ", 9, 1) * 1000


def gguf_head(tensors: int, fields: int) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", 3, tensors, fields)


def gguf(data: bytes) -> str:
    Path("model.gguf").write_bytes(data)
    return "model.gguf"


def cut_gguf() -> str:
    make_run(SHAPES["llama"], "good")
    main(["export", "good", "--to=gguf", "--out=model.gguf"])
    return gguf(Path("model.gguf").read_bytes()[:-5000])


def other_architecture() -> str:
    make_run(SHAPES["llama"], "good")
    main(["export", "good", "--to=gguf", "--out=model.gguf"])
    return gguf(Path("model.gguf").read_bytes().replace(b"llama", b"mamba"))


HOSTILE: dict[Callable[[], str], str] = {
    malicious: "cannot be imported: ",
    bare_pickle: "expected a file that torch.save has written",
    bomb: "its archive is compressed",
    promising: "its archive promises more bytes",
    truncated: "expected a file that torch.save has written",
    page: "expected a file that torch.save has written",
    empty: "found an empty file",
    pipe: "found something else",
    repeated: "more numbers than it has bytes for",
    sparse: "expected a plain tensor",
    lambda: saved(model=[1, 2]): "expected a ckpt.pt of nanoGPT",
    lambda: saved(model_args={}): "'vocab_size' is missing",
    lambda: saved(model_args=good()["model_args"] | {"n_layer": 10**9}): "expected ",
    lambda: saved(
        model_args=good()["model_args"] | {"n_head": -4}
    ): "n_head must be a whole number",
    lambda: with_model(surprise=torch.zeros(2)): "surprise is unknown",
    lambda: with_model(**{WTE: torch.zeros(41, 64)}): "expected [40, 64] numbers",
    lambda: with_model(**{WTE: torch.full((40, 64), torch.nan)}): "not finite",
    lambda: with_model(**{WTE: torch.zeros(40, 64, dtype=torch.int32)}): "torch.int32",
    lambda: folder(model__safetensors=HEADER): "expected safetensors",
    lambda: folder(model__safetensors=b""): "expected safetensors",
    lambda: folder({"num_hidden_layers": 10**9}): "expected ",
    lambda: folder({"hidden_size": 1e300}): "n_embd must be a whole number",
    lambda: folder({"max_position_embeddings": 10**12}): "a context of",
    lambda: folder({"model_type": "../../etc"}): "expected one of gpt2, qwen3, llama",
    lambda: folder({"rope_parameters": {"rope_type": "yarn"}}): "rotary positions are scaled",
    lambda: folder({"vocab_size": 7}): "embed_tokens.weight",
    lambda: folder(config__json=b"[]"): "expected a JSON object",
    lambda: folder(tokenizer__json=b'{"version": "1.0"}'): "hf tokenizer, found something else",
    deep: "expected JSON",
    lambda: weights({"a": entry(1 << 40, 0, 1 << 42)}): "expected safetensors",
    lambda: weights({"a": entry(8, 0, 32), "b": entry(8, 16, 48)}): "expected safetensors",
    endless_link: "not a regular file",
    thin_layers: "50000 layers",
    lambda: folder({"vocab_size": 10**12}): "expected 128000000061824 weights",
    lambda: with_tokenizer(normalizer=in_steps(300)): "recursion limit exceeded",
    lambda: with_tokenizer(
        normalizer=steps(40, type="Replace", pattern={"String": "a"}, content="aa")
    ): "its normalizer could make a text more than 64 times as long",
    lambda: with_tokenizer(
        decoder=steps(40, type="ByteLevel")
    ): "its decoder could make a text more than 64 times as long",
    lambda: sharded("../weights.safetensors"): "expected names of files beside it",
    lambda: sharded("/etc/passwd"): "expected names of files beside it",
    lambda: sharded("config.json"): "expected safetensors",
    only_pickles: "pytorch_model.bin, which can run code",
    lambda: gguf(b"GGUF"): "cannot be imported",
    lambda: gguf(gguf_head(0, 0)): "general.architecture is None",
    lambda: gguf(gguf_head(1 << 60, 0)): "it promises 1152921504606846976 tensors",
    lambda: gguf(gguf_head(0, 1) + ENDLESS): "it promises an array of 1099511627776 values",
    lambda: gguf(gguf_head(0, 1) + NESTED): "it promises an array",
    lambda: gguf(gguf_head(0, 1) + struct.pack("<Q", 1 << 62)): "it ends in the middle",
    cut_gguf: "cannot be imported",
    other_architecture: "expected gpt2, qwen3, llama",
}


@pytest.mark.filterwarnings("ignore:.*:UserWarning")  # torch's, about sparse tensors
@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_a_hostile_file_is_one_line_and_leaves_nothing(number, in_process, capsys):
    make, said = list(HOSTILE.items())[number]
    path = make()
    capsys.readouterr()
    assert main(["import", path, "--out_dir=again"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert said in error
    assert not Path("harmed").exists()
    assert not Path("again").exists()


def test_the_harm_would_be_done_by_a_plain_pickle():
    pickle.loads(pickle.dumps(Harm()))
    assert Path("harmed").exists()


@pytest.mark.long
@pytest.mark.slow
def test_the_reader_cannot_take_more_memory_than_its_limit():
    """In a real process: after it has set its limits for a small file, it asks for 4 GB."""
    code = (
        "from stepglass.foreign import confined_reader as c; c.limit_self('pt', 1000); "
        "c.read_pt = lambda path: bytearray(4 << 30); c.limit_self = print; "
        "import sys; sys.exit(c.entry_point(['pt', sys.executable, '.']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "it needs far more memory than its size\n")


def test_the_limits_of_the_reader_are_those_of_its_file(monkeypatch):
    limits = {}
    monkeypatch.setattr(
        confined_reader.resource, "setrlimit", lambda what, pair: limits.update({what: pair[0]})
    )
    resource = confined_reader.resource
    confined_reader.limit_self("pt", 100 << 20)
    small = dict(limits)
    confined_reader.limit_self("pt", 200 << 20)
    assert limits[resource.RLIMIT_AS] - small[resource.RLIMIT_AS] == pytest.approx(
        300 << 20, abs=64 << 20
    )
    assert 60 <= small[resource.RLIMIT_CPU] < 1e6
