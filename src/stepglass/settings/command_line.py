"""Turns a `stepglass train` command line into the settings of a run.

Order: defaults < recipe (or, when resuming, the run's saved settings) < config files < flags. This
module does not import torch, use a device or allocate memory, so a wrong setting is reported before
the run starts.
"""

import re
import stat
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from stepglass.errors import ConfigError, file_kind, os_reason
from stepglass.files import read_regular
from stepglass.settings.nanogpt_defaults import NANOGPT
from stepglass.settings.nanogpt_file import read_nanogpt_file
from stepglass.settings.schema import Given
from stepglass.settings.train import DEFAULT_OPTIMIZER, MODEL_KEYS, TRAIN_SETTINGS, TrainConfig

SavedSettings = Callable[[Path], dict[str, Given]]  # reads the settings of a run directory

LENGTHS = ("minutes", "epochs", "max_iters")  # each sets the length of a run

# Config files have one or two kB. A much larger file is not a config file, and the memory that
# Python's parser needs can grow with the square of the size: 2.6 GB for 100 kB of `import a.a.a`.
MAX_CONFIG_BYTES = 32_000
# Strings and comments in TOML. An unterminated string ends at the end of the line or of the file.
TOML_TEXT = re.compile(
    r'"""(?:\\?.)*?(?:"{3,5}|\Z)|"(?:\\?[^\n])*?(?:"|(?=\n)|\Z)'
    r"|'''.*?(?:'{3,5}|\Z)|'[^'\n]*'?|#[^\n]*",
    re.DOTALL,
)
DOTTED_KEY = re.compile(r"(?:\.[^.=,\[\]{}\n]*){3}")  # numbers and dates have at most one dot


@dataclass(frozen=True)
class CommandLine:
    """A parsed `stepglass train` command line, before it is combined with a recipe."""

    files: dict[str, Given]
    flags: dict[str, Given]
    has_nanogpt_file: bool = False
    measures_batch: bool = False  # `batch_size=auto`: the fastest micro-batch is measured

    def value(self, key: str) -> Any:
        """The value that the user gave for a setting, or its default."""
        item = self.flags.get(key) or self.files.get(key)
        return item.value if item else TRAIN_SETTINGS.default(key)

    def is_given(self, key: str) -> bool:
        return key in self.flags or key in self.files

    def wants_recipe_by_device(self) -> bool:
        return (
            self.value("recipe") == "auto"
            and not self.has_nanogpt_file  # nanoGPT's files assume nanoGPT's defaults
            and self.value("init_from") == "scratch"
        )

    def recipe_by_itself(self) -> str:
        """The recipe of a run that needs none for its device, if no other was named."""
        asked: str = self.value("recipe")
        if asked != "auto":
            return asked
        is_tuning = self.value("init_from") not in ("scratch", "resume")
        return "finetune" if is_tuning and not self.has_nanogpt_file else "none"

    def free_settings(self) -> frozenset[str]:
        """The settings that nobody chose: they come from a recipe that was chosen automatically."""
        if not self.wants_recipe_by_device():
            return frozenset()
        has_length = self.value("epochs") or self.value("minutes")
        chosen = {*self.flags, *self.files, *(["max_iters"] if has_length else [])}
        return frozenset(TRAIN_SETTINGS.names()) - chosen


def read_command_line(argv: list[str]) -> CommandLine:
    """Parse a command line. Words are config files (.toml, .py) or the name of a data set. The rest
    is `--key=value`."""
    rest = without_auto_batch(argv)
    words, flags = TRAIN_SETTINGS.parse(rest)
    files: dict[str, Given] = {}
    for word in words:
        if word.endswith((".toml", ".py")):
            files |= read_config_file(Path(word), {key: item.value for key, item in files.items()})
        elif "dataset" in flags:
            raise ConfigError(f"two data sets: {flags['dataset'].value!r} and {word!r}; keep one")
        else:
            flags["dataset"] = Given(word, "data set")
    measures_batch = len(rest) < len(argv)
    if measures_batch and "batch_size" in flags:
        raise ConfigError("--batch_size is given twice: auto and a number; keep one")
    has_nanogpt_file = any(word.endswith(".py") for word in words)
    command = CommandLine(files, flags, has_nanogpt_file, measures_batch)
    if command.has_nanogpt_file and command.value("init_from") != "resume":
        # nanoGPT has only one model, so its config files do not name it.
        files.setdefault("model", Given("gpt2", "nanoGPT's config file"))
    return command


def without_auto_batch(argv: list[str]) -> list[str]:
    """The command line without `--batch_size=auto`. It is a request, not a value: the recipe's or
    the config file's batch still says how many sequences an update has.

    >>> without_auto_batch(["--batch-size=auto", "--batch_size", "auto", "--dtype=auto"])
    ['--dtype=auto']
    """
    rest = []
    words = iter(argv)
    for word in words:
        name = word.replace("-", "_")
        if name == "__batch_size" and (value := next(words, None)) is not None:
            rest += [] if value == "auto" else [word, value]
        elif name != "__batch_size=auto":
            rest.append(word)
    return rest


def read_config_file(path: Path, known: dict[str, Any]) -> dict[str, Given]:
    """The settings in a TOML file, or in a `.py` file of nanoGPT, which is parsed but never run."""
    text = _text_of(path)
    if path.suffix == ".py":
        values = read_nanogpt_file(text, str(path), NANOGPT | known, TRAIN_SETTINGS)
    else:
        values = read_toml(text, str(path))
    return {key: TRAIN_SETTINGS.given(key, value, place) for key, (value, place) in values.items()}


