"""The `stepglass` command. Each subcommand is a module with `USAGE`, `SETTINGS` and `run`.

Heavy modules are imported only when a subcommand needs them, so that `--help` is fast. This is the
only module that prints errors and turns them into exit codes: 0 means success, 1 means that the run
failed, 2 means that the input is wrong.
"""

import io
import os
import sys
from contextlib import AbstractContextManager, nullcontext, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import stepglass
from stepglass.errors import ConfigError, StepglassError, missing_package, os_reason
from stepglass.units import one_line, shown

if TYPE_CHECKING:
    from stepglass.settings.schema import Settings
    from stepglass.settings.train import TrainConfig
    from stepglass.train.console import Console
    from stepglass.watch.beside import Beside

INTRO = """\
Stepglass trains a GPT from scratch and shows where every millisecond went.

usage: stepglass COMMAND ...
`stepglass COMMAND --help` or `stepglass help COMMAND` lists the settings of a command.
"""
USAGE = {
    "train a model": (
        ("prepare NAME|PATH...", "make a data set from text, in data/NAME/"),
        ("train [DATASET|TEXT]", "train; nanoGPT's command lines work unchanged"),
        ("resume RUN [--max_iters=N]", "go on with a run that was stopped, or for longer"),
        ("sample RUN [--prompt=TEXT]", "write text with a trained model"),
        ("serve RUN", "answer OpenAI's clients with a trained model, on 127.0.0.1"),
        ("sweep --key=value,value ...", "train with all combinations of settings, and compare"),
    ),
    "use other programs": (
        ("export RUN --to=hf|gguf", "write a model for transformers, vLLM, llama.cpp, nanoGPT"),
        ("import PATH", "make a run from a model of nanoGPT, Hugging Face or llama.cpp"),
    ),
    "see what happened": (
        (
            "explain LOG|RUN|-",
            "say what any trainer's log means, and what to change (--lang=en|de|es|fr)",
        ),
        ("report RUN|LOG...", "the same as a page with plots; several are compared"),
        ("watch RUN|DIR", "the page of a run while it goes on, on 127.0.0.1"),
        ("runs [prune] [DIR]", "compare runs, check their checkpoints, delete earlier ones"),
    ),
    "more": (
        ("advise [RUN|LOG]", "settings for a device, and what to expect (--device=NAME)"),
        ("bench [NAME ...]", "measure speed, as ratios"),
        ("completion bash|zsh|fish", "print a script that completes all this in a shell"),
    ),
}
OUTRO = "RUN is the folder of a run: out, if --out_dir names no other. Start with: stepglass train"

COMMANDS = {
    "prepare": "stepglass.data.command",
    "train": "stepglass.cli",
    "resume": "stepglass.cli",
    "sample": "stepglass.sample.command",
    "serve": "stepglass.serve.command",
    "sweep": "stepglass.sweep.command",
    "export": "stepglass.export.command",
    "import": "stepglass.foreign.command",
    "explain": "stepglass.explain.command",
    "report": "stepglass.report.command",
    "watch": "stepglass.watch.command",
    "runs": "stepglass.run_dir.command",
    "advise": "stepglass.advise.command",
    "bench": "stepglass.bench.command",
    "completion": "stepglass.cli",
}
HELP = ("--help", "-h")


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
        if words[:1] == ["help"] and len(words) > 1:
            words = [*words[1:], "--help"]
        if not words or words[0] in (*HELP, "help"):
            print("\n".join(usage()))
        elif words[0] in ("--version", "-V", "-v"):
            print(f"stepglass {stepglass.__version__}")
        elif words[0] in COMMANDS:
            return run_command(words[0], words[1:])
        else:
            raise ConfigError(f"unknown command {shown(words[0])}; {other_command(words[0])}")
    except StepglassError as error:
        return _refuse(str(error), error.exit_code)
    except ModuleNotFoundError as error:
        missing = missing_package(error)
        if missing is None:
            raise
        return _refuse(str(missing), missing.exit_code)
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


def run_command(name: str, argv: list[str]) -> int:
    """Run a subcommand, or print how it is used. Returns an exit code."""
    if wants_help(argv):
        print("\n".join(command_help(name, [word for word in argv if word not in HELP])))
    elif name == "train":
        return train(argv)
    elif name == "resume":
        return train(to_resume(argv))
    elif name == "completion":
        print(completion(argv), end="")
    else:
        import_module(COMMANDS[name]).run(argv, say)
    return 0


# -- help ---------------------------------------------------------------------------------------


def usage() -> list[str]:
    """What `stepglass` alone prints: all commands, as wide as the terminal."""
    from stepglass.settings import help_text  # noqa: PLC0415

    width = help_text.help_width()
    lines = help_text.paragraphs(INTRO, width)
    for title, pairs in USAGE.items():
        lines += ["", f"{title}:", *help_text.two_columns(pairs, width, left=28)]
    return [*lines, "", *help_text.paragraph(OUTRO, width)]


