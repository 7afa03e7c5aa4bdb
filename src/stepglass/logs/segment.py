"""One process's part of a log: its iterations, evaluations, checkpoints, settings and events.

Everything keeps the number of the line it stands on, from 1. A log may go on saying new things for
ever: what a segment keeps of settings, facts and events is bounded; what is left out is counted.
"""

import math
from array import array
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from stepglass.logs.reader import Record
from stepglass.logs.table import Table

MOST_NAMES = 1000  # of settings, and of facts
MOST_EVENTS = 2000
MOST_KINDS = 100  # of events that are counted by name
MOST_SAID_AT_THE_END = 100
LONGEST_VALUE = 4096  # characters
EXPLAINS = ("gc", "profiler")  # events that make the next iteration slow
# What the rules ask for: kept however many other settings came before.
ASKED_FOR = {
    "always_save_checkpoint",
    "batch_size",
    "block_size",
    "compile",
    "dataset",
    "decay_lr",
    "device",
    "dropout",
    "dtype",
    "embedding_lr",
    "eval_interval",
    "eval_iters",
    "grad_clip",
    "gradient_accumulation_steps",
    "init_from",
    "learning_rate",
    "lr_decay_iters",
    "lr_schedule",
    "max_iters",
    "min_lr",
    "model",
    "muon_lr",
    "n_embd",
    "n_head",
    "n_layer",
    "optimizer",
    "vocab_size",
    "warmup_iters",
}


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
    # The iterations of all boundaries, as far as those iterations are kept.
    eval_iters: "array[int]" = field(default_factory=lambda: array("q"))
    save_iters: "array[int]" = field(default_factory=lambda: array("q"))
    eval_steps: "Counter[int]" = field(default_factory=Counter)  # from one evaluation to the next
    # One in so many is kept in `evals` and `saves`.
    eval_stride: int = 1
    save_stride: int = 1
    # These count all of them, kept or not.
    num_evals: int = 0
    num_saves: int = 0
    num_printed_evals: int = 0  # whose iteration was printed after them
    evals_ms: float = 0.0  # what they say they took
    saves_ms: float = 0.0
    events: list[Event] = field(default_factory=list)
    num_events: "Counter[str]" = field(default_factory=Counter)  # by name
    num_left_out: int = 0  # lines with a setting that was not kept
    is_explained: bool = False  # the last line says why the next iteration is slow
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
    bad_norm_line: int | None = None  # where a gradient norm was NaN or infinite
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

    def note_loss(self, loss: float | None, iteration: int, line: int) -> None:
        """Remember the last loss that is a number before the first that is not."""
        if loss is None:
            return
        if not math.isfinite(loss):
            self.num_nan += 1
            if self.nan_line is None:
                self.nan_iter, self.nan_line = iteration, line
        elif not self.num_nan:
            self.last_finite = (line, iteration, loss)

    def note_norm(self, norm: float | None, line: int) -> None:
        if norm is not None and not math.isfinite(norm):
            self.num_bad_norms += 1
            self.bad_norm_line = self.bad_norm_line or line

    def setting(self, name: str) -> Any:
        return self.config.get(name)

    def add_setting(self, name: str, value: Any, line: int) -> None:
        if len(self.config) < MOST_NAMES or name in self.config or name in ASKED_FOR:
            self.config[name] = shortened(value)
            self.config_lines[name] = line
        else:
            self.num_left_out += 1

    def add_fact(self, name: str, value: Any, line: int) -> None:
        if len(self.facts) < MOST_NAMES or name in self.facts:
            self.facts[name] = shortened(value)
            self.fact_lines[name] = line

    def add_end(self, said: Record) -> None:
        for name, value in said.items():
            if len(self.end) < MOST_SAID_AT_THE_END or name in self.end:
                self.end[name] = shortened(value)

    def add_event(self, event: Event) -> None:
        """The first and the last events are kept: causes come first, the end of a run last."""
        self.is_explained |= event.name in EXPLAINS
        if event.name in self.num_events or len(self.num_events) < MOST_KINDS:
            self.num_events[event.name] += 1
        event.record = {name: shortened(value) for name, value in event.record.items()}
        self.events.append(event)
        self.limit_events(MOST_EVENTS)

    def limit_events(self, most: int) -> None:
        surplus = len(self.events) - most
        if surplus > 0:
            del self.events[most // 2 : most // 2 + surplus]


def shortened(value: Any) -> Any:
    """As much of a value as anybody would read. Of a nested value, its texts.

    >>> shortened({"text": "ab", "of": {"x": 1}}), len(shortened("x" * 9999))
    ({'text': 'ab', 'of': {'x': 1}}, 4096)
    """
    if isinstance(value, str):
        return value[:LONGEST_VALUE]
    if not isinstance(value, dict | list) or len(repr(value)) <= LONGEST_VALUE:
        return value
    if isinstance(value, list):
        return repr(value)[:LONGEST_VALUE]
    texts = {str(k)[:100]: v[:LONGEST_VALUE] for k, v in value.items() if isinstance(v, str)}
    return dict(list(texts.items())[:2])
