"""What a notebook or a program calls. The names are those of the command line.

    from stepglass import api

    run = api.train("shakespeare", max_iters=200, on_record=print)
    print(run.sample("ROMEO:", max_new_tokens=200))
    api.read("train.log").to_pandas()
    print(api.explain("train.log", lang="de"))

They are not `stepglass.train` and so on, because those are rooms of the package. torch is imported
only by what needs it. docs/python.md has more.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepglass.api.log_columns import (
        ColumnLog,
        ExplainedFinding,
        Explanation,
        Language,
        explain,
        read,
    )
    from stepglass.api.sampling import SampleOptions, TrainedRun, load, sample
    from stepglass.api.train_and_prepare import Callback, prepare, train
    from stepglass.errors import StepglassError

__all__ = [
    "Callback",
    "ColumnLog",
    "ExplainedFinding",
    "Explanation",
    "Language",
    "SampleOptions",
    "StepglassError",
    "TrainedRun",
    "explain",
    "load",
    "prepare",
    "read",
    "sample",
    "train",
]

MODULES = ("stepglass.api.train_and_prepare", "stepglass.api.sampling", "stepglass.api.log_columns")


def __getattr__(name: str) -> object:
    # Imported only when used: the command line has to start fast, and needs one module of this.
    if name in __all__:
        for module in (*MODULES, "stepglass.errors"):
            if hasattr(import_module(module), name):
                return getattr(import_module(module), name)
    raise AttributeError(f"module 'stepglass.api' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
