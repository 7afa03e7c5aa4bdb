"""The records of run.jsonl: all keys of the file, in the order of the file.

    log.write(EvalRecord(iter=400, wall_ms=549.2, train_loss=2.39, val_loss=2.43, ...))

The fields of a record class are its keys, and each field has a description. The writer, all
readers, the loggers and docs/run-log.md use these classes. The details of events are in
event_details.py. Other versions may write more keys or fewer. `parse_line` reads any line, and
`record_from` drops unknown keys and sets missing keys to None.
"""

import json
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache
from operator import attrgetter
from typing import Annotated, Any, ClassVar, Self, get_type_hints

SCHEMA = 1  # increased when readers of the previous schema would misunderstand the file
MOST_DIGITS = 16  # no integer that Stepglass writes has more


class Keyed:
    """Base class of records: converts between the fields and a dict of the run log."""

    __slots__ = ()

    def as_dict(self) -> dict[str, Any]:
        """The keys and values as in the file. Values are not copied, because this is called for
        every update and must be fast.
        """
        cls: Any = type(self)
        keys, values_of, optional = _layout(cls)
        found = dict(zip(keys, values_of(self), strict=True))
        for name in optional:
            if found[name] is None:
                del found[name]
        return found

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Self:
        """Make a record from a dict that was read from a file. The values are not checked and may
        have any type. Missing values are None.
        """
        return cls(**{f.name: found.get(_key_of(f.name)) for f in fields(cls)})  # type: ignore[arg-type]


def _key_of(name: str) -> str:
    return name.removesuffix("_")  # `from` cannot be the name of a field


@cache
def _layout(cls: Any) -> tuple[tuple[str, ...], Any, tuple[str, ...]]:
    """The keys of a class, a function that returns their values, and the optional keys."""
    names = [f.name for f in fields(cls)]
    if hasattr(cls, "kind"):
        names.insert(0, "kind")
    values_of = attrgetter(*names) if len(names) > 1 else lambda one: (getattr(one, names[0]),)
    optional = [_key_of(f.name) for f in fields(cls) if f.default is not MISSING]
    return tuple(map(_key_of, names)), values_of, tuple(optional)


def required_keys(cls: Any) -> list[str]:
    """The keys that every record of a class has, `kind` first."""
    keys, _, optional = _layout(cls)
    return [key for key in keys if key not in optional]


def meanings(cls: type[Any]) -> dict[str, str]:
    """What each key means, for the documentation."""
    hints = get_type_hints(cls, include_extras=True)
    return {_key_of(f.name): hints[f.name].__metadata__[0] for f in fields(cls)}


# -- the kinds of records ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class StartRecord(Keyed):
    """Written once by each process."""

    kind: ClassVar[str] = "start"
    schema: Annotated[int, "1"]
    time: Annotated[float, "seconds since 1970, the only time of day in the log"]
    run_id: Annotated[
        str | None,
        "names the run, the same after every resume; the run directory's `LOCK` has it too",
    ]
    argv: Annotated[list[str], "the command line"]
    config: Annotated[dict[str, Any], "every setting as resolved"]
    model: Annotated[dict[str, Any], "the model's shape, `parameters`, `flops_per_token`"]
    mfu_formula: Annotated[str, "what MFU means here"]
    peak_flops: Annotated[float | None, "the device's peak in FLOP/s, or null"]
    peak_source: Annotated[str, "where the peak comes from"]
    tokens_per_iter: Annotated[int, "tokens in an update"]
    data: Annotated[
        dict[str, Any],
        "token counts and hashes of both splits, and of the `mask` of [conversations]"
        "(use-your-model.md#train-on-conversations); `val_bytes_per_token`: bytes of text to a "
        "token of the validation split, or null",
    ]
    clock_ns_per_switch: Annotated[float, "what the clock costs at each phase edge"]
    device: Annotated[str, "the device's name"]
    device_type: Annotated[str, "`cpu`, `cuda` or `mps`"]
    dtype: Annotated[str, "the number format of the model's arithmetic"]
    compile: Annotated[bool, "whether the model is to be compiled"]
    replicas: Annotated[int, "copies of the model that share a batch"]
    threads: Annotated[int, "threads of each copy on a CPU"]
    matmul_precision: Annotated[str, "torch's setting for float32 products"]
    deterministic: Annotated[bool, "whether torch is restricted to deterministic algorithms"]
    processes: Annotated[int | None, "processes that train together, if there are several"] = None
    parallel: Annotated[str | None, "`ddp` or `fsdp`, if there are several processes"] = None
    cpu: Annotated[str | None, "on a CPU: which one"] = None
    cpu_capability: Annotated[str | None, "on a CPU: the instructions that torch uses on it"] = None
    math: Annotated[str | None, "on a CPU: its math libraries"] = None
    versions: Annotated[dict[str, str], "of Stepglass, torch, NumPy and Python"]


