"""What a notebook or a program calls. The names are those of the command line.

    from stepglass import api

    run = api.train("shakespeare", max_iters=200, on_record=print)
    print(run.sample("ROMEO:", max_new_tokens=200))
    api.read("train.log").to_pandas()
    print(api.explain("train.log", lang="de"))

They are not `stepglass.train` and so on, because those are rooms of the package. torch is imported
only by what needs it. docs/python.md has more.
"""

from stepglass.api.reading import ColumnLog, ExplainedFinding, Explanation, Language, explain, read
from stepglass.api.sampling import SampleOptions, TrainedRun, load, sample
from stepglass.api.training import Callback, prepare, train
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
