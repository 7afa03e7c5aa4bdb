"""The runs of a sweep: their settings, checked before the first one starts, and what is there."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from stepglass.data.command import prepare_if_missing
from stepglass.data.location import folder_of
from stepglass.errors import ConfigError, DataError
from stepglass.run_dir import checkpoints, listing
from stepglass.run_dir.run_facts import run_facts
from stepglass.settings import command_line
from stepglass.settings.command_line import CommandLine
from stepglass.settings.fit_to_data import MAY_CHANGE
from stepglass.settings.train import TRAIN_SETTINGS, TrainConfig
from stepglass.sweep.grid import Grid, folder_name
from stepglass.units import shown

# A sweep decides these itself.
OF_THE_SWEEP = {
    "init_from": "a sweep starts and resumes its runs itself",
    "eval_only": "a sweep trains",
    "watch": "`stepglass watch` with the folder of the sweep shows all its runs",
}
ONCE = (*OF_THE_SWEEP, "out_dir")  # not part of what a run is

Action = Literal["new", "resume", "finished", "running"]


@dataclass(frozen=True)
class PlannedRun:
    """A run of a sweep. `settings` are the values in which it differs from the others."""

    name: str
    folder: Path
    settings: dict[str, str]
    command: CommandLine
    train_words: list[str]  # for `stepglass train`, without out_dir and the data set
    dataset: str

    @property
    def train_argv(self) -> list[str]:
        return [*self.train_words, f"--dataset={self.dataset}"]

    def argv(self, action: Action) -> list[str]:
        """The command line of `stepglass train` that starts or resumes it."""
        place = f"--out_dir={self.folder}"
        return [place, "--init_from=resume"] if action == "resume" else [*self.train_argv, place]

    def action(self) -> Action:
        """What to do about this run now."""
        facts = run_facts(self.folder)
        if facts.owner is not None:
            return "running"
        if facts.is_finished:
            return "finished"
        return "resume" if checkpoints.committed(self.folder) else "new"

    def require_same_settings(self) -> None:
        """Raise ConfigError if there is a run in the folder that was trained in another way."""
        saved = listing.settings_in(self.folder)
        if not saved:
            return
        recipe = str(saved.get("recipe", "none"))
        asked = asdict(replace(_resolved(self.command, recipe), dataset=self.dataset))
        free = self.command.free_settings() | ({"max_iters"} if asked["epochs"] else set())
        fitted = {key for key in MAY_CHANGE if key in free or asked[key] == "auto"}
        changed = [
            f"{key}={shown(saved[key])}, not {shown(value)}"
            for key, value in asked.items()
            if key not in {*ONCE, *fitted} and key in saved and saved[key] != value
        ]
        if changed:
            raise ConfigError(
                f"{self.folder}: was trained with {'; '.join(changed[:3])}; give the settings of "
                "that sweep to go on with it, or choose another --out_dir"
            )


def plan_runs(grid: Grid, out_dir: Path) -> list[PlannedRun]:
    """All runs of a sweep. Raises ConfigError if one of them could not work."""
    runs: dict[str, PlannedRun] = {}
    for settings in grid.combinations():
        name = folder_name(settings)
        if name in runs:
            raise ConfigError(f"two runs would be in {out_dir / name}; sweep other names")
        flags = [f"--{key}={text}" for key, text in (grid.fixed | settings).items()]
        named = [grid.dataset] if grid.dataset is not None else []
        command = command_line.read_command_line([*grid.config_files, *flags, *named])
        for key, why in OF_THE_SWEEP.items():
            if command.value(key) != TRAIN_SETTINGS.default(key):
                raise ConfigError(f"{key}={shown(command.value(key))}: {why}; leave it out")
        try:
            cfg = _of_any_device(command)
        except ConfigError as error:
            raise ConfigError(f"{name}: {error}") from None
        words = [word for word in flags if not word.startswith("--dataset=")]
        runs[name] = PlannedRun(
            name, out_dir / name, settings, command, [*grid.config_files, *words], cfg.dataset
        )
    return list(runs.values())


def with_data(runs: list[PlannedRun], say: Callable[[str], None]) -> list[PlannedRun]:
    """The runs with data sets that exist. What is missing is prepared here, once: runs that start
    at the same time would all prepare it. Raises DataError if there is nothing to prepare."""
    names = {}
    for asked in {run.dataset: None for run in runs}:
        names[asked] = prepare_if_missing(asked, say)
        folder = folder_of(names[asked])
        if not (folder / "train.bin").exists():
            raise DataError(f"{folder}: no such data set; make it first with `stepglass prepare`")
    return [replace(run, dataset=names[run.dataset]) for run in runs]


def _of_any_device(command: CommandLine) -> TrainConfig:
    """The settings of a run, checked. The recipe may depend on the device, which only torch knows;
    then the settings must be right for one of them."""
    recipe = command.value("recipe")
    recipes = [recipe]
    if command.wants_recipe_by_device():
        model = command.value("model")
        recipes = [command_line.recipe_by_device(kind, model) for kind in ("cpu", "cuda")]
    elif recipe == "auto":
        recipes = ["none"]
    errors = []
    for name in recipes:
        try:
            return _resolved(command, name)
        except ConfigError as error:
            errors.append(error)
    raise errors[0]


def _resolved(command: CommandLine, recipe: str) -> TrainConfig:
    given = command.value("recipe")
    return command_line.resolve(command, recipe if given == "auto" else given, lambda folder: {})
