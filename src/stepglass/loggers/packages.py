"""The packages that loggers need. They are optional, and imported when they are asked for."""

import importlib
from typing import Any

from stepglass.errors import ConfigError, os_reason

# What is imported, and a name that it must have: wandb leaves a folder ./wandb behind, which Python
# takes for an empty package where the real one is missing.
PACKAGES = {
    "tensorboard": ("tensorboard.summary.writer.record_writer", "RecordWriter"),
    "wandb": ("wandb", "init"),
    "trackio": ("trackio", "init"),
}


def load(name: str) -> Any:
    """A logger's package, or an error that says what to type."""
    module, needed = PACKAGES[name]
    try:
        found = importlib.import_module(module)
    except Exception as error:  # a package may fail in every way there is
        is_missing = isinstance(error, ModuleNotFoundError) and _is_part_of(error.name, name)
        if not is_missing:
            raise ConfigError(
                f"logging to {name}: its package cannot be imported: {reason_of(error)}"
            ) from error
        found = None
    if not hasattr(found, needed):
        raise ConfigError(
            f"logging to {name}: its package is not installed; type: "
            f"pip install 'stepglass[{name}]'"
        )
    return found


def _is_part_of(module: str | None, package: str) -> bool:
    return module is not None and module.split(".")[0] == package


def reason_of(error: Exception) -> str:
    """What went wrong, in one line."""
    if isinstance(error, OSError):
        return os_reason(error)
    if isinstance(error, ConfigError):
        return str(error)
    first = (str(error).strip().splitlines() or [""])[0][:200]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
