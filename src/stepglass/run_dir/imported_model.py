"""A model that `stepglass import` has made a run of, and that was not trained here yet: it has
weights but no log, and that is no fault.

    found = imported_model(Path("out-smollm2"))
    if found is not None:
        raise LogError(found.why_no_log())
"""

import os
import shlex
from dataclasses import dataclass
from pathlib import Path

from stepglass import json_files, units
from stepglass.measure import run_log
from stepglass.measure.shapes import shape_from_record
from stepglass.run_dir import checkpoints

MAX_STATE_BYTES = 1 << 20
LONGEST_NAME = 100


@dataclass(frozen=True)
class ImportedModel:
    """Where such a model came from, and how far another program had trained it."""

    path: Path
    source: str  # the name of the file or folder
    parameters: int
    step: int | None  # updates by the other program, if its file says
    best_val_loss: float | None

    def why_no_log(self) -> str:
        """The error message of a command that needs a log."""
        name = shlex.quote(str(self.path))
        return (
            f"{self.path}: a model of {units.compact(self.parameters)} parameters, imported from "
            f"{self.source} and not trained here yet, so there is no log; next: stepglass sample "
            f"{name}, stepglass train DATASET --init_from={name} --out_dir=out-tuned, or stepglass "
            "explain LOG with the log of the program that trained it"
        )


def imported_model(path: Path) -> ImportedModel | None:
    """The model in a folder, or None if that is anything else. The folder's files may be damaged or
    hostile."""
    try:
        if os.path.lexists(path / run_log.NAME):
            return None
        newest = checkpoints.committed(path)[0]
        state = json_files.read_json(newest / "state.json", MAX_STATE_BYTES)
        source = units.one_line(str(state["imported_from"]))[:LONGEST_NAME]
        parameters = shape_from_record(state["model_config"]).num_params()
        step = state.get("step")
        return ImportedModel(
            path=path,
            source=source,
            parameters=parameters,
            step=step if type(step) is int and step >= 0 else None,
            best_val_loss=units.finite(state.get("best_val_loss")),
        )
    except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError):
        return None
