"""Fakes and small things that tests share."""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from stepglass.cli import main
from stepglass.files import Folder
from stepglass.measure import run_log
from stepglass.run_dir.folder import RunFolder

TEXT = (
    "To be, or not to be, that is the question:\nWhether 'tis nobler in the mind to suffer\n" * 60
)

# Every test of training holds for both models: `make test-gpt2` runs them with the other one.
MODEL = os.environ.get("STEPGLASS_TEST_MODEL", "modern")

TINY = {
    "recipe": "none",
    "model": MODEL,
    "dataset": "tiny",
    "out_dir": "out",
    "device": "cpu",
    "n_layer": 2,
    "n_head": 2,
    "n_embd": 16,
    "block_size": 8,
    "batch_size": 4,
    "gradient_accumulation_steps": 1,
    "max_iters": 6,
    "eval_interval": 3,
    "eval_iters": 2,
    "warmup_iters": 2,
    "lr_decay_iters": 6,
    "learning_rate": 1e-2,
    "min_lr": 1e-3,
}


def trouble_with_tmpdir() -> str | None:
    """Why the tests cannot begin. Python goes to another folder if TMPDIR cannot be used, but the
    programs that tests start do not, and fail in the middle."""
    folder = os.environ.get("TMPDIR", "")
    try:
        with tempfile.TemporaryFile(dir=folder or None):
            return None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        remedy = "unset it, or set it to another folder"
        return f"error: TMPDIR={folder}: cannot be written to: {reason}; {remedy}"


class FakeTime:
    """A clock that moves when told to."""

    def __init__(self) -> None:
        self.now_ns = 1_000

    def __call__(self) -> int:
        return self.now_ns

    def advance(self, seconds: float) -> None:
        self.now_ns += round(seconds * 1e9)


def tiny_args(**changes: Any) -> list[str]:
    """A command line for a model that trains in a moment, with some settings changed."""
    return [f"--{key}={value}" for key, value in (TINY | changes).items()]


def prepare_tiny(text: str = TEXT, name: str = "tiny") -> Path:
    """A character data set in ./data, made by the command itself."""
    Path("text.txt").write_text(text)
    assert main(["prepare", "text.txt", f"--name={name}", "--overwrite"]) == 0
    return Path("data") / name


def train_tiny(**changes: Any) -> int:
    return main(["train", *tiny_args(**changes)])


def records(kind: str, out_dir: str = "out") -> list[dict[str, Any]]:
    return [r for r in run_log.read_records(Path(out_dir) / "run.jsonl") if r["kind"] == kind]


def story(kind: str, out_dir: str = "out") -> list[dict[str, Any]]:
    return [r for r in run_log.history(Path(out_dir) / "run.jsonl") if r["kind"] == kind]


def command(*args: str) -> list[str]:
    return [sys.executable, "-m", "stepglass", *args]


def run_process(*args: str, cwd: Path, **options: Any) -> "subprocess.CompletedProcess[str]":
    """The command in a process of its own, as a user runs it."""
    return subprocess.run(
        command(*args), cwd=cwd, capture_output=True, text=True, timeout=200, check=False, **options
    )


def write_tokens(path: Path, tokens: Any, dtype: str = "<u2") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.asarray(tokens).astype(dtype).tofile(path)


def edit_json(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def open_run(path: Path) -> RunFolder:
    """A run directory, opened and locked as a run has it."""
    path.mkdir(exist_ok=True)
    run = RunFolder(Folder.open(path))
    run.belongs_to(None)
    return run


def forge(checkpoint: Path, name: str, data: bytes) -> None:
    """Put another file into a checkpoint, by somebody who knows how manifests are made."""
    (checkpoint / name).write_bytes(data)
    entry = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    files = json.loads((checkpoint / "MANIFEST.json").read_text())["files"]
    forge_manifest(checkpoint, files=files | {name: entry})


def forge_manifest(checkpoint: Path, **changes: Any) -> None:
    """Change a manifest, by somebody who knows how they are made."""
    manifest = json.loads((checkpoint / "MANIFEST.json").read_text()) | changes
    del manifest["manifest_sha256"]
    own = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
    (checkpoint / "MANIFEST.json").write_text(json.dumps({**manifest, "manifest_sha256": own}))


def forge_state(checkpoint: Path, **changes: Any) -> None:
    """Change what a checkpoint says of itself."""
    state = json.loads((checkpoint / "state.json").read_text()) | changes
    forge(checkpoint, "state.json", json.dumps(state).encode())
