"""The `advise` command: finds out what is to be trained and on what, and prints the advice."""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from stepglass.advise import advice_files, target
from stepglass.advise.advice import advise
from stepglass.advise.advice_text import text_lines
from stepglass.advise.case import Case, Trainer
from stepglass.advise.measured_here import measured_here
from stepglass.advise.ran_on import on_its_device
from stepglass.advise.subject import (
    for_nanogpt,
    from_log,
    from_settings,
    names_nanogpts_data,
    read_part,
)
from stepglass.errors import ConfigError, os_reason
from stepglass.explain.render.languages import Language, Words, from_environment
from stepglass.explain.render.wrap import text_width
from stepglass.files import replacing
from stepglass.measure.devices import device_named
from stepglass.settings.command_line import (
    CommandLine,
    read_command_line,
    recipe_names,
    without_auto_batch,
)
from stepglass.settings.schema import Config, Given, Settings, setting
from stepglass.settings.train import TrainConfig
from stepglass.units import printable, shown


@dataclass(frozen=True, kw_only=True)
class AdviseConfig(Config):
    """Settings of `advise`."""

    device: str = setting(
        "", "the device to advise for (RTX 4070, m3 max, cpu); by default the log's or this one's"
    )
    lang: Literal["auto", Language] = setting(
        "auto", "language of the answer; auto: the terminal's"
    )
    json: bool = setting(False, "write JSON (docs/advise.md) instead of text")
    out: str = setting(
        "", "-o FILE.toml: write the settings to a file that `stepglass train` takes", is_path=True
    )
    measure: bool = setting(
        False, "train for a few updates on this machine first, and advise by their times"
    )
    for_: Literal["auto", "stepglass", "nanogpt"] = setting(
        "auto",
        "nanogpt: flags and memory of nanoGPT's train.py; auto: nanogpt for a log of nanoGPT's",
    )

    def check(self) -> None:
        if self.out and not self.out.endswith(".toml"):
            raise ConfigError(f"--out expects a name that ends in .toml, found {self.out!r}")
        if self.measure and self.for_ == "nanogpt":
            raise ConfigError(
                "--measure and --for=nanogpt do not go together: --measure runs our own trainer; "
                "leave one out"
            )
        if self.out and self.for_ == "nanogpt":
            raise ConfigError(
                "--out and --for=nanogpt do not go together: nanoGPT reads no TOML; leave one out"
            )


@dataclass(frozen=True, kw_only=True)
class _Everything(TrainConfig, AdviseConfig):
    """What may be on the command line: the settings of `train` describe what is to be trained."""


USAGE = (
    "usage: stepglass advise [RUN|LOG] [CONFIG.toml|CONFIG.py ...] [--device=NAME] "
    "[--key=value ...]\n\nThe model and its training are given as for `stepglass train`: by a "
    "recipe, config files and its\nsettings (stepglass train --help). Settings given as flags are "
    "kept, the others are advised.\n"
)
SETTINGS = Settings(AdviseConfig)
ALL_SETTINGS = Settings(_Everything)

Say = Callable[[str], None]


def run(argv: list[str], say: Say) -> None:
    """Advise on what the command line describes."""
    _check_has_no_auto_batch(argv)
    words, given = ALL_SETTINGS.parse(["--out" if word == "-o" else word for word in argv])
    cfg = SETTINGS.build({key: item for key, item in given.items() if key in SETTINGS})
    rest = {key: item for key, item in given.items() if key not in SETTINGS}
    files = [word for word in words if word.endswith((".toml", ".py"))]
    logs = [word for word in words if word not in files]
    if len(logs) > 1:
        raise ConfigError(f"expected at most one run or log, found {len(logs)}: {logs}")
    advice = advise(_case(cfg, logs, files, rest))
    said = Words(from_environment() if cfg.lang == "auto" else cfg.lang)
    if cfg.out:
        _write(Path(cfg.out), advice_files.toml_of(advice, said))
    if cfg.json:
        print(advice_files.json_of(advice, said))  # noqa: T201  it has several lines
        return
    for line in text_lines(advice, said, text_width()):
        print(line)  # noqa: T201  already printable
    if cfg.out:
        path = printable(cfg.out)
        say(said.text("advise-written", path=path))