def _text_of(path: Path) -> str:
    """The text of a config file. Raises ConfigError for pipes and devices, without reading them."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise ConfigError(f"{path}: expected a config file, found {file_kind(status.st_mode)}")
        if status.st_size > MAX_CONFIG_BYTES:
            raise ConfigError(
                f"{path}: expected a config file under {MAX_CONFIG_BYTES // 1000} kB, found "
                f"{status.st_size} bytes"
            )
        return read_regular(path, MAX_CONFIG_BYTES).decode("utf-8-sig")
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: expected a config file, found nothing") from error
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {os_reason(error)}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path}: expected UTF-8 text, found byte 0x{error.object[error.start]:02x}"
        ) from error
    except ValueError as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error


def read_toml(text: str, place: str) -> dict[str, tuple[Any, str]]:
    """The top-level keys of a TOML file."""
    # Python's parser makes a table for every part of a dotted key and stores all its parents, so a
    # key with 50,000 parts needs ten gigabytes of memory.
    if DOTTED_KEY.search(TOML_TEXT.sub("_", text)):
        raise ConfigError(f"{place}: expected `setting = value`, found a key with many dots")
    try:
        return {key: (value, place) for key, value in tomllib.loads(text).items()}
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{place}: not valid TOML: {error}") from error


def recipe_names() -> list[str]:
    folder = resources.files("stepglass.settings") / "recipes"
    return sorted(Path(file.name).stem for file in folder.iterdir() if file.name.endswith(".toml"))


def read_recipe(name: str) -> dict[str, Given]:
    """The settings of a recipe in this package. The recipe `none` has no settings."""
    if name == "none":
        return {}
    if name not in recipe_names():
        raise ConfigError(
            f"--recipe expects one of {', '.join([*recipe_names(), 'none'])}, found {name!r}"
        )
    text = (resources.files("stepglass.settings") / "recipes" / f"{name}.toml").read_text()
    values = read_toml(text, f"recipe {name}")
    return {key: TRAIN_SETTINGS.given(key, value, place) for key, (value, place) in values.items()}


def recipe_by_device(kind: str, model: str) -> str:
    """The recipe of a run for which no other was named."""
    if kind != "cpu":
        return "shakespeare_char_gpt2" if model == "gpt2" else "shakespeare_char"
    return "quick_gpt2" if model == "gpt2" else "quick"


def resolve(command: CommandLine, recipe: str, saved_settings: SavedSettings) -> TrainConfig:
    """Combine a command line with a recipe or, when resuming, with the run's saved settings."""
    base: dict[str, Given] = {}
    length = _lengths_in(command.flags) or _lengths_in(command.files)
    if command.value("init_from") == "resume":
        base = saved_settings(Path(command.value("out_dir")))
        if length:
            base = {key: item for key, item in base.items() if key not in ("epochs", "minutes")}
        _refuse_another_model(command, base)
    else:
        base = read_recipe(recipe) | {"recipe": Given(recipe, "recipe")}
        if command.is_given("n_embd") or command.is_given("model"):
            base.pop("n_inner", None)  # the recipe's value fits only its own width and model
    flags = {key: item for key, item in command.flags.items() if key != "recipe"}
    # When resuming, ignore the model settings of config files, as nanoGPT does: the run's own model
    # is used, and a config file may be older than the run.
    of_run = {"recipe", *(MODEL_KEYS if command.value("init_from") == "resume" else ())}
    other_lengths = {key for key in LENGTHS if length and key not in length}
    left_out = of_run | other_lengths
    files = {key: item for key, item in command.files.items() if key not in left_out}
    config: TrainConfig = TRAIN_SETTINGS.build(base | files | flags)
    for key in MODEL_KEYS:
        if config.starts_from_model and key in flags and key not in ("block_size", "optimizer"):
            raise ConfigError(
                f"{flags[key].place}: the model in {config.init_from} has its own {key}; leave it "
                "out (block_size crops its context)"
            )
    return config


def _lengths_in(given: dict[str, Given]) -> list[str]:
    """The settings that say how long the run is to be. Raises ConfigError for two of them."""
    minutes = given.get("minutes")
    if minutes is not None and minutes.place.startswith("--") and not minutes.value > 0:
        raise ConfigError(
            f"minutes expects a number above 0, found {minutes.value:g}; leave it out for max_iters"
        )
    found = [key for key in LENGTHS if key in given and (given[key].value or key == "max_iters")]
    if len(found) > 1:
        one, two = found[:2]
        raise ConfigError(
            f"{one}={given[one].value:g} and {two}={given[two].value} both set the length of the "
            "run; keep one"
        )
    return found


def unused_in_files(command: CommandLine, config: TrainConfig) -> list[str]:
    """Warnings about model settings in config files that differ from those of the resumed run."""
    return [
        f"{item.place}: {key}={item.value!r} is not used: the run has {getattr(config, key)!r}"
        for key, item in command.files.items()
        if config.init_from == "resume" and key in MODEL_KEYS and key not in command.flags
        if item.value != getattr(config, key)
    ]


def _refuse_another_model(command: CommandLine, saved: dict[str, Given]) -> None:
    """Raise ConfigError if a flag asks for another model than that of the resumed run."""
    stored = {
        key: saved[key].value if key in saved else TRAIN_SETTINGS.default(key)
        for key in (*MODEL_KEYS, "recipe")
    }
    by_itself = {  # the value that `auto` means
        "recipe": stored["recipe"],
        "optimizer": DEFAULT_OPTIMIZER[stored["model"]],
    }
    for key, found in stored.items():
        asked = command.flags[key].value if key in command.flags else found
        if asked != found and {asked, found} != {"auto", by_itself.get(key)}:
            raise ConfigError(
                f"{key}={asked!r}: the run in {command.value('out_dir')!r} has {found!r}; leave it "
                "out, or start over with --init_from=scratch"
            )
