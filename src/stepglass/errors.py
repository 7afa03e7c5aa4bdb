"""The errors that a user may see.

    StepglassError          exit code 2: the input is wrong, and the message says how
    ├── ConfigError         a setting, a flag or a config file
    ├── DataError           text, a prepared data set, a tokenizer
    ├── CheckpointError     a run directory or a checkpoint in it
    ├── DeviceError         a device, a dtype, memory
    ├── LogError            a log without training data
    ├── MissingPackage      a package that only some commands need
    └── TrainingFailed      exit code 1: the input was correct, but the run failed

A message is one line. It says what is wrong, with the value and the place, what was expected, and
what to type next. Any exception that is not a StepglassError is a bug in Stepglass and is shown
with its traceback.
"""

import stat
from collections.abc import Iterator
from contextlib import contextmanager


class StepglassError(Exception):
    """Base class of all errors that are shown without a traceback."""

    exit_code = 2


class ConfigError(StepglassError):
    """A setting is unknown, malformed, out of range or contradicts another one."""


class DataError(StepglassError):
    """Text or token files cannot be used."""


class CheckpointError(StepglassError):
    """A run directory or checkpoint is missing, damaged or does not fit."""


class DeviceError(StepglassError):
    """The machine has no such device, number format or memory."""


class LogError(StepglassError):
    """A log cannot be read, or has no training data."""


class MissingPackage(StepglassError):
    """A package is not installed, because not everybody needs it."""


TRAINING_PACKAGES = ("torch", "tokenizers", "safetensors", "jinja2")


def missing_package(error: ModuleNotFoundError) -> MissingPackage | None:
    """What to say if one of the packages for training is missing. None if it is another one, whose
    absence is a bug.

    >>> str(missing_package(ModuleNotFoundError(name="torch.nn")))
    'this needs torch, which is not installed; type: pip install stepglass'
    >>> missing_package(ModuleNotFoundError(name="stepglass.nothing"))
    """
    name = (error.name or "").partition(".")[0]
    if name not in TRAINING_PACKAGES:
        return None
    return MissingPackage(f"this needs {name}, which is not installed; type: pip install stepglass")


@contextmanager
def naming_missing_packages() -> Iterator[None]:
    """Raise MissingPackage instead of ModuleNotFoundError, if a package for training is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        missing = missing_package(error)
        if missing is None:
            raise
        raise missing from error


class TrainingFailed(StepglassError):
    """Training itself failed, for example because the loss became NaN."""

    exit_code = 1


def os_reason(error: OSError) -> str:
    """The operating system's message for an error, without the parts that Python adds.

    >>> os_reason(FileNotFoundError(2, "No such file or directory", "x"))
    'no such file or directory'
    """
    text = error.strerror or str(error)
    return text[:1].lower() + text[1:]


def file_kind(mode: int) -> str:
    """The kind of a file in words, from its mode (`st_mode`).

    >>> file_kind(0o100644), file_kind(0o010644), file_kind(0o040755)
    ('a file', 'a pipe', 'a folder')
    """
    names = {
        stat.S_IFREG: "a file",
        stat.S_IFIFO: "a pipe",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
        stat.S_IFDIR: "a folder",
        stat.S_IFSOCK: "a socket",
    }
    return names.get(stat.S_IFMT(mode), "something else")
