"""The `sample` command: writes text with a trained model."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

from stepglass.errors import ConfigError
from stepglass.hardware import choose
from stepglass.models.decoding import generate
from stepglass.process import StopRequest
from stepglass.sample.completions import Completion, Wanted
from stepglass.sample.interactive import talk
from stepglass.sample.load import Sampler, load_run
from stepglass.sample.many import TOGETHER, Piece, draw_of, in_order
from stepglass.sample.prompt_file import complete_file
from stepglass.sample.text import encode_prompt, new_line
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
    stop = cfg.stop_strings()
    if cfg.interactive:
        talk(loaded, cfg, stop, sys.stdin)
        return
    if cfg.prompts:
        with StopRequest() as request:
            complete_file(loaded, cfg, stop, request.is_set)
        return
    if given.keys() & {"prompt", "start"}:
        ids = encode_prompt(cfg.start or cfg.prompt, loaded.tokenizer)
    else:
        ids = new_line(loaded.tokenizer)
    wanted = [
        Wanted(ids, cfg.max_new_tokens, draw_of(cfg, number), stop)
        for number in range(cfg.num_samples)
    ]
    with StopRequest() as request:
        write_samples(loaded, wanted, request.is_set)


def write_samples(loaded: Sampler, wanted: list[Wanted], should_stop: Callable[[], bool]) -> None:
    """Write the samples. Each token is written as soon as it is generated; of several samples, the
    later ones are generated together with the first."""
    show = printable if sys.stdout.isatty() else str
    prompt = show(loaded.tokenizer.decode(wanted[0].ids))
    sys.stdout.write(prompt)
    pieces = one_text(loaded, wanted[0]) if len(wanted) == 1 else in_order(loaded, wanted, TOGETHER)
    for number, (text, is_end) in enumerate_texts(pieces):
        sys.stdout.write(show(text))
        if is_end:
            sys.stdout.write("\n")
            if number + 1 < len(wanted):
                sys.stdout.write(f"---------------\n{prompt}")
        sys.stdout.flush()
        if should_stop():
            sys.stdout.write("" if is_end else "\n")
            return


def enumerate_texts(pieces: Iterator[Piece]) -> Iterator[tuple[int, Piece]]:
    """Number the pieces by the text they belong to."""
    number = 0
    for piece in pieces:
        yield number, piece
        number += piece[1]


def one_text(loaded: Sampler, wanted: Wanted) -> Iterator[Piece]:
    """The pieces of one text. Decoding one alone is faster than a batch of one."""
    completion = Completion(wanted, loaded.tokenizer)
    for token in generate(
        loaded.model,
        wanted.ids,
        max_new_tokens=wanted.max_new_tokens,
        draw=wanted.draw,
        vocab_size=loaded.tokenizer.vocab_size,
    ):
        text = completion.add(token)
        yield text, completion.reason is not None
        if completion.reason is not None:
            return
    yield completion.rest(), True  # the generator has ended before its time


def note(line: str) -> None:
    """Print a line to standard error, so that it is not part of the samples."""
    sys.stderr.write(one_line(line) + "\n")
