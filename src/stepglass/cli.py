"""The `stepglass` command: one thin function for each verb.

Nothing heavy is imported until a verb needs it, so `--help` answers at once. This is the only
module that prints errors and turns them into exit codes: 0 done, 1 the run failed, 2 the input is
at fault.
"""

import io
import os
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import stepglass
from stepglass.errors import ConfigError, StepglassError, os_reason
from stepglass.units import one_line, printable

if TYPE_CHECKING:
    from stepglass.clock import PhaseClock
    from stepglass.config import TrainConfig
    from stepglass.console import Console
    from stepglass.sample import Sampler
    from stepglass.sample_config import SampleConfig
    from stepglass.stop import StopRequest
    from stepglass.watch.beside import Beside

USAGE = """\
Stepglass trains a GPT from scratch and shows where every millisecond went.

  stepglass prepare NAME|PATH...     make a data set: text -> data/NAME/
  stepglass train [DATASET] [CONFIG ...] [--key=value ...]
                                     train; nanoGPT's command lines work unchanged
  stepglass sample RUN [--prompt=TEXT ...]
                                     write text with a trained model
  stepglass explain LOG|RUN|- [--lang=en|de|es|fr] [--lines] [--follow] [--json]
                                     say what any trainer's log means, and what to change
  stepglass report RUN|LOG... [-o FILE.html]
                                     the same as one page with plots; several are compared
  stepglass watch RUN|DIR [--port=N] the report, live, on 127.0.0.1
  stepglass runs [DIR] [--verify]    list runs and their checkpoints, and check them
  stepglass bench [NAME ...]         measure speed: ratios, both sides by turns

`stepglass COMMAND --help` lists a command's settings. Start with: stepglass train
"""


def main(argv: list[str] | None = None) -> int:
    """Run a command line and return its exit code."""
    words = sys.argv[1:] if argv is None else argv
    verbs: dict[str, Callable[[list[str]], None]] = {
        "prepare": prepare,
        "train": train,
        "sample": sample,
        "explain": explain,
        "report": report,
        "watch": watch,
        "runs": runs,
        "bench": bench,
    }
    # A process may be started with its output closed: then nobody is reading.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show a character shows ?
    try:
        if not words or words[0] in ("--help", "-h", "help"):
            print(USAGE, end="")
        elif words[0] == "--version":
            print(f"stepglass {stepglass.__version__}")
        elif words[0] in verbs:
            verbs[words[0]](words[1:])
        else:
            raise ConfigError(f"unknown command {words[0]!r}; expected one of {', '.join(verbs)}")
    except StepglassError as error:
        return _refuse(str(error), error.exit_code)
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(
            os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
        )  # the reader left: nobody to tell
        return 0
    except OSError as error:  # a path too long, a disk full: the machine's answer, not a bug
        return _refuse(f"{error.filename or 'output'}: {os_reason(error)}", 2)
    return 0


def _refuse(message: str, exit_code: int) -> int:
    with suppress(OSError):  # the exit code says it too
        note(f"error: {message}")
    return exit_code


def say(line: str) -> None:
    """A line for whoever asked, fit for a terminal whatever is in it."""
    print(one_line(line), flush=True)


def note(line: str) -> None:
    """The same beside the output."""
    print(one_line(line), file=sys.stderr, flush=True)


def wants_help(argv: list[str]) -> bool:
    return "--help" in argv or "-h" in argv


def prepare(argv: list[str]) -> None:
    """Make a data set."""
    from stepglass.data.prepare import PREPARE_SETTINGS  # noqa: PLC0415

    if wants_help(argv):
        print("usage: stepglass prepare NAME|PATH... [--key=value ...]\n")
        print(
            "NAME is shakespeare, tinyshakespeare or pystdlib; PATH is a text file, a folder or a "
            "glob.\n"
        )
        print("\n".join(PREPARE_SETTINGS.help_lines()))
        return
    words, given = PREPARE_SETTINGS.parse(argv)
    if not words:
        raise ConfigError(
            "expected the name of a data set or a text file; try: stepglass prepare shakespeare"
        )
    _prepare(words, PREPARE_SETTINGS.build(given))


def _prepare(words: list[str], cfg: object) -> None:
    from stepglass.data import prepare as module  # noqa: PLC0415

    assert isinstance(cfg, module.PrepareConfig)
    from stepglass.stop import StopRequest  # noqa: PLC0415

    with StopRequest() as stop:
        report = _Progress(stop)
        done = module.prepare(words, cfg, report)
        report.finish()
    for remark in done.notes:
        say(f"note: {remark}")
    splits = ", ".join(
        f"{name} {done.meta['splits'][name]['tokens']:,} tokens" for name in ("train", "val")
    )
    say(
        f"{done.folder}: {splits}, vocabulary {done.meta['vocab_size']:,} "
        f"({done.meta['tokenizer']['kind']})"
    )


