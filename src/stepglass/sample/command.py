"""The `sample` command: writes text with a trained model."""

import sys
from collections.abc import Callable
from pathlib import Path

import torch

from stepglass.errors import ConfigError
from stepglass.hardware import choose
from stepglass.models.decoding import Draw, generate
from stepglass.process import StopRequest
from stepglass.sample.load import Sampler, load_run
from stepglass.sample.text import TextStream, encode_prompt, new_line
from stepglass.settings.sample import SAMPLE_SETTINGS, SampleConfig
from stepglass.settings.sample import USAGE as USAGE
from stepglass.units import one_line, printable

SETTINGS = SAMPLE_SETTINGS


def run(argv: list[str], say: Callable[[str], None]) -> None:
    """Load a run's best model and write samples to standard output."""
    words, given = SETTINGS.parse(argv)
    if len(words) > 1 or (words and "out_dir" in given):
        raise ConfigError(
            f"expected one run directory, found "
            f"{[*words, *(['--out_dir'] if 'out_dir' in given else [])]}"
        )
    cfg: SampleConfig = SETTINGS.build(given)
    kind, _ = choose.pick_type(cfg.device)
    if cfg.dtype not in ("auto", "float32") or cfg.compile:
        note("note: sampling is in float32 and not compiled")
    run_dir = Path(words[0] if words else cfg.out_dir)
    loaded = load_run(run_dir, torch.device(kind), on_skip=note)
    if given.keys() & {"prompt", "start"}:
        ids = encode_prompt(cfg.start or cfg.prompt, loaded.tokenizer)
    else:
        ids = new_line(loaded.tokenizer)
    with StopRequest() as stop:
        write_samples(cfg, loaded, ids, stop)


def write_samples(cfg: SampleConfig, loaded: Sampler, ids: list[int], stop: StopRequest) -> None:
    """Write the samples. Each token is written as soon as it is generated."""
    show = printable if sys.stdout.isatty() else str
    for index in range(cfg.num_samples):
        if index:
            sys.stdout.write("---------------\n")
        stream = TextStream(loaded.tokenizer)
        sys.stdout.write(show(loaded.tokenizer.decode(ids)))
        for token in generate(
            loaded.model,
            ids,
            max_new_tokens=cfg.max_new_tokens,
            draw=Draw(cfg.temperature, cfg.top_k, cfg.top_p, cfg.seed + index),
            vocab_size=loaded.tokenizer.vocab_size,
        ):
            sys.stdout.write(show(stream.text(token)))
            sys.stdout.flush()
            if stop.is_set():
                break
        sys.stdout.write(show(stream.rest()) + "\n")
        if stop.is_set():
            return


def note(line: str) -> None:
    """Print a line to standard error, so that it is not part of the samples."""
    sys.stderr.write(one_line(line) + "\n")
