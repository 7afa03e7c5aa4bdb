"""The interface of a logger, the data it gets about a run, and the package it needs.

A logger is a module in this folder that defines three names:

    PACKAGE = OptionalPackage("wandb", module="wandb", needed="init")
    HINT = "type `wandb login`"          # what to do if it cannot be started
    def start(run: LoggedRun) -> Logger  # open it for a run

Its name must also be in `LOGGERS` in settings/log_to.py, the list of values for `--log_to`.
"""

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from stepglass.errors import ConfigError, os_reason
from stepglass.measure.records import RunRecord


class Logger(Protocol):
    """Writes records to a service. It may be slow and may raise, because a `LoggerFeed` runs it in
    a separate thread."""

    def write(self, records: list[RunRecord]) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True, kw_only=True)
class LoggedRun:
    """The data that a logger gets about a run."""

    run_dir: Path
    project: str
    name: str
    config: dict[str, Any]
    log_interval: int


@dataclass(frozen=True)
class OptionalPackage:
    """A package that is imported only if it is used."""

    name: str  # the name for pip, and of the extra that installs it
    module: str
    # A name that the module must define. wandb creates a folder ./wandb, and if wandb itself is not
    # installed, Python would import that folder as an empty package.
    needed: str

    def load(self) -> Any:
        """Import the module. Raises ConfigError that says what to type."""
        try:
            found = importlib.import_module(self.module)
        except Exception as error:  # importing a package may raise any exception
            if not self._is_missing(error):
                raise ConfigError(
                    f"logging to {self.name}: its package cannot be imported: {failure_text(error)}"
                ) from error
            found = None
        if not hasattr(found, self.needed):
            raise ConfigError(
                f"logging to {self.name}: its package is not installed; type: "
                f"pip install 'stepglass[{self.name}]'"
            )
        return found

    def _is_missing(self, error: Exception) -> bool:
        """True if this package was not found; False if one of its dependencies was not found."""
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        return missing is not None and missing.split(".")[0] == self.name


def failure_text(error: Exception) -> str:
    """The text of an error, in one line."""
    if isinstance(error, OSError):
        return os_reason(error)
    if isinstance(error, ConfigError):
        return str(error)
    first = (str(error).strip().splitlines() or [""])[0][:200]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
