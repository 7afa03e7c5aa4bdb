"""Reads our own run log in stretches of similar iterations.

Between two evaluations, `run.jsonl` has hundreds of iterations with the same keys. They are decoded
in one call and become columns at once, ten times as fast as one by one. Other lines (another kind,
a missing number, a NaN) are read one by one. Keys unknown to measure/records.py are ignored.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from operator import contains, itemgetter
from typing import Any, ClassVar

import numpy as np

from stepglass.logs.reader import Record
from stepglass.logs.table import Column, RowChoice
from stepglass.measure.clock import step_time
from stepglass.measure.records import IterRecord, required_keys

PREFIX = b'{"kind":"%s",' % IterRecord.kind.encode()
WORTH_IT = 4
STEP = "forward_backward"  # a phase that every update has
KEYS = set(required_keys(IterRecord))
# A stretch with a value outside these ranges is read one by one, and that reader decides.
RANGES = {
    "loss": (-1e9, 1e9),
    "lr": (1e-9, 1e6),
    "grad_norm": (-1e15, 1e15),
    "wall_ms": (1e-9, 1e10),
    "mfu": (1e-9, 1e3),
}
NUMBERS: set[type] = {float, int}
OR_NOTHING = NUMBERS | {type(None)}
MAY_LACK = ("grad_norm", "mfu")  # null without clipping, or if the device's peak is unknown
MOST_ITERS = 10**12
MOST_PHASES = 64


@dataclass
class Stretch:
    """Iterations with increasing numbers, as columns. Phases are in milliseconds, by name."""

    columns: dict[str, Column]
    phases: dict[str, Column]
    windows: ClassVar[float] = 1.0  # every time is that of one iteration

    def __len__(self) -> int:
        return len(self.times)

    @property
    def times(self) -> Column:
        return self.columns["time_ms"]

    @property
    def iters(self) -> Column:
        return self.columns["iter"]

    def mfu(self, rows: RowChoice) -> Column:
        return self.columns["mfu"][rows]

    def take(self, rows: RowChoice) -> dict[str, Column]:
        return {name: values[rows] for name, values in self.columns.items()}


def split(lines: list[bytes]) -> Iterator[tuple[int, int, Stretch | None]]:
    """The lines in order, as (first, end, stretch). If stretch is None, read them one by one."""
    start = 0
    while start < len(lines):
        is_iter = lines[start].startswith(PREFIX)
        end = start + 1
        while end < len(lines) and lines[end].startswith(PREFIX) == is_iter:
            end += 1
        worth_it = is_iter and end - start >= WORTH_IT
        yield start, end, read_stretch(lines[start:end]) if worth_it else None
        start = end


def read_stretch(lines: list[bytes]) -> Stretch | None:
    """Lines of iterations as columns, or None if one of them has an unexpected shape."""
    try:
        records = json.loads(b"[" + b",".join(lines) + b"]")
    except (ValueError, RecursionError):
        return None
    if len(records) != len(lines):
        return None
    try:
        return _columns(records)
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError):
        return None  # a value is missing, or not a number


def _columns(records: list[Record]) -> Stretch | None:
    if not all(record.keys() >= KEYS for record in records):
        return None
    num_device_clocks = sum(map(contains, records, repeat("device_phases")))
    if num_device_clocks not in (0, len(records)):
        return None
    has_device_clock = num_device_clocks > 0
    clock = "device_phases" if has_device_clock else "phases"
    if not all(STEP in record[clock] for record in records):
        return None
    iters = _numbers([record["iter"] for record in records], {int})
    if iters[0] < 0 or iters[-1] > MOST_ITERS or bool((np.diff(iters) <= 0).any()):
        return None
    columns = {"iter": iters}
    for name, (least, most) in RANGES.items():
        kinds = OR_NOTHING if name in MAY_LACK else NUMBERS
        columns[name] = column = _numbers([record[name] for record in records], kinds)
        if bool(((column != 0) & ((column < least) | (column > most))).any()):
            return None
    if not bool(np.isfinite(columns["loss"]).all()):
        return None
    phases = _phases([record["phases"] for record in records])
    timed = _phases([record["device_phases"] for record in records]) if has_device_clock else None
    step_ms = step_time(phases, timed)
    assert step_ms is not None, "every record has a part of a step"
    columns["step_ms"] = step_ms
    columns["mfu"] = 100 * columns["mfu"]
    columns["time_ms"] = columns.pop("wall_ms")
    if any("memory_bytes" in record for record in records):
        memory = [record.get("memory_bytes") for record in records]
        columns["memory_bytes"] = _numbers(memory, OR_NOTHING)
    return Stretch(columns, phases)


def _numbers(values: Sequence[Any], kinds: set[type]) -> Column:
    """A column of these kinds of values; None becomes NaN."""
    if not set(map(type, values)) <= kinds:
        raise TypeError
    return np.array(values, np.float64)


def _phases(tables: list[dict[str, float]]) -> dict[str, Column]:
    """One column per phase. It is 0 for an iteration that does not name the phase."""
    names = list(dict.fromkeys(chain.from_iterable(tables)))
    if len(names) > MOST_PHASES:
        raise ValueError
    if len(names) > 1 and all(len(table) == len(names) for table in tables):
        values = zip(*map(itemgetter(*names), tables), strict=True)  # faster than table.get
        columns = {
            name: _numbers(column, NUMBERS) for name, column in zip(names, values, strict=True)
        }
    else:
        columns = {
            name: _numbers([table.get(name, 0.0) for table in tables], NUMBERS) for name in names
        }
    if not all(bool(((c >= 0) & (c <= RANGES["wall_ms"][1])).all()) for c in columns.values()):
        raise ValueError
    return columns
