"""Stepglass: train a GPT from scratch, and see where every millisecond went.

import stepglass
stepglass.api.train("shakespeare", max_iters=200)    # docs/python.md
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepglass import api as api

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    if name == "api":  # imported only when used: the command line must start fast
        return import_module("stepglass.api")
    raise AttributeError(f"module 'stepglass' has no attribute {name!r}")
