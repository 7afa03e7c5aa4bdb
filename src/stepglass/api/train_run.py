"""Trains a run, for the command line and for programs: from its settings to its last line.

This is where the two halves of Stepglass meet: the trainer, and `explain`, whose findings are
printed at the end of a run.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from stepglass.measure.clock import PhaseClock
from stepglass.process import StopRequest
from stepglass.run_dir.saved_settings import saved_settings
from stepglass.settings import command_line
from stepglass.settings.command_line import CommandLine
from stepglass.settings.train import TrainConfig

if TYPE_CHECKING:
    from stepglass.train.console import Console
    from stepglass.train.run import Run


def read_settings(argv: list[str], console: "Console") -> tuple[TrainConfig, CommandLine]:
    """The settings of a run, and the command line that they come from."""
    command = command_line.read_command_line(argv)
    recipe = command.value("recipe")
    if command.wants_recipe_by_device():
        from stepglass.hardware import choose  # noqa: PLC0415

        kind, _ = choose.pick_type(command.value("device"))
        recipe = command_line.recipe_by_device(kind, command.value("model"))
        console.say(f"recipe: {recipe}: no other was named, and the device is {kind}")
    cfg = command_line.resolve(command, "none" if recipe == "auto" else recipe, saved_settings)
    for unused in command_line.unused_in_files(command, cfg):
        console.say(f"note: {unused}")
    return cfg, command


def train_run(
    cfg: TrainConfig,
    command: CommandLine,
    argv: list[str],
    clock: PhaseClock,
    console: "Console",
    when_ready: "Callable[[Run], None]",
) -> Path:
    """Train to the end, and return the run's folder. `when_ready` is called before the first
    update."""
    with clock.phase("warmup"):
        from stepglass.data.command import prepare_if_missing  # noqa: PLC0415

        cfg = replace(cfg, dataset=prepare_if_missing(cfg.dataset, console.say))
        from stepglass.explain import ending  # noqa: PLC0415
        from stepglass.train.finish import train_to_the_end  # noqa: PLC0415
        from stepglass.train.setup import Surroundings, set_up  # noqa: PLC0415
    with StopRequest() as stop:
        with clock.phase("warmup"):
            asked = command.free_settings(), command.measures_batch
            training = set_up(cfg, argv, Surroundings(clock, console, stop, *asked))
            when_ready(training.run)
        train_to_the_end(training, ending.closing_findings)
    return training.run.run_dir