class _Progress:
    """How far a preparation is: in place on a terminal, a line now and then elsewhere. It is called
    after every piece of text, so it is also where a signal is heard."""

    def __init__(self, stop: "StopRequest") -> None:
        self._stop = stop
        self._is_terminal = sys.stderr.isatty()
        self._next = time.monotonic() + (0.2 if self._is_terminal else 5.0)
        self._shown = False

    def __call__(self, doing: str, done: int, total: int) -> None:
        if self._stop.is_set():
            raise KeyboardInterrupt  # half a data set is none: temporary files go, nothing stays
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + (0.2 if self._is_terminal else 5.0)
        text = f"{doing}: {100 * done / max(total, 1):3.0f}% of {total / 1e6:,.1f} MB"
        print(
            f"\r{text}" if self._is_terminal else text,
            end="" if self._is_terminal else "\n",
            file=sys.stderr,
            flush=True,
        )
        self._shown = self._is_terminal

    def finish(self) -> None:
        if self._shown:
            print("\r" + " " * 60 + "\r", end="", file=sys.stderr, flush=True)


def train(argv: list[str]) -> None:
    """Train a model."""
    from stepglass import command_line, config  # noqa: PLC0415

    if wants_help(argv):
        print("usage: stepglass train [DATASET] [CONFIG.toml|CONFIG.py ...] [--key=value ...]\n")
        print(
            f"With no config file the settings start from a recipe: "
            f"{', '.join(command_line.recipe_names())}, or none.\n"
        )
        print("\n".join(config.TRAIN_SETTINGS.help_lines()))
        return
    from stepglass.clock import PhaseClock  # noqa: PLC0415
    from stepglass.console import Console  # noqa: PLC0415

    clock, console = PhaseClock(), Console()
    with clock.phase("warmup"):
        command = command_line.read_command_line(argv)
        recipe = command.value("recipe")
        if command.wants_recipe_by_device():
            from stepglass import device  # noqa: PLC0415

            kind, _ = device.pick_type(command.value("device"))
            is_gpt2 = command.value("model") == "gpt2"
            quick = "quick_gpt2" if is_gpt2 else "quick"
            recipe = quick if kind == "cpu" else "shakespeare_char"
            console.say(f"recipe: {recipe}: no config file was given, and the device is {kind}")
        cfg = command_line.resolve(command, "none" if recipe == "auto" else recipe)
        for unused in command_line.unused_in_files(command, cfg):
            console.say(f"note: {unused}")
    # Before torch is loaded: the page's process starts meanwhile.
    with _page_beside(cfg, console) as page:
        _train(cfg, argv, clock, console, page)


def _page_beside(cfg: "TrainConfig", console: "Console") -> "AbstractContextManager[Beside | None]":
    if not cfg.watch:
        return nullcontext()
    from stepglass.watch.beside import Beside  # noqa: PLC0415

    return Beside(Path(cfg.out_dir), console.say)


def _train(
    cfg: "TrainConfig",
    argv: list[str],
    clock: "PhaseClock",
    console: "Console",
    page: "Beside | None",
) -> None:
    from stepglass.stop import StopRequest  # noqa: PLC0415

    with clock.phase("warmup"):
        from stepglass.data import dataset  # noqa: PLC0415
        from stepglass.data.prepare import PrepareConfig  # noqa: PLC0415

        if dataset.is_missing(cfg.dataset):
            _prepare([cfg.dataset], PrepareConfig())
        from stepglass import train as trainer  # noqa: PLC0415
        from stepglass.startup import set_up  # noqa: PLC0415
    with StopRequest() as stop:
        with clock.phase("warmup"):
            session = set_up(cfg, argv, clock, console, stop)
            if page is not None:
                page.announce()
        trainer.run(session)


def bench(argv: list[str]) -> None:
    """Measure speed."""
    from stepglass.bench import command  # noqa: PLC0415

    if wants_help(argv):
        print("usage: stepglass bench [NAME ...] [--key=value ...]\n")
        print("\n".join(f"  {name:<10}{text}" for name, text in command.HELP.items()), end="\n\n")
        print("\n".join(command.BENCH_SETTINGS.help_lines()))
        return
    names, given = command.BENCH_SETTINGS.parse(argv)
    command.bench(names, command.BENCH_SETTINGS.build(given), say)


