"""Defines a command's settings by a frozen dataclass: names, types, defaults and help.

    @dataclass(frozen=True, kw_only=True)
    class TrainConfig(Config):
        batch_size: int = setting(12, "sequences in a micro-batch", minimum=1)

The parser of `--key=value`, the checks, `--help`, and the tables in docs/config.md are all derived
from this dataclass. The syntax is nanoGPT's: `--batch_size=32`, `--compile=False`. `--batch-size
32` works as well.

This is our own code because no library does all of the following: flags may be before or after
config files, a value may contain `=`, a wrong value gives a one-line error that names the key, and
a misspelt key gives a suggestion (docs/decisions.md compares the libraries).
"""

import dataclasses
import difflib
import math
import os
import types
import typing
from dataclasses import dataclass
from typing import Any, Literal

from stepglass.errors import ConfigError
from stepglass.settings.other_names import OTHER_SETTINGS, RATHER_TYPE
from stepglass.units import shown


def setting(
    default: Any,
    help: str,
    *,
    minimum: float | None = None,
    above: float | None = None,
    maximum: float | None = None,
    is_path: bool = False,
) -> Any:
    """A dataclass field with help and, for numbers, an allowed range, which is checked only if the
    command uses the setting. In a path, `~` is replaced by the home folder, because shells do not
    replace it after a `=`."""
    return dataclasses.field(
        default=default,
        metadata={
            "help": help,
            "minimum": minimum,
            "above": above,
            "maximum": maximum,
            "is_path": is_path,
        },
    )


@dataclass(frozen=True, kw_only=True)
class Config:
    """The settings of a command. Each command has its own subclass with a `setting` per field."""

    def used(self) -> list[str]:
        """The settings that this command will use. Only the ranges of these are checked."""
        return [field.name for field in dataclasses.fields(self)]

    def check(self) -> None:
        """Raise ConfigError if settings contradict each other."""


@dataclass(frozen=True)
class Given:
    """A value and the place where it was given. Error messages start with the place."""

    value: Any
    place: str


def expected(kind: Any) -> str:
    """The values that a type accepts, in words.

    >>> expected(int), expected(bool | Literal["auto"])
    ('a whole number', 'True or False or auto')
    """
    words = {int: "a whole number", float: "a number", bool: "True or False", str: "text"}
    if kind in words:
        return words[kind]
    if typing.get_origin(kind) is Literal:
        return " or ".join(str(choice) for choice in typing.get_args(kind))
    return " or ".join(expected(part) for part in typing.get_args(kind))


def _choices(kind: Any) -> list[str]:
    """
    >>> _choices(bool | Literal["auto"]), _choices(int)
    (['True', 'False', 'auto'], [])
    """
    if kind is bool:
        return ["True", "False"]
    if typing.get_origin(kind) is Literal:
        return [str(choice) for choice in typing.get_args(kind)]
    return [choice for part in typing.get_args(kind) for choice in _choices(part)]


def convert_value(value: Any, kind: Any) -> Any:
    """Convert a text from the command line, or a value from a file, to a setting's type. Raises
    ValueError.

    >>> convert_value("1", float), convert_value("False", bool)
    (1.0, False)
    >>> convert_value(3, float), convert_value("a=b", str)
    (3.0, 'a=b')
    """
    if isinstance(kind, types.UnionType) or typing.get_origin(kind) in (
        typing.Union,
        types.UnionType,
    ):
        for part in typing.get_args(kind):
            try:
                return convert_value(value, part)
            except ValueError:
                continue
        raise ValueError
    if typing.get_origin(kind) is Literal:
        if value in typing.get_args(kind):
            return value
        raise ValueError
    if kind is bool:
        if isinstance(value, bool):
            return value
        word = value.lower() if isinstance(value, str) else None
        if word in ("true", "1", "false", "0"):
            return word in ("true", "1")
        raise ValueError
    if kind is str:
        if isinstance(value, str):
            return value
        raise ValueError
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError
    if kind is int:
        if isinstance(value, float):
            raise ValueError
        return int(value)
    number = float(value)
    if not math.isfinite(number):
        raise ValueError
    return number


def _takes_text(kind: Any) -> bool:
    return (
        kind is str
        or typing.get_origin(kind) is Literal
        or any(_takes_text(part) for part in typing.get_args(kind) if not isinstance(part, str))
    )


