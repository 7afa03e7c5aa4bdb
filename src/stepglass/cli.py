"""The `stepglass` command. Each subcommand is a module with `USAGE`, `SETTINGS` and `run`.

Heavy modules are imported only when a subcommand needs them, so that `--help` is fast. This is the
only module that prints errors and turns them into exit codes: 0 means success, 1 means that the run
failed, 2 means that the input is wrong. It is also the only module that uses both the trainer and
the code that reads logs: `train` starts the live page, and prints the findings of `explain` at the
end.
"""

import io
import os
import sys
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import stepglass
from stepglass.errors import ConfigError, StepglassError, os_reason
from stepglass.units import one_line

if TYPE_CHECKING:
    from stepglass.measure.clock import PhaseClock
    from stepglass.settings.train import TrainConfig
    from stepglass.train.console import Console
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
  stepglass advise [RUN|LOG] [...]   settings for a device, and what to expect of them
  stepglass runs [DIR] [--verify]    list runs and their checkpoints, and check them
  stepglass bench [NAME ...]         measure speed, as ratios

`stepglass COMMAND --help` lists a command's settings. Start with: stepglass train
"""

COMMANDS = {
    "prepare": "stepglass.data.command",
    "train": "stepglass.cli",
    "sample": "stepglass.sample.command",
    "explain": "stepglass.explain.command",
    "report": "stepglass.report.command",
    "watch": "stepglass.watch.command",
    "advise": "stepglass.advise.command",
    "runs": "stepglass.run_dir.listing",
    "bench": "stepglass.bench.command",
}


def main(argv: list[str] | None = None) -> int:
    """Run a command line and return its exit code."""
    words = sys.argv[1:] if argv is None else argv
    # Python sets these to None if the process was started with closed output.
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
        elif words[0] in COMMANDS:
            run_command(words[0], words[1:])
        else:
            expected = ", ".join(COMMANDS)
            raise ConfigError(f"unknown command {words[0]!r}; expected one of {expected}")
    except StepglassError as error:
        return _refuse(str(error), error.exit_code)
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of the output has closed it, for example `head`. Discard the rest, so that
        # Python's flush at exit does not fail as well.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:  # for example a full disk or a path that is too long: not a bug
        return _refuse(f"{error.filename or 'output'}: {os_reason(error)}", 2)
    return 0


def run_command(name: str, argv: list[str]) -> None:
    """Run a subcommand, or print how it is used."""
    if name == "train":
        train(argv)
        return
    command = import_module(COMMANDS[name])
    if wants_help(argv):
        print(command.USAGE)
        print("\n".join(command.SETTINGS.help_lines()))
    else:
        command.run(argv, say)


def _refuse(message: str, exit_code: int) -> int:
    with suppress(OSError):  # if it cannot be printed, the exit code still reports the error
        print(one_line(f"error: {message}"), file=sys.stderr, flush=True)
    return exit_code


def say(line: str) -> None:
    """Print a text as one line, without control characters."""
    print(one_line(line), flush=True)


def wants_help(argv: list[str]) -> bool:
    return "--help" in argv or "-h" in argv


# -- train --------------------------------------------------------------------------------------


def train(argv: list[str]) -> None:
    """Train a model, serve its live page if asked, and print the main findings at the end."""
    from stepglass.settings import command_line  # noqa: PLC0415
    from stepglass.settings.train import TRAIN_SETTINGS  # noqa: PLC0415

    if wants_help(argv):
        print("usage: stepglass train [DATASET] [CONFIG.toml|CONFIG.py ...] [--key=value ...]\n")
        print(
            f"The settings start from a recipe: {', '.join(command_line.recipe_names())}, or none "
            "(nanoGPT's).\nConfig files and flags change them. A nanoGPT config file starts from "
            "none.\n"
        )
        print("\n".join(TRAIN_SETTINGS.help_lines()))
        return
    from stepglass.measure.clock import PhaseClock  # noqa: PLC0415
    from stepglass.train.console import Console  # noqa: PLC0415

    clock, console = PhaseClock(), Console()
    with clock.phase("warmup"):
        cfg = _settings_of(argv, console)
    # Start the page's process before torch is imported, so that both start at the same time.
    with _page_beside(cfg, console) as page:
        _train(cfg, argv, clock, console, page)


def _settings_of(argv: list[str], console: "Console") -> "TrainConfig":
    from stepglass.run_dir.saved_settings import saved_settings  # noqa: PLC0415
    from stepglass.settings import command_line  # noqa: PLC0415

    command = command_line.read_command_line(argv)
    recipe = command.value("recipe")
    if command.wants_recipe_by_device():
        from stepglass.hardware import choose  # noqa: PLC0415

        kind, _ = choose.pick_type(command.value("device"))
        is_gpt2 = command.value("model") == "gpt2"
        quick = "quick_gpt2" if is_gpt2 else "quick"
        recipe = quick if kind == "cpu" else "shakespeare_char"
        console.say(f"recipe: {recipe}: no other was named, and the device is {kind}")
    cfg = command_line.resolve(command, "none" if recipe == "auto" else recipe, saved_settings)
    for unused in command_line.unused_in_files(command, cfg):
        console.say(f"note: {unused}")
    return cfg


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
    from stepglass.process import StopRequest  # noqa: PLC0415

    with clock.phase("warmup"):
        from stepglass.data.command import prepare_if_missing  # noqa: PLC0415

        cfg = replace(cfg, dataset=prepare_if_missing(cfg.dataset, say))
        from stepglass.explain import ending  # noqa: PLC0415
        from stepglass.train.finish import train_to_the_end  # noqa: PLC0415
        from stepglass.train.setup import Surroundings, set_up  # noqa: PLC0415
    with StopRequest() as stop:
        with clock.phase("warmup"):
            training = set_up(cfg, argv, Surroundings(clock, console, stop))
            if page is not None:
                page.announce()
        train_to_the_end(training, ending.closing_findings)
