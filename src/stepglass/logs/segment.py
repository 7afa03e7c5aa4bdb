"""One process's part of a log: its iterations, evaluations, checkpoints, settings and events.

Everything keeps the number of the line it stands on, from 1.
"""

from array import array
from dataclasses import dataclass, field
from typing import Any

from stepglass.logs.record import Record
from stepglass.logs.table import Table


@dataclass(slots=True)
class Eval:
    """An evaluation: `val_loss` may be None where a log elides it."""

    line: int
    iter: int
    train_loss: float | None = None
    val_loss: float | None = None
    val_se: float | None = None
    val_bpb: float | None = None
    time_ms: float | None = None
    stamp: float | None = None
    save_line: int | None = None  # of the checkpoint that followed it

    @property
    def val(self) -> float | None:
        """The figure to follow: a loss, or bits per byte."""
        return self.val_loss if self.val_loss is not None else self.val_bpb


@dataclass(slots=True)
class Save:
    """A checkpoint."""

    line: int
    iter: int | None = None
    time_ms: float | None = None
    stamp: float | None = None


@dataclass
class Event:
    """Something else that happened."""

    line: int
    name: str
    iter: int | None
    record: Record


@dataclass
class Segment:
    """One process's part of the log."""

    config: dict[str, Any] = field(default_factory=dict)
    config_lines: dict[str, int] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)  # parameters, device, vocab_size, ...
    fact_lines: dict[str, int] = field(default_factory=dict)
    table: Table = field(default_factory=Table)
    evals: list[Eval] = field(default_factory=list)
    saves: list[Save] = field(default_factory=list)
    # Of all of them: which iterations were boundaries must not be forgotten.
    eval_iters: "array[int]" = field(default_factory=lambda: array("q"))
    save_iters: "array[int]" = field(default_factory=lambda: array("q"))
    # Of how many one is kept.
    eval_stride: int = 1
    save_stride: int = 1
    events: list[Event] = field(default_factory=list)
    phases: dict[str, float] = field(default_factory=dict)  # ms, from logs that have them
    first_iter: int | None = None
    last_iter: int | None = None
    first_line: int | None = None
    last_line: int | None = None
    first_stamp: float | None = None
    last_stamp: float | None = None
    has_iter_numbers: bool = True
    nan_iter: int | None = None
    nan_line: int | None = None
    num_nan: int = 0
    last_finite: tuple[int, int, float] | None = None  # line, iter, loss
    bad_norm_line: int | None = None  # where a gradient norm was no number
    num_bad_norms: int = 0
    progress: tuple[int, float] | None = None  # iteration and seconds of a progress bar
    is_measured: bool = False  # an MFU was printed
    end: dict[str, Any] = field(default_factory=dict)
    end_line: int | None = None

    def is_empty(self) -> bool:
        return not len(self.table) and not self.evals

    @property
    def ran_out_of_memory(self) -> bool:
        return any(event.name == "oom" for event in self.events)

    def setting(self, name: str) -> Any:
        return self.config.get(name)
