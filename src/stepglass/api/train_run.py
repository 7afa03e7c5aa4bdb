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
from stepglass.run_dir import checkpoints
from stepglass.run_dir.saved_settings import saved_settings
from stepglass.settings import command_line
from stepglass.settings.command_line import CommandLine
from stepglass.settings.train import TrainConfig

if TYPE_CHECKING:
    from stepglass.train.console import Console
    from stepglass.train.run import Run


def read_settings(argv: list[str]) -> tuple[TrainConfig, CommandLine, list[str]]:
    """The settings of a run, the command line that they come from, and notes to print."""
    command = command_line.read_command_line(argv)
    recipe = command.recipe_by_itself()
    notes = []
    if command.wants_recipe_by_device():
        from stepglass.hardware import choose  # noqa: PLC0415

        kind, _ = choose.pick_type(command.value("device"))
        recipe = command_line.recipe_by_device(kind, command.value("model"))
        notes.append(f"recipe: {recipe}: no other was named, and the device is {kind}")
    cfg = command_line.resolve(command, recipe, saved_settings)
    notes += [f"note: {unused}" for unused in command_line.unused_in_files(command, cfg)]
    return cfg, command, notes


def to_go_on(argv: list[str], console: "Console") -> list[str]:
    """The command line after torchrun has started all processes again: go on from the newest
    checkpoint, if there is one."""
    out_dir = Path(command_line.read_command_line(argv).value("out_dir"))
    console.say("note: a process was lost, and all were started again")
    if not checkpoints.committed(out_dir):
        return argv
    return [*(word for word in argv if not word.startswith("--init_from")), "--init_from=resume"]


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
        from stepglass.train.building import Surroundings, connect_others  # noqa: PLC0415

        group = connect_others(cfg)
        from stepglass.data.command import prepare_if_missing  # noqa: PLC0415

        tokens_of = cfg.init_from if cfg.starts_from_model else None
        cfg = replace(cfg, dataset=prepare_if_missing(cfg.dataset, console.say, tokens_of))
        from stepglass.explain import ending  # noqa: PLC0415
        from stepglass.hardware.choose import threads_as_before  # noqa: PLC0415
        from stepglass.train.finish import train_to_the_end  # noqa: PLC0415
        from stepglass.train.setup import set_up  # noqa: PLC0415
    with StopRequest() as stop, threads_as_before():
        with clock.phase("warmup"):
            asked = command.free_settings(), command.measures_batch, group
            training = set_up(cfg, argv, Surroundings(clock, console, stop, *asked))
            try:
                when_ready(training.run)
            except BaseException:
                training.close()
                raise
        train_to_the_end(training, ending.closing_findings)
    return training.run.run_dir