class Settings:
    """The settings of one dataclass: look-up, parsing, help."""

    def __init__(self, config: type[Config]) -> None:
        self._config = config
        self._fields = {field.name: field for field in dataclasses.fields(config)}
        self._kinds = typing.get_type_hints(config)

    def __contains__(self, key: str) -> bool:
        return key in self._fields

    def default(self, key: str) -> Any:
        return self._fields[key].default

    def names(self) -> list[str]:
        return list(self._fields)

    def is_path(self, key: str) -> bool:
        return bool(self._fields[key].metadata["is_path"])

    def choices(self, key: str) -> list[str]:
        """The values that a setting has by its type; empty if there are too many to list."""
        return _choices(self._kinds[key])

    def hint(self, key: str) -> str:
        """A suggestion for a key that does not exist."""
        if key in RATHER_TYPE:
            return f"type {RATHER_TYPE[key]}"
        other = OTHER_SETTINGS.get(key)
        close = [other] if other in self._fields else []
        close += difflib.get_close_matches(key, self._fields, n=1)
        return f"did you mean {close[0]}?" if close else "--help lists all settings"

    def given(self, key: str, value: Any, place: str, is_text: bool = False) -> Given:
        """Check the key and convert the value. `is_text` is True if every value is given as text,
        as on a command line."""
        if key not in self._fields:
            raise ConfigError(f"{place}: unknown setting {shown(key)}; {self.hint(key)}")
        kind = self._kinds[key]
        try:
            if isinstance(value, str) and ("\0" in value or not (is_text or _takes_text(kind))):
                raise ValueError
            if self._fields[key].metadata["is_path"] and isinstance(value, str):
                value = os.path.expanduser(value)
            return Given(convert_value(value, kind), place)
        except (ValueError, OverflowError):
            raise ConfigError(
                f"{place}: {key.rstrip('_')} expects {expected(kind)}, found {shown(value)}"
            ) from None

    def parse(self, argv: list[str]) -> tuple[list[str], dict[str, Given]]:
        """Split a command line into words and settings."""
        words: list[str] = []
        given: dict[str, Given] = {}
        rest = list(argv)
        while rest:
            arg = rest.pop(0)
            if not arg.startswith("--"):
                if arg.startswith("-") and len(arg) > 1:
                    raise ConfigError(
                        f"unknown flag {shown(arg)}: settings are written --key=value; --help "
                        "lists them"
                    )
                words.append(arg)
                continue
            name, has_value, text = arg[2:].partition("=")
            key = name.replace("-", "_")
            if f"{key}_" in self._fields:
                key = f"{key}_"  # a word of Python's: `--for` is the field `for_`
            if key not in self._fields:
                raise ConfigError(f"unknown setting --{name[:80]}; {self.hint(key)}")
            if not has_value:
                text = self._value_after(key, rest)
            if key in given:
                both = f"{shown(given[key].value)} and {shown(text)}"
                raise ConfigError(f"--{key.rstrip('_')} is given twice: {both}; keep one")
            given[key] = self.given(key, text, f"--{key.rstrip('_')}", is_text=True)
        return words, given

    def _value_after(self, key: str, rest: list[str]) -> str:
        # `--eval_only` alone means True; `--eval_only False` and `--batch_size 12` take the next
        # word.
        kind = self._kinds[key]
        takes_bool = kind is bool or bool in typing.get_args(kind)
        if rest and not rest[0].startswith("--"):
            if not takes_bool:
                return rest.pop(0)
            try:
                convert_value(rest[0], kind)
            except ValueError:
                return "True"
            return rest.pop(0)
        if takes_bool:
            return "True"
        raise ConfigError(f"--{key} expects {expected(kind)}, found nothing; write --{key}=VALUE")

    def build(self, given: dict[str, Given]) -> Any:
        """Make the dataclass, and check the ranges of all settings that it uses."""
        config = self._config(**{key: item.value for key, item in given.items()})
        for key in config.used():
            value = getattr(config, key)
            if isinstance(value, bool) or not isinstance(value, int | float):
                continue
            place = given[key].place if key in given else f"default of {key}"
            limits = self._fields[key].metadata
            if limits["minimum"] is not None and value < limits["minimum"]:
                raise ConfigError(
                    f"{place}: {key} must be at least {limits['minimum']:g}, found {shown(value)}"
                )
            if limits["above"] is not None and value <= limits["above"]:
                raise ConfigError(
                    f"{place}: {key} must be above {limits['above']:g}, found {shown(value)}"
                )
            if limits["maximum"] is not None and value > limits["maximum"]:
                raise ConfigError(
                    f"{place}: {key} must be at most {limits['maximum']:g}, found {shown(value)}"
                )
            if isinstance(value, int) and value >= 2**63:
                raise ConfigError(f"{place}: {key} must be below 2^63, found {shown(value)}")
        config.check()
        return config

    def table(self) -> list[tuple[str, str, str, str]]:
        """Name, what it expects, default and help of every setting, in order."""
        return [
            (
                name.rstrip("_"),
                expected(self._kinds[name]),
                repr(field.default).strip("'"),
                field.metadata["help"],
            )
            for name, field in self._fields.items()
        ]
