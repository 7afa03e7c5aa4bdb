"""What a logger is, what it is told about a run, and the package it needs.

A logger is a module of this folder with three names:

    PACKAGE = OptionalPackage("wandb", module="wandb", needed="init")
    HINT = "type `wandb login`"          # what to do if it cannot be started
    def start(run: LoggedRun) -> Logger  # open it for a run

and one word in settings/log_to.py, where `LOGGERS` lists the modules that `--log_to` may name.
"""

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from stepglass.errors import ConfigError, os_reason
from stepglass.measure.records import RunRecord


class Logger(Protocol):
    """A place that numbers go to. It may be slow and may raise: a `LoggerFeed` protects the run."""

    def write(self, records: list[RunRecord]) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True, kw_only=True)
class LoggedRun:
    """What a logger is told about a run."""

    run_dir: Path
    project: str
    name: str
    config: dict[str, Any]
    log_interval: int


@dataclass(frozen=True)
class OptionalPackage:
    """A package that is imported when it is asked for."""

    name: str  # as pip knows it, and as the extra of ours that installs it
    module: str
    # A name that the module must have: wandb leaves a folder ./wandb behind, which Python takes for
    # an empty package where the real one is missing.
    needed: str

    def load(self) -> Any:
        """The module, or an error that says what to type."""
        try:
            found = importlib.import_module(self.module)
        except Exception as error:  # a package may fail in every way there is
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
        """Is it this package that was not found, and not one that it needs?"""
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        return missing is not None and missing.split(".")[0] == self.name


def failure_text(error: Exception) -> str:
    """What went wrong, in one line."""
    if isinstance(error, OSError):
        return os_reason(error)
    if isinstance(error, ConfigError):
        return str(error)
    first = (str(error).strip().splitlines() or [""])[0][:200]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