def command_help(name: str, argv: list[str]) -> list[str]:
    """How a subcommand is used, and its settings."""
    from stepglass.settings import help_text  # noqa: PLC0415

    if name == "train":
        from stepglass.run_dir.saved_settings import saved_settings  # noqa: PLC0415
        from stepglass.settings.train_help import train_help  # noqa: PLC0415

        return list(train_help(argv, saved_settings))
    text, settings = usage_of(name)
    width = help_text.help_width()
    lines = help_text.paragraphs(text, width)
    if settings is not None:
        lines += ["", *help_text.two_columns(help_text.setting_pairs(settings), width)]
    return lines


def usage_of(name: str) -> "tuple[str, Settings | None]":
    """The usage and the settings of a subcommand. They are found without torch."""
    if name == "resume":
        return RESUME_USAGE, None
    if name == "completion":
        from stepglass.settings.completion import USAGE as text  # noqa: PLC0415

        return text, None
    if name == "sample":
        from stepglass.settings import sample  # noqa: PLC0415

        return sample.USAGE, sample.SAMPLE_SETTINGS
    if name == "serve":
        from stepglass.serve import serve_config  # noqa: PLC0415

        return serve_config.USAGE, serve_config.SERVE_SETTINGS
    command = import_module(COMMANDS[name])
    return command.USAGE, command.SETTINGS


def other_command(word: str) -> str:
    """A suggestion for a command that does not exist."""
    import difflib  # noqa: PLC0415

    from stepglass.settings.other_names import OTHER_COMMANDS  # noqa: PLC0415

    close = difflib.get_close_matches(word.lower(), COMMANDS, n=1)
    meant = OTHER_COMMANDS.get(word.lower()) or (close[0] if close else None)
    return f"did you mean {meant}?" if meant else f"expected one of {', '.join(COMMANDS)}"


def completion(argv: list[str]) -> str:
    """The script that completes these commands in a shell."""
    from stepglass.settings.completion import Described, completion_script  # noqa: PLC0415
    from stepglass.settings.train import TRAIN_SETTINGS  # noqa: PLC0415

    commands = {}
    for words, meaning in (pair for pairs in USAGE.values() for pair in pairs):
        name = words.split()[0]
        is_training = name in ("train", "resume")
        commands[name] = Described(meaning, TRAIN_SETTINGS if is_training else usage_of(name)[1])
    return completion_script(argv, commands)


def _refuse(message: str, exit_code: int) -> int:
    with suppress(OSError):  # if it cannot be printed, the exit code still reports the error
        print(one_line(f"error: {message}"), file=sys.stderr, flush=True)
    return exit_code


def say(line: str) -> None:
    """Print a text as one line, without control characters."""
    print(one_line(line), flush=True)


def wants_help(argv: list[str]) -> bool:
    return any(word in HELP for word in argv)


# -- train --------------------------------------------------------------------------------------


def train(argv: list[str]) -> int:
    """Train a model, serve its live page if asked, and print the main findings at the end. Returns
    an exit code."""
    from stepglass.api.train_run import read_settings, to_go_on, train_run  # noqa: PLC0415
    from stepglass.hardware.ranks import this_rank  # noqa: PLC0415
    from stepglass.measure.clock import PhaseClock  # noqa: PLC0415
    from stepglass.train.console import Console  # noqa: PLC0415

    clock, console, here = PhaseClock(), Console(), this_rank()
    if not here.leads:
        from stepglass.train.following import follow_rank_0  # noqa: PLC0415

        return follow_rank_0(argv)
    if here.restarts:
        argv = to_go_on(argv, console)
    with clock.phase("warmup"):
        cfg, command, notes = read_settings(argv)
    if cfg.nproc > 1 and not here.is_one_of_several:
        from stepglass.train.launch import launch  # noqa: PLC0415

        return launch(cfg, argv)
    for note in notes:
        console.say(note)
    # Start the page's process before torch is imported, so that both start at the same time.
    with _page_beside(cfg, console) as page:
        train_run(cfg, command, argv, clock, console, lambda _: page.announce() if page else None)
    return 0


RESUME_USAGE = """\
usage: stepglass resume [RUN] [--key=value ...]

Goes on from the newest checkpoint of a run, with the settings of that run. RUN is its folder (out,
if it is left out).

  --max_iters=N  train for longer: up to N updates in all

The other settings of `stepglass train` can be changed as well, except those of the model.
`stepglass resume RUN` is short for `stepglass train --out_dir=RUN --init_from=resume`.
"""


def to_resume(argv: list[str]) -> list[str]:
    """The command line of `train` that goes on with a run.

    >>> to_resume(["out-notes", "--max_iters=900"])
    ['--out_dir=out-notes', '--init_from=resume', '--max_iters=900']
    """
    is_named = bool(argv) and not argv[0].startswith("-")
    named = [f"--out_dir={argv[0]}"] if is_named else []
    return [*named, "--init_from=resume", *argv[is_named:]]


def _page_beside(cfg: "TrainConfig", console: "Console") -> "AbstractContextManager[Beside | None]":
    if not cfg.watch:
        return nullcontext()
    from stepglass.watch.beside import Beside  # noqa: PLC0415

    return Beside(Path(cfg.out_dir), console.say)
