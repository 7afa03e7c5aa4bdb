"""The `export` command: writes a trained model for other programs."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from stepglass.errors import ConfigError
from stepglass.settings.schema import Config, Settings, setting

USAGE = """\
usage: stepglass export RUN --to=hf|gguf|nanogpt [--key=value ...]

Writes the best checkpoint of a run for other programs: a folder for transformers and vLLM (hf), a
file for llama.cpp and Ollama (gguf), or a ckpt.pt for nanoGPT (nanogpt). RUN is the folder of a run
(out, if it is left out).
"""


@dataclass(frozen=True, kw_only=True)
class ExportConfig(Config):
    """All settings of `stepglass export`."""

    to: Literal["hf", "gguf", "nanogpt"] = setting("hf", "the format: hf, gguf or nanogpt")
    out: str = setting(
        "",
        "where to write it; empty: beside the run, as RUN-hf, RUN.gguf or RUN-nanogpt",
        is_path=True,
    )
    dtype: Literal["f32", "f16", "q8_0"] = setting(
        "f32",
        "the number format of matrices; q8_0 is for gguf: 8 bits, with a scale for 32 numbers",
    )

    def check(self) -> None:
        if self.dtype == "q8_0" and self.to != "gguf":
            raise ConfigError(f"--dtype=q8_0 is for --to=gguf; --to={self.to} has f32 and f16")


SETTINGS = Settings(ExportConfig)
SUFFIX = {"hf": "-hf", "gguf": ".gguf", "nanogpt": "-nanogpt"}


def run(argv: list[str], say: Callable[[str], None]) -> None:
    """Write the model, and print where it is and how to use it."""
    words, given = SETTINGS.parse(argv)
    if len(words) > 1:
        raise ConfigError(f"expected one run directory, found {words}")
    cfg: ExportConfig = SETTINGS.build(given)
    if "to" not in given:
        raise ConfigError("expected --to=hf, --to=gguf or --to=nanogpt, found none of them")
    run_dir = Path(words[0] if words else "out")
    name = run_dir.name or run_dir.resolve().name
    out = Path(cfg.out) if cfg.out else run_dir.parent / f"{name}{SUFFIX[cfg.to]}"
    if out.exists() or out.is_symlink():
        raise ConfigError(f"{out}: exists already; delete it, or choose another with --out")
    from stepglass.export.exporting import export_run  # noqa: PLC0415  it imports torch

    for line in export_run(run_dir, out, cfg.to, cfg.dtype):
        say(line)
