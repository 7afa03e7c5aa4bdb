"""Checkpoints by somebody who knows how manifests are made, for tests/fuzz_files.py.

A good checkpoint of a tiny model, with some of its files changed, and a manifest that fits in most
cases. It is sampled from, and now and then a run is resumed from it.
"""

import hashlib
import io
import json
import random
import shutil
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

import torch

from fuzz_inputs import changed
from stepglass import cli
from stepglass.errors import StepglassError
from stepglass.models.decoding import Draw, generate
from stepglass.run_dir import checkpoints
from stepglass.sample.load import load_run

Random = random.Random
TEXT = "To be, or not to be, that is the question:\n" * 40
SETTINGS = {
    "recipe": "none",
    "device": "cpu",
    "n_layer": 1,
    "n_head": 2,
    "n_embd": 8,
    "block_size": 8,
    "batch_size": 2,
    "gradient_accumulation_steps": 1,
    "max_iters": 2,
    "eval_iters": 1,
    "warmup_iters": 0,
    "lr_decay_iters": 2,
}
ODD: list[Any] = [
    None, True, False, 0, -1, 1, 2.5, 96.0, 30_000_000, 2**31, 2**63, 2**64, 10**400, 1e308, 1e-320,
    "", "x", "\x1b[31m", "a\nb", [], {}, [1], {"a": 1}, [[[[]]]], "9" * 5000, [0] * 3000,
]  # fmt: skip


@cache
def good(model: str) -> dict[str, bytes]:
    """The files of a checkpoint, made once by a real run in the present folder."""
    torch.set_num_threads(1)
    Path("text.txt").write_text(TEXT)
    flags = [f"--{key}={value}" for key, value in SETTINGS.items()]
    with redirect_stdout(io.StringIO()):
        assert cli.main(["prepare", "text.txt", "--name=tiny"]) == 0
        train = ["train", "tiny", f"--model={model}", f"--out_dir=out-{model}", *flags]
        assert cli.main(train) == 0
    path = checkpoints.committed(Path(f"out-{model}"))[0]
    return {file.name: file.read_bytes() for file in path.iterdir()}


def edited(value: Any, rng: Random) -> Any:
    """A JSON value with something in it replaced by something odd."""
    if rng.random() < 0.3 or not isinstance(value, dict | list) or not value:
        return rng.choice(ODD)
    if isinstance(value, list):
        at = rng.randrange(len(value))
        return [*value[:at], edited(value[at], rng), *value[at + 1 :]]
    key = rng.choice(list(value))
    if rng.random() < 0.1:
        return {name: item for name, item in value.items() if name != key}
    return value | {key: edited(value[key], rng)}


def forged_json(data: bytes, rng: Random) -> bytes:
    value = json.loads(data)
    key = rng.choice(["model_config", "model_config", "scaler", "data", "environment", ""])
    if isinstance(value.get(key), dict):
        value[key] = edited(value[key], rng)
    else:
        value = edited(value, rng)
    return json.dumps(value).encode()


def forged_tensors(data: bytes, rng: Random) -> bytes:
    """A safetensors file with another header, or other numbers."""
    length = int.from_bytes(data[:8], "little")
    header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    match rng.randrange(4):
        case 0:
            header = edited(header, rng)
        case 1:
            body = rng.choice([b"\xff" * len(body), rng.randbytes(len(body)), body[:-8], body * 3])
        case 2:
            return rng.choice([2**63, 2**40, length + 8, 0, 7]).to_bytes(8, "little") + data[8:]
        case 3:
            return changed(data, rng)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + body


def forged_checkpoint(rng: Random) -> bytes:
    """What is put in the place of a good checkpoint's files, and whether the manifest fits."""
    model = rng.choice(["modern", "gpt2"])
    files = good(model)
    names = rng.sample([n for n in files if n != "MANIFEST.json"], rng.choice([1, 1, 1, 2, 3]))
    new = {}
    for name in names:
        make = forged_tensors if name.endswith(".safetensors") else forged_json
        new[name] = changed(files[name], rng) if rng.random() < 0.2 else make(files[name], rng)
    recipe = {
        "model": model,
        "fits": rng.random() < 0.9,
        "resumes": rng.random() < 0.1,
        "files": {name: data.decode("latin-1") for name, data in new.items()},
    }
    if rng.random() < 0.1:
        manifest = json.loads(files["MANIFEST.json"])
        recipe["manifest"] = edited(manifest, rng)
    return json.dumps(recipe).encode()


def take_checkpoint(data: bytes) -> None:
    recipe = json.loads(data)
    files = dict(good(recipe["model"]))
    for name, text in recipe["files"].items():
        files[name] = text.encode("latin-1")
    manifest = recipe.get("manifest") or json.loads(files["MANIFEST.json"])
    if recipe["fits"] and isinstance(manifest, dict):
        manifest["files"] = {
            name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            for name, data in files.items()
            if name != "MANIFEST.json"
        }
        manifest.pop("manifest_sha256", None)
        own = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
        manifest["manifest_sha256"] = own
    files["MANIFEST.json"] = json.dumps(manifest).encode()
    shutil.rmtree("out", ignore_errors=True)
    folder = Path("out/ckpt/step-00000002-000001")
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    use(recipe["resumes"])


def use(resumes: bool) -> None:
    """Sample from it, or go on from it."""
    if not resumes:
        loaded = load_run(Path("out"), torch.device("cpu"), on_skip=lambda line: None)
        tokens = generate(loaded.model, [0], max_new_tokens=5, draw=Draw(top_k=0))
        loaded.tokenizer.decode(list(tokens))
        return
    said = io.StringIO()
    with redirect_stdout(io.StringIO()), redirect_stderr(said):
        code = cli.main(["train", "--out_dir=out", "--init_from=resume", "--max_iters=3"])
    lines = said.getvalue()
    assert code in (0, 1, 2), code
    assert lines.count("\n") == (1 if code else 0), lines
    assert "\x1b" not in lines
    if code:
        raise StepglassError(lines)
