"""`read` and `explain` for programs: any trainer's log as columns, and what it means as objects.
Nothing here needs torch."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stepglass.errors import LogError, MissingPackage, os_reason
from stepglass.explain.finding import Change, Level, Number, Status
from stepglass.explain.log_source import checked_device, opened
from stepglass.explain.render import answer, output
from stepglass.explain.render.languages import Language as Language
from stepglass.explain.render.languages import Words
from stepglass.explain.rules import all_rules
from stepglass.explain.study import study
from stepglass.logs import detect
from stepglass.logs.log import Log
from stepglass.logs.table import Column, Table

if TYPE_CHECKING:
    import pandas

# The columns of iterations, as the run log names them. `mfu` is in percent. `time_ms` is what the
# trainer calls the time of an iteration; `step_ms`, in our own logs, is the training step alone.
ITERATIONS = (
    "iter",
    "line",
    "loss",
    "time_ms",
    "step_ms",
    "lr",
    "grad_norm",
    "mfu",
    "tok_s",
    "data_ms",
    "memory_bytes",
)
EVALUATIONS = ("iter", "line", "set", "train_loss", "val_loss", "val_se", "val_bpb", "time_ms")


class WholeTable(Table):
    """A table that drops no rows, however long the log is."""

    most_notes = 1 << 62

    @staticmethod
    def capacity() -> int:
        return 1 << 62

    @classmethod
    def share_room(cls, tables: Sequence[Table]) -> None:
        """There is room for all."""


@dataclass(frozen=True)
class ExplainedFinding:
    """A finding in one language, with what proves it."""

    rule: str
    level: Level
    status: Status
    title: str
    text: str
    lines: list[int]
    iters: list[int]
    numbers: dict[str, Number]
    change: Change  # new values by setting
    segment: int


@dataclass(frozen=True)
class Explanation:
    """What a log means, in one language."""

    lang: Language
    answer: list[str]  # whether anything is wrong, how long a step takes, what to try
    findings: list[ExplainedFinding]
    cannot_show: list[str]
    as_json: dict[str, Any]  # all of it, as `stepglass explain --json` prints it

    def __str__(self) -> str:
        return "\n".join([*self.answer, *(f"- {one.title}" for one in self.findings)])


class ColumnLog:
    """A log, read whole. A value that the log does not state is NaN."""

    def __init__(self, name: str, log: Log) -> None:
        self.name = name
        self._log = log

    def __repr__(self) -> str:
        return f"ColumnLog({self.name!r}, {self.format}, {len(self)} iterations)"

    def __len__(self) -> int:
        return sum(len(segment.table) for segment in self._log.segments)

    @property
    def format(self) -> str:
        """The trainer that wrote the log."""
        return self._log.format.name

    @property
    def iterations(self) -> dict[str, Column]:
        """A column of numbers by name. `segment` counts the processes that wrote the log."""
        tables = [segment.table for segment in self._log.segments]
        columns = {
            name: np.concatenate([np.empty(0), *(table.column(name) for table in tables)])
            for name in ITERATIONS
        }
        numbers = [np.full(table.num_kept, number) for number, table in enumerate(tables)]
        return {"segment": np.concatenate([np.empty(0), *numbers]), **columns}

    @property
    def evaluations(self) -> dict[str, list[Any]]:
        """A column of evaluations by name. A value that the log does not state is None."""
        rows = [
            {"segment": number, **asdict(one)}
            for number, segment in enumerate(self._log.segments)
            for one in segment.evals
        ]
        return {name: [row[name] for row in rows] for name in ("segment", *EVALUATIONS)}

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that the log states, of the last process."""
        return dict(self._log.segments[-1].config)

    def to_pandas(self) -> "pandas.DataFrame":
        """The iterations as a data frame."""
        return _pandas().DataFrame(self.iterations)

    def evaluations_to_pandas(self) -> "pandas.DataFrame":
        """The evaluations as a data frame."""
        return _pandas().DataFrame(self.evaluations)

    def explain(self, lang: Language = "en", device: str = "") -> Explanation:
        """What the log means. `device` is the one the run was on, if the log does not say."""
        words = Words(lang)
        result = study(self._log, checked_device(device))
        found = all_rules.findings(result)
        whole = output.as_json(result, found, words)
        findings = [
            ExplainedFinding(**{name: one[name] for name in ExplainedFinding.__dataclass_fields__})
            for one in whole["findings"]
        ]
        lines = answer.answer(result, found, words)
        return Explanation(lang, lines, findings, whole["cannot_show"], whole)


def read(log: str | Path) -> ColumnLog:
    """Read a run or the log of any trainer that `stepglass explain` reads."""
    name, file = opened(str(log))
    with file:
        try:
            return ColumnLog(name, detect.read_log(file, name, WholeTable))
        except OSError as error:
            raise LogError(f"{name}: {os_reason(error)}") from error


def explain(log: str | Path, lang: Language = "en", device: str = "") -> Explanation:
    """What a run or a log means, in a language."""
    return read(log).explain(lang, device)


def _pandas() -> Any:
    try:
        import pandas  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise MissingPackage(
            "to_pandas needs pandas, which is not installed; type: pip install 'stepglass[pandas]'"
        ) from error
    return pandas