@dataclass(frozen=True, slots=True, kw_only=True)
class IterRecord(Keyed):
    """Written for each update."""

    kind: ClassVar[str] = "iter"
    iter: Annotated[int, "number of the update, from 0"]
    loss: Annotated[float, "mean over all micro-batches of the update"]
    lr: Annotated[float, "learning rate"]
    grad_norm: Annotated[float | None, "norm before clipping, null without clipping"]
    tokens: Annotated[int, "tokens in this update"]
    wall_ms: Annotated[float, "time since the record before, boundary included"]
    phases: Annotated[dict[str, float], "milliseconds by phase; they add up to `wall_ms`"]
    mfu: Annotated[float | None, "share of the peak (0.11 is 11 %) over the step's time, or null"]
    device_phases: Annotated[
        dict[str, float] | None,
        "the phases on the device's own clock, where it has one",
    ] = None
    memory_bytes: Annotated[
        int | None,
        "in every sixteenth record, where it is known: what torch holds on the GPU, or what the "
        "process has resident on a CPU (other replicas have memory of their own)",
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalRecord(Keyed):
    """Written for each evaluation."""

    kind: ClassVar[str] = "eval"
    iter: Annotated[int, "updates done: the losses describe the weights after them"]
    wall_ms: Annotated[float, "what the evaluation took"]
    train_loss: Annotated[float, "on fixed windows of the training split"]
    val_loss: Annotated[float, "on fixed windows of the validation split"]
    val_se: Annotated[float | None, "standard error of `val_loss` over its windows"]
    windows: Annotated[int, "how many of the validation split were scored"]
    val_bits_per_byte: Annotated[
        float | None, "`val_loss` in bits for each byte of text, where tokens stand for text"
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointRecord(Keyed):
    """Written once the checkpoint is committed."""

    kind: ClassVar[str] = "checkpoint"
    iter: Annotated[int, "updates done when it was saved"]
    stall_ms: Annotated[float, "how long training waited"]
    background_ms: Annotated[
        float,
        "how long the writer took beside training; 0 for a save that training waited for",
    ]
    bytes: Annotated[int, "its size"]
    path: Annotated[str, "relative to the run directory"]
    is_best: Annotated[bool, "whether its validation loss was the best so far"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRecord(Keyed):
    """Written for what happens now and then."""

    kind: ClassVar[str] = "event"
    name: Annotated[str, "which event it is"]
    iter: Annotated[int, "updates done when it happened"]
    detail: Annotated[dict[str, Any], "more about it; the keys depend on the name"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EndRecord(Keyed):
    """Written when the process ends in good order."""

    kind: ClassVar[str] = "end"
    reason: Annotated[str, "`finished`, `target`, `patience`, `signal`, `failed`, `oom` or `error`"]
    iter: Annotated[int, "updates done"]
    ledger: Annotated[
        dict[str, Any],
        "`wall_ms` and `phases` of the whole process, which add up; on a GPU also "
        "`device_phases`, and `device_behind`: the share of updates at whose end the device was "
        "behind the host",
    ]
    background: Annotated[
        dict[str, Any],
        "beside the ledger, not part of its sum: `checkpoint_writer_ms`, `saves`, `failed_saves`",
    ]


GOOD_ENDINGS = ("finished", "target", "patience", "signal")
BAD_ENDINGS = ("failed", "oom", "error")

RunRecord = StartRecord | IterRecord | EvalRecord | CheckpointRecord | EventRecord | EndRecord
KINDS: dict[str, type[RunRecord]] = {
    cls.kind: cls
    for cls in (StartRecord, IterRecord, EvalRecord, CheckpointRecord, EventRecord, EndRecord)
}


# -- parts of an end record ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerTotals(Keyed):
    """The time per phase of a whole process: `ledger` of an end record."""

    wall_ms: Annotated[float, "since its clock started"]
    phases: Annotated[dict[str, float], "milliseconds by phase; they add up to `wall_ms`"]
    device_phases: Annotated[
        dict[str, float] | None, "the updates' phases on the device's own clock, where it has one"
    ] = None
    device_behind: Annotated[
        float | None, "share of updates at whose end the device was behind the host"
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Background(Keyed):
    """What the checkpoint writer did during training: `background` of an end record."""

    checkpoint_writer_ms: Annotated[float, "how long it worked"]
    saves: Annotated[int, "checkpoints written"]
    failed_saves: Annotated[int, "checkpoints that could not be written"]


# -- reading -------------------------------------------------------------------------------------


def parse_line(line: str | bytes) -> dict[str, Any] | None:
    """The record in a line of the log, or None if the line is incomplete or not a record."""
    try:
        found = json.loads(line, parse_int=whole)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and isinstance(found.get("kind"), str) else None


def record_from(found: Mapping[str, Any]) -> RunRecord | None:
    """Make a record from the result of `parse_line`, or None if its kind is unknown."""
    cls = KINDS.get(found["kind"])
    return cls.from_dict(found) if cls is not None else None


def whole(text: str) -> int | float:
    """Parse a JSON integer, which may have any length. A very long one becomes a float.

    >>> whole("42"), whole("9" * 400)
    (42, inf)
    """
    return int(text) if len(text) <= MOST_DIGITS else float(text)
