"""The errors a user may see.

    StepglassError          exit code 2: the input is at fault, and the message says how
    ├── ConfigError         a setting, a flag or a config file
    ├── DataError           text, a prepared data set, a tokenizer
    ├── CheckpointError     a run directory or a checkpoint in it
    ├── DeviceError         a device, a dtype, memory
    ├── LogError            a log that holds no training
    └── TrainingFailed      exit code 1: the input was fine, the run was not

A message is one line: what is wrong, with the value and the place; what was expected; what to
type next. Anything that is not a StepglassError is a bug of ours and keeps its traceback.
"""

import stat


class StepglassError(Exception):
    """Base of every error that is shown without a traceback."""

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
    """A log cannot be read, or nothing of training is in it."""


class TrainingFailed(StepglassError):
    """Training itself went wrong: the loss is no longer a number, say."""

    exit_code = 1


def os_reason(error: OSError) -> str:
    """The operating system's words for what went wrong, without Python's decoration.

    >>> os_reason(FileNotFoundError(2, "No such file or directory", "x"))
    'no such file or directory'
    """
    text = error.strerror or str(error)
    return text[:1].lower() + text[1:]


def file_kind(mode: int) -> str:
    """What lies at a path, in words, by the mode that the operating system gives.

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
