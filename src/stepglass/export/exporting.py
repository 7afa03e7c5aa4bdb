"""Exports a run: loads its best checkpoint and writes it in one of three formats."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from stepglass import units
from stepglass.errors import ConfigError, os_reason
from stepglass.export.gguf_writer import require_package, write_gguf
from stepglass.export.hf_writer import write_hf
from stepglass.export.nanogpt_writer import write_nanogpt
from stepglass.sample.chat import has_template
from stepglass.sample.load import Sampler, load_run


def export_run(run_dir: Path, out: Path, to: str, dtype: str) -> Iterator[str]:
    """Write the best model of a run to `out`, which must not exist. Yields lines to print."""
    if to == "gguf":
        require_package()
    notes: list[str] = []
    loaded = load_run(run_dir, torch.device("cpu"), on_skip=notes.append)
    yield from notes
    write = {"hf": write_hf, "gguf": write_gguf, "nanogpt": write_nanogpt}[to]
    with _appears(out) as temporary:
        yield from write(loaded, temporary, run_dir, dtype)
    yield f"{out}: {units.size(_size(out))}, from {loaded.path}"
    yield from _how_to_use(out, to, loaded)


@contextmanager
def _appears(out: Path) -> Iterator[Path]:
    """A path beside `out` to write a file or a folder to, which becomes `out` if all goes well."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".export-", dir=out.parent) as folder:
            made = Path(folder) / out.name
            yield made
            os.rename(made, out)
    except OSError as error:
        shutil.rmtree(out, ignore_errors=True)
        raise ConfigError(f"--out={out}: cannot be written: {os_reason(error)}") from error


def _size(path: Path) -> int:
    files = path.iterdir() if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files)


def _how_to_use(out: Path, to: str, loaded: Sampler) -> Iterator[str]:
    if to == "hf":
        yield f'use it: transformers.pipeline("text-generation", model="{out}")'
    elif to == "gguf":
        # llama-cli is for conversations, and its newer versions ignore -no-cnv.
        plain = f'llama-completion -m {out} -no-cnv -p "..."'
        yield f"use it: {f'llama-cli -m {out}' if has_template(loaded.tokenizer) else plain}"
    else:
        yield f"use it in nanoGPT's folder: python sample.py --out_dir={out.resolve()}"
