"""Reads our own run log, run.jsonl, line by line.

    {"kind":"iter","iter":400,"loss":2.42,"wall_ms":598.1,"phases":{"data":0.3,"eval":549.2,...}}

An iteration's `wall_ms` includes the evaluation and checkpoint before it. The keys are defined in
measure/records.py; other keys are ignored.
"""

from typing import Any

from stepglass.logs.log_format import LogFormat
from stepglass.logs.reader import Record
from stepglass.measure.clock import step_time
from stepglass.measure.event_details import OutOfMemoryEvent, PeakEvent, RanksEvent
from stepglass.measure.records import (
    CheckpointRecord,
    EndRecord,
    EvalRecord,
    EventRecord,
    IterRecord,
    LedgerTotals,
    RunRecord,
    StartRecord,
    parse_line,
    record_from,
)

# Other programs may write records with the same `kind`. Only ours have this key as well.
OUR_KEYS = {
    StartRecord.kind: "schema",
    IterRecord.kind: "wall_ms",
    EvalRecord.kind: "wall_ms",
    CheckpointRecord.kind: "stall_ms",
    EventRecord.kind: "name",
    EndRecord.kind: "reason",
}
FACTS = (
    "tokens_per_iter",
    "device",
    "device_type",
    "dtype",
    "compile",
    "threads",
    "replicas",
    "processes",
    "parallel",
    "peak_source",
    "mfu_formula",
    "versions",
    "argv",
    "time",
)  # of a start record, copied unchanged

RUN_LOG_FORMAT = LogFormat(
    "stepglass",
    time_holds_eval=True,
    is_run_log=True,
    times_evals_apart=True,
    prints_saves=True,
    mfu_is_of_own_device=True,
    has_nanogpt_settings=True,
    evaluates_same_windows=True,
    saves_in_background=True,
)


class RunLogReader:
    """Reads run.jsonl."""

    format = RUN_LOG_FORMAT

    def read(self, text: str) -> list[Record]:
        if not text.startswith("{") or '"kind"' not in text:
            return []
        found = parse_line(text)
        if found is None or OUR_KEYS.get(found["kind"]) not in found:
            return []
        record = record_from(found)
        is_counted = isinstance(record, IterRecord | EvalRecord | CheckpointRecord)
        if record is None or (is_counted and type(found.get("iter")) is not int):
            return []
        return [read_record(record), *_facts_of_event(record)]


def _facts_of_event(record: RunRecord) -> list[Record]:
    """What an event says anew that the start record has said: the peak, measured again."""
    if not isinstance(record, EventRecord) or record.name != PeakEvent.event_name:
        return []
    said = PeakEvent.from_dict(_table(record.detail))
    peak = real(said.peak_flops)
    source = said.peak_source if isinstance(said.peak_source, str) else None
    if peak is None:
        return []
    return [{"kind": "start", "peak_tflops": peak / 1e12, "peak_source": source}]


def read_record(record: RunRecord) -> Record:
    """Convert a record to the form that all readers use."""
    match record:
        case StartRecord():
            return _start(record)
        case IterRecord():
            return _iteration(record)
        case EvalRecord():
            losses = {
                key: real(getattr(record, key)) for key in ("train_loss", "val_loss", "val_se")
            }
            return {**record.as_dict(), **losses, "time_ms": real(record.wall_ms)}
        case CheckpointRecord():
            return {**record.as_dict(), "time_ms": real(record.stall_ms)}
        case EventRecord():
            return _event(record)
        case EndRecord():
            ledger = LedgerTotals.from_dict(_table(record.ledger))
            return {**record.as_dict(), "wall_ms": real(ledger.wall_ms)}


def _start(record: StartRecord) -> Record:
    model, data = _table(record.model), _table(record.data)
    peak = real(record.peak_flops)
    config = _table(record.config)
    # The values that `auto` was resolved to.
    chosen = {"device": record.device_type, "dtype": record.dtype, "compile": record.compile}
    for key, value in chosen.items():
        if config.get(key) == "auto" and value is not None:
            config = {**config, key: value}
    return {
        "kind": "start",
        "config": config,
        "parameters": real(model.get("parameters")),
        "flops_per_token": real(model.get("flops_per_token")),
        "vocab_size": model.get("vocab_size", data.get("vocab_size")),
        "train_tokens": real(_table(data.get("train")).get("tokens")),
        "val_bytes_per_token": real(data.get("val_bytes_per_token")),
        "peak_tflops": None if peak is None else peak / 1e12,
        **{key: getattr(record, key) for key in FACTS},
    }


def _iteration(record: IterRecord) -> Record:
    mfu = real(record.mfu)
    phases = _numbers(record.phases)
    found = {key: real(value) for key, value in record.as_dict().items()}
    return {
        **found,
        "kind": "iter",
        "iter": record.iter,
        "time_ms": found["wall_ms"],
        "step_ms": step_time(phases, _numbers(record.device_phases)),
        "phases": phases,
        "mfu": None if mfu is None else 100 * mfu,
    }


def _event(record: EventRecord) -> Record:
    if record.name == OutOfMemoryEvent.event_name:
        message = OutOfMemoryEvent.from_dict(_table(record.detail)).message
        if isinstance(message, str):
            return {**record.as_dict(), **out_of_memory_record(message)}
    if record.name == RanksEvent.event_name:
        return {**_rank_times(_table(record.detail)), "iter": record.iter}
    return {**record.as_dict(), "name": str(record.name)}


def _rank_times(detail: dict[str, Any]) -> Record:
    from stepglass.logs.rank_times import read_rank_times  # noqa: PLC0415  only several processes have it

    return {"kind": "event", "name": RanksEvent.event_name, "times": read_rank_times(detail)}


def out_of_memory_record(text: str) -> Record:
    """The event of an out-of-memory message."""
    from stepglass.logs.events import out_of_memory_event  # noqa: PLC0415  rarely needed, slow to import

    return out_of_memory_event(text)


def real(value: object) -> float | None:
    """A JSON number as a float, or None if the value is not a number."""
    return None if isinstance(value, bool) or not isinstance(value, int | float) else float(value)


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _numbers(value: Any) -> dict[str, float]:
    return {key: ms for key, item in _table(value).items() if (ms := real(item)) is not None}
