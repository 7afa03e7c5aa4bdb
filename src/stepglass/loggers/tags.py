"""The numbers that loggers get, by tag, and when each was made. docs/loggers.md lists the tags."""

import math
import time
from collections.abc import Iterator
from typing import Any

from stepglass.measure.clock import PHASES, STEP_PHASES
from stepglass.measure.run_log import Record
from stepglass.units import finite

ROW_GAP_MS = 100.0


def table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def scalars(record: Record, last_iter: Record) -> dict[str, float]:
    """The numbers in a record, by tag. An evaluation has nanoGPT's wandb keys; their `lr` and `mfu`
    are those of `last_iter`, the iteration before it.

    >>> scalars({"kind": "eval", "iter": 5, "train_loss": 2.5, "val_loss": None}, {"lr": 0.1})
    {'iter': 5.0, 'train/loss': 2.5, 'lr': 0.1}
    """
    if record["kind"] == "iter":
        found = _of_iteration(record)
    elif record["kind"] == "eval":
        found = {
            "iter": record["iter"],
            "train/loss": record.get("train_loss"),
            "val/loss": record.get("val_loss"),
            "lr": last_iter.get("lr"),
            "mfu": _percent(last_iter.get("mfu")),
        }
    elif record["kind"] == "checkpoint":
        found = {
            "checkpoint/stall_ms": record.get("stall_ms"),
            "checkpoint/background_ms": record.get("background_ms"),
        }
    else:
        found = {}
    return {tag: known for tag, value in found.items() if (known := finite(value)) is not None}


def _of_iteration(record: Record) -> dict[str, Any]:
    phases = table(record.get("phases"))
    # A GPU's own clock says what a step took; the host's says what it took to queue it.
    timed = table(record.get("device_phases")) or phases
    step_ms = sum(finite(timed.get(name)) or 0.0 for name in STEP_PHASES)
    tokens = finite(record.get("tokens"))
    return {
        "loss": record.get("loss"),
        "lr": record.get("lr"),
        "grad_norm": record.get("grad_norm"),
        "mfu": _percent(record.get("mfu")),
        "tokens_per_s": tokens / step_ms * 1000 if tokens and step_ms else None,
        "time/wall_ms": record.get("wall_ms"),
        "time/step_ms": step_ms or None,
        **{f"time/{phase}_ms": phases.get(phase) for phase in PHASES},
    }


def _percent(share: Any) -> float | None:
    known = finite(share)
    return None if known is None else 100 * known


class TimeOfDay:
    """When a record was made. The log has one time of day for each process and durations after it:
    iterations follow each other without a gap, from the moment the process's clock started.
    """

    def __init__(self) -> None:
        self._last_iter_at = time.time()
        self._since_s = 0.0  # in the window of the iteration that is still going on

    def of(self, record: Record) -> float:
        """Call with every record, in order."""
        seconds = (finite(record.get("wall_ms")) or 0.0) / 1000
        if record["kind"] == "start":
            self._last_iter_at = finite(record.get("time")) or self._last_iter_at
            self._since_s = 0.0
        elif record["kind"] == "event" and record.get("name") == "warmup":
            # Iteration 0's window holds the start-up, which was over when the log's time was read.
            startup_ms = finite(table(record.get("detail")).get("startup_ms")) or 0.0
            self._last_iter_at -= startup_ms / 1000
        elif record["kind"] == "iter":
            self._last_iter_at += seconds
            self._since_s = 0.0
        elif record["kind"] == "eval":
            self._since_s = seconds
        return self._last_iter_at + self._since_s


class ShownRows:
    """What goes to wandb and trackio: every evaluation and checkpoint, and of the iterations those
    that are printed, not more than ten a second. A row costs wandb a third of a millisecond, in the
    process that trains, and its charts show no more.
    """

    def __init__(self, log_interval: int) -> None:
        self._log_interval = log_interval
        self._last_iter: Record = {}
        self._since_row_ms = math.inf

    def of(self, records: list[Record]) -> Iterator[tuple[int, dict[str, float]]]:
        for record in records:
            if record["kind"] == "iter" and not self._is_shown(record):
                continue
            values = scalars(record, self._last_iter)
            if values:
                yield record["iter"], values

    def _is_shown(self, record: Record) -> bool:
        self._last_iter = record
        self._since_row_ms += finite(record.get("wall_ms")) or 0.0
        if record["iter"] % self._log_interval or self._since_row_ms < ROW_GAP_MS:
            return False
        self._since_row_ms = 0.0
        return True
