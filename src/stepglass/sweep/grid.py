"""Reads a `stepglass sweep` command line: which settings have several values, and which one.

    stepglass sweep notes.txt --learning_rate=1e-3,4e-3 --n_layer=2,3 --max_iters=500

Everything is a setting of `train`, except those in SweepConfig. A comma separates the values of a
setting, so a value that contains a comma cannot be swept.
"""

import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from stepglass.errors import ConfigError
from stepglass.settings.schema import Config, Given, Settings, setting
from stepglass.settings.train import TRAIN_SETTINGS
from stepglass.units import shown

NOT_IN_A_NAME = re.compile(r"[^\w.+%:@-]")
LONGEST_NAME = 200  # bytes; file systems allow 255, and the log has a suffix


@dataclass(frozen=True, kw_only=True)
class SweepConfig(Config):
    """The settings of `sweep` itself."""

    out_dir: str = setting("out-sweep", "the folder for the runs, one in each", is_path=True)
    jobs: int = setting(1, "runs at a time; they share the cores", minimum=1, maximum=1000)
    minutes: float = setting(
        0.0, "start no new run after this many minutes; 0: train all of them", minimum=0
    )
    max_runs: int = setting(100, "refuse a sweep of more runs than this", minimum=1)

    def check(self) -> None:
        if not self.out_dir:
            raise ConfigError("out_dir expects a folder, found ''")


SWEEP_SETTINGS = Settings(SweepConfig)


@dataclass(frozen=True)
class Grid:
    """The settings of a sweep. All values are texts, as they would be typed."""

    swept: dict[str, list[str]]
    fixed: dict[str, str]  # without the data set if it was named by itself
    config_files: list[str]
    dataset: str | None  # named by itself, without --dataset

    def combinations(self) -> Iterator[dict[str, str]]:
        for values in itertools.product(*self.swept.values()):
            yield dict(zip(self.swept, values, strict=True))

    def __len__(self) -> int:
        return math.prod(map(len, self.swept.values()))


def read_sweep(argv: list[str]) -> tuple[SweepConfig, Grid]:
    """Parse a command line. Raises ConfigError."""
    own, rest, lists = _split(argv)
    _, given = SWEEP_SETTINGS.parse(own)
    cfg: SweepConfig = SWEEP_SETTINGS.build(given)
    words, flags = TRAIN_SETTINGS.parse(rest)
    for key in lists.keys() & flags.keys():
        raise ConfigError(f"--{key} is given twice: {lists[key]} and {flags[key].value}; keep one")
    if not lists:
        raise ConfigError(
            "expected a setting with several values, found none; try: stepglass sweep "
            "--learning_rate=1e-3,4e-3"
        )
    swept = {key: _values(key, text) for key, text in lists.items()}
    datasets = [word for word in words if not word.endswith((".toml", ".py"))]
    if len(datasets) + ("dataset" in flags) + ("dataset" in lists) > 1:
        raise ConfigError("more than one data set is named; for several, use --dataset=A,B alone")
    grid = Grid(
        swept,
        {key: as_text(item) for key, item in flags.items()},
        [word for word in words if word not in datasets],
        datasets[0] if datasets else None,
    )
    if len(grid) > cfg.max_runs:
        raise ConfigError(
            f"{_shape(grid)} are {len(grid):,} runs, more than {cfg.max_runs}; sweep fewer values, "
            f"or allow it with --max_runs={len(grid)}"
        )
    return cfg, grid


def _shape(grid: Grid) -> str:
    return " x ".join(f"{len(values)} values of {key}" for key, values in grid.swept.items())


def _split(argv: list[str]) -> tuple[list[str], list[str], dict[str, str]]:
    """The words for `sweep`, the words for every run, and the settings with several values."""
    own: list[str] = []
    rest: list[str] = []
    lists: dict[str, str] = {}
    left = list(argv)
    while left:
        arg = left.pop(0)
        name, has_value, text = arg.removeprefix("--").partition("=")
        key = name.replace("-", "_")
        if not arg.startswith("--") or not (key in SWEEP_SETTINGS or key in TRAIN_SETTINGS):
            rest.append(arg)  # a word, or a setting that does not exist, which `parse` refuses
            continue
        follows = left[0] if left and not left[0].startswith("--") and not has_value else ""
        if key in SWEEP_SETTINGS:
            own.append(arg)
            if follows:
                own.append(left.pop(0))
        elif "," in (text or follows):
            if key in lists:
                raise ConfigError(f"--{key} is given twice; put all its values into one")
            lists[key] = text or left.pop(0)
        else:
            rest.append(arg)
    return own, rest, lists


def _values(key: str, text: str) -> list[str]:
    if key == "log_to":
        raise ConfigError(
            f"--log_to={text}: here commas separate the values of a sweep; name one logger, or put "
            "log_to into a config file"
        )
    values: list[str] = []
    for part in text.split(","):
        if not part:
            raise ConfigError(
                f"--{key}={text}: expected a value on both sides of every comma, found nothing"
            )
        value = as_text(TRAIN_SETTINGS.given(key, part, f"--{key}", is_text=True))
        if value in values:
            raise ConfigError(f"--{key}={text}: {shown(value)} is there twice; keep one")
        values.append(value)
    return values


def as_text(item: Given) -> str:
    """A value as it would be typed. Equal values become equal texts.

    >>> as_text(Given(float("1e-3"), "")), as_text(Given(False, ""))
    ('0.001', 'False')
    """
    return str(item.value)


def folder_name(settings: dict[str, str]) -> str:
    """The name of a run's folder: what differs from the other runs.

    >>> folder_name({"learning_rate": "0.001", "dataset": "../a b"})
    'learning_rate=0.001,dataset=.._a_b'
    """
    name = ",".join(f"{key}={NOT_IN_A_NAME.sub('_', text)}" for key, text in settings.items())
    if len(name.encode()) > LONGEST_NAME:
        raise ConfigError(
            f"{name[:60]}...: the name of the run's folder would have {len(name.encode())} bytes, "
            f"more than {LONGEST_NAME}; sweep fewer settings at once"
        )
    return name
