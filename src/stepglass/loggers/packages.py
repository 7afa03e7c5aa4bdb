"""The packages that loggers need."""

from typing import Any

from stepglass.loggers.start import logger_module


def load(name: str) -> Any:
    """`start.check_packages` does the same for all of them."""
    return logger_module(name).PACKAGE.load()