def sample(argv: list[str]) -> None:
    """Write text with a trained model."""
    from stepglass.sample_config import SAMPLE_SETTINGS  # noqa: PLC0415

    if wants_help(argv):
        print("usage: stepglass sample RUN [--key=value ...]\n")
        print("\n".join(SAMPLE_SETTINGS.help_lines()))
        return
    words, given = SAMPLE_SETTINGS.parse(argv)
    if len(words) > 1 or (words and "out_dir" in given):
        raise ConfigError(
            f"expected one run directory, found "
            f"{[*words, *(['--out_dir'] if 'out_dir' in given else [])]}"
        )
    cfg = SAMPLE_SETTINGS.build(given)

    import torch  # noqa: PLC0415

    from stepglass import device  # noqa: PLC0415
    from stepglass import sample as sampler  # noqa: PLC0415
    from stepglass.stop import StopRequest  # noqa: PLC0415

    kind, _ = device.pick_type(cfg.device)
    if cfg.dtype not in ("auto", "float32") or cfg.compile:
        note("note: sampling is in float32 and not compiled")
    run_dir = Path(words[0] if words else cfg.out_dir)
    loaded = sampler.load_run(run_dir, torch.device(kind), on_skip=note)
    if given.keys() & {"prompt", "start"}:
        ids = sampler.encode_prompt(cfg.start or cfg.prompt, loaded.tokenizer)
    else:
        ids = sampler.new_line(loaded.tokenizer)
    with StopRequest() as stop:
        _write_samples(cfg, loaded, ids, stop)


def _write_samples(
    cfg: "SampleConfig", loaded: "Sampler", ids: list[int], stop: "StopRequest"
) -> None:
    from stepglass.sample import Decoder, generate  # noqa: PLC0415

    show = printable if sys.stdout.isatty() else str
    for index in range(cfg.num_samples):
        if index:
            print("---------------")
        decoder = Decoder(loaded.tokenizer)
        sys.stdout.write(show(loaded.tokenizer.decode(ids)))
        for token in generate(
            loaded.model,
            ids,
            max_new_tokens=cfg.max_new_tokens,
            temperature=cfg.temperature,
            top_k=cfg.top_k,
            top_p=cfg.top_p,
            seed=cfg.seed + index,
            vocab_size=loaded.tokenizer.vocab_size,
        ):
            sys.stdout.write(show(decoder.text(token)))
            sys.stdout.flush()
            if stop.is_set():
                break
        print(show(decoder.rest()))
        if stop.is_set():
            return


def explain(argv: list[str]) -> None:
    """Say what a log means."""
    from stepglass import hostmemory  # noqa: PLC0415
    from stepglass.explain import command  # noqa: PLC0415

    hostmemory.keep_freed_memory()

    if wants_help(argv):
        print("usage: stepglass explain LOG|RUN|- [--key=value ...]\n")
        print("\n".join(command.EXPLAIN_SETTINGS.help_lines()))
        return
    words, given = command.EXPLAIN_SETTINGS.parse(argv)
    if len(words) != 1:
        found = f"found {words}" if words else "found none"
        raise ConfigError(f"expected one log file, run directory or - for a pipe, {found}")
    command.explain(words[0], command.EXPLAIN_SETTINGS.build(given), lambda line: print(line))


def report(argv: list[str]) -> None:
    """Write a page that shows runs or logs."""
    from stepglass.report import command  # noqa: PLC0415

    if wants_help(argv):
        print("usage: stepglass report RUN|LOG|-... [-o FILE.html] [--key=value ...]\n")
        print("\n".join(command.REPORT_SETTINGS.help_lines()))
        return
    argv = ["--out" if word == "-o" else word for word in argv]
    words, given = command.REPORT_SETTINGS.parse(argv)
    if not words:
        raise ConfigError("expected a run directory or a log file; try: stepglass report out")
    command.report(words, command.REPORT_SETTINGS.build(given), say)


def watch(argv: list[str]) -> None:
    """Show runs while they go on."""
    from stepglass.watch import command  # noqa: PLC0415

    if wants_help(argv):
        print("usage: stepglass watch [RUN|DIR] [--key=value ...]\n")
        print("\n".join(command.WATCH_SETTINGS.help_lines()))
        return
    words, given = command.WATCH_SETTINGS.parse(argv)
    if len(words) > 1:
        raise ConfigError(f"expected one run or folder, found {words}")
    cfg = command.WATCH_SETTINGS.build(given)
    command.watch(words[0] if words else ".", cfg, say)


def runs(argv: list[str]) -> None:
    """List runs and their checkpoints."""
    from stepglass import runs as module  # noqa: PLC0415

    if wants_help(argv):
        print("usage: stepglass runs [DIR] [--verify]\n")
        print("\n".join(module.RUNS_SETTINGS.help_lines()))
        return
    words, given = module.RUNS_SETTINGS.parse(argv)
    if len(words) > 1:
        raise ConfigError(f"expected one folder, found {words}")
    folder = Path(words[0] if words else ".")
    module.show(folder, module.RUNS_SETTINGS.build(given).verify, say)