def _case(cfg: AdviseConfig, logs: list[str], files: list[str], rest: dict[str, Given]) -> Case:
    command = read_command_line(files)
    command = CommandLine(command.files, rest, command.has_nanogpt_file)
    if logs:
        return _case_of_log(cfg, logs[0], command)
    found = target.asked_for(cfg.device)
    flags = {key: advice_files.value_text(item.value) for key, item in rest.items()}
    typed = [*files, *(f"--{key}={value}" for key, value in flags.items())]
    subject = from_settings(command, found, typed)
    if cfg.measure:
        if cfg.device not in target.OWN and found != target.this_machine():
            raise ConfigError(
                f"--measure and --device={cfg.device}: only this machine can be measured; "
                "leave one out"
            )
        subject = measured_here(subject)
    case = Case(subject, found, _trainer(cfg, is_nanogpts=False))
    has_name = command.has_nanogpt_file and names_nanogpts_data(command, "none")
    return _for_its_trainer(case, {}, has_name)


def _case_of_log(cfg: AdviseConfig, name: str, command: CommandLine) -> Case:
    if cfg.measure:
        raise ConfigError(f"--measure: {name} has been measured already; leave one out")
    _check_exists(name)
    asked = None if cfg.device in target.OWN else target.asked_for(cfg.device)
    part = read_part(name, asked.known.name if asked and asked.known else None)
    ran_on = target.of_part(part)
    is_same_cpu = asked is not None and asked.kind == ran_on.kind == "cpu"
    found = ran_on if asked is None or is_same_cpu else asked
    subject = from_log(command, name, part)
    is_nanogpts = part.format.name == "nanogpt"
    case = Case(subject, found, _trainer(cfg, is_nanogpts))
    case = case if asked is None else on_its_device(case, part, ran_on)
    has_name = is_nanogpts and names_nanogpts_data(command, command.value("recipe"))
    return _for_its_trainer(case, part.segment.facts, has_name)


def _trainer(cfg: AdviseConfig, is_nanogpts: bool) -> Trainer:
    """The trainer that the advice is for. A TOML file is for our own."""
    if cfg.for_ != "auto":
        return cfg.for_
    return "nanogpt" if is_nanogpts and not cfg.out else "stepglass"


def _for_its_trainer(case: Case, facts: dict[str, Any], has_nanogpts_name: bool) -> Case:
    if case.trainer != "nanogpt":
        return case
    advice_files.check_nanogpt_can(case.subject.cfg)
    return replace(case, subject=for_nanogpt(case.subject, facts, has_nanogpts_name))


def _check_exists(name: str) -> None:
    """Somebody may write the name of a data set here, as for `train`, of a device or a recipe."""
    if name != "-" and not os.path.lexists(name):
        raise ConfigError(
            f"{shown(name)}: expected a run directory or a log, found nothing; {_meant(name)}"
        )


def _meant(name: str) -> str:
    quoted = name if name.replace("_", "").isalnum() else shown(name)
    if name in recipe_names():
        return f"for the recipe, write --recipe={name}"
    try:
        device_named(name)
    except ConfigError:
        return f"for a data set, write --dataset={quoted}"
    return f"for the device, write --device={quoted}"


def _check_has_no_auto_batch(argv: list[str]) -> None:
    if len(without_auto_batch(argv)) < len(argv):
        raise ConfigError(
            "--batch_size=auto: advise chooses the batch itself; leave it out, or write --measure "
            "to try batches on this machine"
        )


def _write(path: Path, text: str) -> None:
    try:
        with replacing(path) as file:
            file.write(text.encode())
    except OSError as error:
        raise ConfigError(f"--out={path}: cannot be written: {os_reason(error)}") from error
