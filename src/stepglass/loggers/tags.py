"""The numbers for loggers, by tag, and the time of each. docs/loggers.md lists the tags."""

import math
import time
from collections.abc import Iterator
from typing import Any

from stepglass.measure.clock import PHASES, step_time
from stepglass.measure.event_details import WarmUpEvent
from stepglass.measure.records import (
    CheckpointRecord,
    EvalRecord,
    EventRecord,
    IterRecord,
    RunRecord,
    StartRecord,
)
from stepglass.units import finite

ROW_GAP_MS = 100.0


def scalars(record: RunRecord, last_iter: IterRecord | None = None) -> dict[str, float]:
    """The numbers in a record, by tag. An evaluation has the same keys as in nanoGPT's wandb log;
    its `lr` and `mfu` come from `last_iter`, the iteration before it.
    """
    match record:
        case IterRecord():
            found = _of_iteration(record)
        case EvalRecord():
            found = {
                "iter": record.iter,
                "train/loss": record.train_loss,
                "val/loss": record.val_loss,
                "lr": None if last_iter is None else last_iter.lr,
                "mfu": None if last_iter is None else _percent(last_iter.mfu),
            }
        case CheckpointRecord():
            found = {
                "checkpoint/stall_ms": record.stall_ms,
                "checkpoint/background_ms": record.background_ms,
            }
        case _:
            found = {}
    return _finite_only(found)


def logged_step(record: RunRecord) -> int:
    """The iteration that a record's numbers belong to."""
    assert not isinstance(record, StartRecord), "it has no numbers"
    return record.iter


def _of_iteration(record: IterRecord) -> dict[str, Any]:
    phases = _finite_only(record.phases)
    step_ms = step_time(phases, _finite_only(record.device_phases))
    tokens = finite(record.tokens)
    return {
        "loss": record.loss,
        "lr": record.lr,
        "grad_norm": record.grad_norm,
        "mfu": _percent(record.mfu),
        "tokens_per_s": tokens / step_ms * 1000 if tokens and step_ms else None,
        "time/wall_ms": record.wall_ms,
        "time/step_ms": step_ms or None,
        **{f"time/{phase}_ms": phases.get(phase) for phase in PHASES},
    }


def _finite_only(values: Any) -> dict[str, float]:
    """Only the values that are finite numbers. In a log that was read from a file, values may have
    any type."""
    pairs = values.items() if isinstance(values, dict) else ()
    return {name: known for name, value in pairs if (known := finite(value)) is not None}


def _percent(share: Any) -> float | None:
    known = finite(share)
    return None if known is None else 100 * known


class TimeOfDay:
    """Computes the time of day of each record. The log has only one time of day per process, when
    it started, and durations after that. Iterations follow each other without gaps, so the
    durations can be added up.
    """

    def __init__(self) -> None:
        self._last_iter_at = time.time()
        self._since_s = 0.0  # seconds since the last iteration ended

    def of(self, record: RunRecord) -> float:
        """The time of a record. Call this with every record, in order."""
        match record:
            case StartRecord():
                self._last_iter_at = finite(record.time) or self._last_iter_at
                self._since_s = 0.0
            case EventRecord(name=WarmUpEvent.event_name, detail=dict() as detail):
                # The window of iteration 0 includes the start-up, but the time of day in the log
                # was read after the start-up.
                startup_ms = finite(WarmUpEvent.from_dict(detail).startup_ms) or 0.0
                self._last_iter_at -= startup_ms / 1000
            case IterRecord():
                self._last_iter_at += (finite(record.wall_ms) or 0.0) / 1000
                self._since_s = 0.0
            case EvalRecord():
                self._since_s = (finite(record.wall_ms) or 0.0) / 1000
        return self._last_iter_at + self._since_s


class ShownRows:
    """Selects the rows for wandb and trackio: every evaluation and checkpoint, and the printed
    iterations, but at most ten per second. A row takes wandb a third of a millisecond in the
    training process, and its charts would not show more rows.
    """

    def __init__(self, log_interval: int) -> None:
        self._log_interval = log_interval
        self._last_iter: IterRecord | None = None
        self._since_row_ms = math.inf

    def of(self, records: list[RunRecord]) -> Iterator[tuple[int, dict[str, float]]]:
        for record in records:
            if isinstance(record, IterRecord) and not self._is_shown(record):
                continue
            values = scalars(record, self._last_iter)
            if values:
                yield logged_step(record), values

    def _is_shown(self, record: IterRecord) -> bool:
        self._last_iter = record
        self._since_row_ms += finite(record.wall_ms) or 0.0
        if record.iter % self._log_interval or self._since_row_ms < ROW_GAP_MS:
            return False
        self._since_row_ms = 0.0
        return True
