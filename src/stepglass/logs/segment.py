"""The part of a log that one process wrote: iterations, evaluations, checkpoints, settings, events.

Every entry keeps its line number, counted from 1. A log may contain any number of settings, facts
and events, so a segment keeps a limited number of them and counts the rest.
"""

import math
from array import array
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from stepglass.logs.reader import Record
from stepglass.logs.table import Table

MOST_NAMES = 1000  # settings, and as many facts
MOST_EVENTS = 2000
MOST_KINDS = 100  # names of events to count
MOST_END_VALUES = 100
LONGEST_VALUE = 4096  # characters
MOST_SECONDS = 1e10
EXPLAINS = ("gc", "profiler")  # events that make the next iteration slow
# The rules need these settings. They are kept even if there are more than MOST_NAMES others.
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
    """An evaluation. `val_loss` is None if the log does not print it."""

    line: int
    iter: int
    train_loss: float | None = None
    val_loss: float | None = None
    val_se: float | None = None
    val_bpb: float | None = None
    time_ms: float | None = None
    stamp: float | None = None
    save_line: int | None = None  # line of the checkpoint after it
    set: str = ""  # name of the evaluation set, if the log has several
    metrics: dict[str, float] | None = None  # other figures of the same evaluation
    has_number: bool = True  # the log tells its iteration; if not, `iter` is only its place

    @property
    def val(self) -> float | None:
        """The value to compare: the validation loss, or bits per byte if there is no loss."""
        return self.val_loss if self.val_loss is not None else self.val_bpb


@dataclass(slots=True)
class Save:
    """A checkpoint."""

    line: int
    iter: int | None = None
    time_ms: float | None = None
    stamp: float | None = None


class Elapsed(NamedTuple):
    """What the trainer's own clock showed at an iteration."""

    line: int
    iter: int
    ms: float


@dataclass
class Event:
    """Anything else that the log reports, such as an error or a sample."""

    line: int
    name: str
    iter: int | None
    record: Record


@dataclass
class Segment:
    """The part of a log that one process wrote."""

    config: dict[str, Any] = field(default_factory=dict)
    config_lines: dict[str, int] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)  # parameters, device, vocab_size, ...
    fact_lines: dict[str, int] = field(default_factory=dict)
    table: Table = field(default_factory=Table)
    evals: list[Eval] = field(default_factory=list)
    saves: list[Save] = field(default_factory=list)
    # Iterations at which an evaluation or checkpoint happened, as long as the table keeps them.
    eval_iters: "array[int]" = field(default_factory=lambda: array("q"))
    save_iters: "array[int]" = field(default_factory=lambda: array("q"))
    eval_steps: "Counter[int]" = field(default_factory=Counter)  # iterations between evaluations
    # `evals` and `saves` keep every n-th entry.
    eval_stride: int = 1
    save_stride: int = 1
    # These count all entries, kept or not.
    num_evals: int = 0
    num_saves: int = 0
    num_printed_evals: int = 0  # evaluations whose iteration was printed too
    evals_ms: float = 0.0  # sum of the printed times
    saves_ms: float = 0.0
    events: list[Event] = field(default_factory=list)
    num_events: "Counter[str]" = field(default_factory=Counter)  # by name
    num_left_out: int = 0  # settings that were not kept
    is_explained: bool = False  # the last line says why the next iteration is slow
    phases: dict[str, float] = field(default_factory=dict)  # ms, if the log has phases
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
    bad_norm_line: int | None = None  # first NaN or infinite gradient norm
    num_bad_norms: int = 0
    progress: tuple[int, float] | None = None  # iteration and seconds of a progress bar
    first_elapsed: Elapsed | None = None  # the trainer's own clock, if the log prints one
    last_elapsed: Elapsed | None = None
    is_measured: bool = False  # an MFU was printed
    end: dict[str, Any] = field(default_factory=dict)
    end_line: int | None = None

    def is_empty(self) -> bool:
        return not len(self.table) and not self.evals

    @property
    def is_worth_keeping(self) -> bool:
        """Is there anything to explain: training, a summary of it, or why it did not begin?"""
        has_summary = "wall_ms" in self.end and {"train_loss", "steps_per_s"} & set(self.end)
        return not self.is_empty() or bool(has_summary) or self.ran_out_of_memory

    @property
    def ran_out_of_memory(self) -> bool:
        return any(event.name == "oom" for event in self.events)

    def note_loss(self, loss: float | None, iteration: int, line: int) -> None:
        """Remember the first loss that is not finite, and the last finite loss before it."""
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

    def note_elapsed(self, seconds: float | None, iteration: int, line: int) -> None:
        """Remember what the trainer's clock shows. If it goes back, it was reset."""
        if seconds is None or not 0 <= seconds < MOST_SECONDS:
            return
        now = Elapsed(line, iteration, 1000 * seconds)
        if self.last_elapsed is None or now.ms < self.last_elapsed.ms:
            self.first_elapsed = now
        self.last_elapsed = now

    def forget_numbers(self, table: Table) -> None:
        """A step has no number, so the run has none. If earlier steps had one, it was wrong: it
        came from a progress bar that was ahead of the lines. `table` is an empty one for them."""
        if self.has_iter_numbers and len(self.table):
            names = ("line", "loss", "lr", "grad_norm")
            rows = zip(*(self.table.column(name).tolist() for name in names), strict=True)
            for iteration, row in enumerate(rows):
                table.add({"iter": iteration, **dict(zip(names, row, strict=True))}, {})
            self.table = table
            self.first_iter, self.last_iter = 0, len(table) - 1
            self.first_elapsed = self.last_elapsed = self.progress = None
        self.has_iter_numbers = False

    def place_after_all(self, name: str, val_loss: float | None) -> int:
        """The place of an evaluation without a number, of the set `name`. Without any numbers, they
        are counted, so that two that differ stay apart."""
        place = self.last_iter or 0
        if self.last_iter is None:
            self.has_iter_numbers = False
        last = next((e for e in reversed(self.evals) if e.set == name), None)
        if last is None or last.iter < place or last.val_loss == val_loss or self.has_iter_numbers:
            return place
        return last.iter + 1

    def lacks_eval_of(self, iteration: int) -> bool:
        """Is this an earlier iteration without an evaluation? In forum posts, people often quote
        the iterations first and the evaluation that explains one of them later."""
        if self.last_iter is None or iteration >= self.last_iter:
            return False
        if len(self.table) > 100 or any(e.iter == iteration for e in self.evals):
            return False
        return bool((self.table.column("iter") == iteration).any())

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
            if len(self.end) < MOST_END_VALUES or name in self.end:
                self.end[name] = shortened(value)

    def add_event(self, event: Event) -> None:
        """Add an event. If there are too many, the middle ones are dropped: causes come first and
        the end of a run comes last."""
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
    """The value, cut to a readable length. A long dict keeps only its first two texts.

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
