"""Our own two logs: run.jsonl, and the lines of the console.

    {"kind":"iter","iter":400,"loss":2.42,"wall_ms":598.1,"phases":{"data":0.3,"eval":549.2,...}}

    step 400: train loss 2.3873, val loss 2.4270
    eval 400: 549.23ms, val loss 2.4270 ± 0.0149 (240 windows)
    iter 400: loss 2.4199, time 44.84ms, mfu 49.22%
    checkpoint 400: stalled 4.11ms, written in background 1.5s, 9.7 MB, the best so far

In the run log an iteration's `wall_ms` holds the evaluation and checkpoint before it. On the
console `time` is the training step alone, and MFU is of the device's own peak.
"""

import json
import math
import re
from typing import Any

from stepglass.logs.formats.nanogpt import NanoGPT
from stepglass.logs.reader import NUMBER, Record, number
from stepglass.measure.clock import PHASES, STEP_PHASES

KINDS = {
    "start": "schema",
    "iter": "wall_ms",
    "eval": "wall_ms",
    "checkpoint": "stall_ms",
    "event": "name",
    "end": "reason",
}  # and a key by which a record of ours is told from another program's


class RunLog:
    """Reads run.jsonl."""

    name = "stepglass"
    time_holds_eval = True

    def read(self, text: str) -> list[Record]:
        if not text.startswith("{") or '"kind"' not in text:
            return []
        try:
            record = json.loads(text, parse_int=whole)
        except (ValueError, RecursionError):
            return []
        kind = record.get("kind") if isinstance(record, dict) else None
        if not isinstance(kind, str) or KINDS.get(kind) not in record:
            return []
        if kind in ("iter", "eval", "checkpoint") and type(record.get("iter")) is not int:
            return []
        return [getattr(self, f"_{kind}")(record)]

    def _start(self, record: Record) -> Record:
        model, data = _table(record, "model"), _table(record, "data")
        peak = real(record.get("peak_flops"))
        config = _table(record, "config")
        chosen = {**record, "device": record.get("device_type")}  # what `auto` came to
        for key in ("device", "dtype", "compile"):
            if config.get(key) == "auto" and chosen.get(key) is not None:
                config = {**config, key: chosen[key]}
        kept = ["tokens_per_iter", "device", "device_type", "dtype", "compile", "threads"]
        kept += ["replicas", "peak_source", "mfu_formula", "versions", "argv", "time"]
        return {
            "kind": "start",
            "config": config,
            "parameters": real(model.get("parameters")),
            "flops_per_token": real(model.get("flops_per_token")),
            "vocab_size": model.get("vocab_size", data.get("vocab_size")),
            "train_tokens": real(_table(data, "train").get("tokens")),
            "peak_tflops": None if peak is None else peak / 1e12,
            **{key: record.get(key) for key in kept},
        }

    def _iter(self, record: Record) -> Record:
        # A GPU's own clock says what a step took; the host's says what it took to queue it.
        phases = _table(record, "device_phases") or _table(record, "phases")
        mfu = real(record.get("mfu"))
        step = [real(phases.get(name)) for name in STEP_PHASES if name in phases]
        return {
            **{key: real(value) for key, value in record.items() if not isinstance(value, dict)},
            "kind": "iter",
            "iter": record["iter"],
            "loss": real(record.get("loss")),
            "time_ms": real(record["wall_ms"]),
            "step_ms": sum(ms or 0.0 for ms in step) if step else None,
            "phases": {
                name: ms for name, ms in _table(record, "phases").items() if real(ms) is not None
            },
            "mfu": None if mfu is None else 100 * mfu,
        }

    def _eval(self, record: Record) -> Record:
        losses = {key: real(record.get(key)) for key in ("train_loss", "val_loss", "val_se")}
        return {**record, **losses, "time_ms": real(record["wall_ms"])}

    def _checkpoint(self, record: Record) -> Record:
        return {**record, "time_ms": real(record["stall_ms"])}

    def _event(self, record: Record) -> Record:
        message = _table(record, "detail").get("message")
        if record["name"] == "oom" and isinstance(message, str):
            return {**record, **out_of_memory(message)}
        return {**record, "name": str(record["name"])}

    def _end(self, record: Record) -> Record:
        return {**record, "wall_ms": real(_table(record, "ledger").get("wall_ms"))}


def whole(text: str) -> int | float:
    """An integer of JSON. One that no counter reaches becomes a float: it may be any size.

    >>> whole("42"), whole("9" * 400)
    (42, inf)
    """
    return int(text) if len(text) <= 16 else float(text)


def real(value: object) -> float | None:
    """A number of JSON as a float, or None if it is none."""
    return None if isinstance(value, bool) or not isinstance(value, int | float) else float(value)


def _table(record: Record, key: str) -> dict[str, Any]:
    value = record.get(key)
    return value if isinstance(value, dict) else {}


# -- the console ---------------------------------------------------------------------------------

DURATION = rf"(?:\d{{1,9}}h \d\dm|\d{{1,9}}m \d\ds|{NUMBER}m?s|n/a)"
EVAL = re.compile(
    rf"(?<![\w/-])eval (?P<iter>\d{{1,15}}): (?P<time>{DURATION}), "
    rf"val loss (?P<val>{NUMBER}|n/a) ± (?P<se>{NUMBER}|n/a) \((?P<windows>\d{{1,12}}) windows\)"
)
SAVED = re.compile(
    rf"(?<![\w/-])checkpoint (?P<iter>\d{{1,15}}): stalled (?P<stall>{DURATION})"
    rf"(?:, written in background (?P<back>{DURATION}))?"
    rf"(?:, (?P<size>{NUMBER}) (?P<unit>[kMGT]?B))?(?P<best>, the best so far)?"
)
WARM_UP = re.compile(
    rf"\bwarm-up: start-up (?P<startup>{DURATION}), (?:compile (?P<compile>{DURATION}), )?"
    rf"first batch (?P<first_batch>{DURATION})"
)
WAITED = re.compile(rf"\bwaited (?P<wait>{DURATION}) for checkpoint (?P<iter>\d{{1,15}}) to be")
FAILED = re.compile(
    r"\bwarning: checkpoint (?P<iter>\d{1,15}) failed, the \w+ so far: (?P<why>.{0,500})"
)
COMPILE_FAILED = re.compile(r"\bcompile failed: (?P<why>.{0,300}?); going on without it")
STOPPED = re.compile(r"\bstopped by (?P<signal>SIG\w+) after (?P<iter>\d{1,15}) updates")
RESUMED = re.compile(
    r"\bResuming training from .{1,500}?: \S{1,100}, (?P<iter>\d{1,15}) updates done"
)
NO_MEMORY = re.compile(r"ran out of memory at step (?P<iter>\d{1,15}) with batch_size=")
DEVICE = re.compile(r"(?<![\w.])device: (?P<type>cpu|mps|cuda(?::\d+)?) \((?P<name>.{1,100}?)\): ")
DTYPE = re.compile(r"(?<![\w.])dtype: (?P<dtype>float32|float16|bfloat16): ")
COMPILE = re.compile(r"(?<![\w.])compile: (?P<compile>True|False): ")
PEAK = re.compile(rf"\bpeak for MFU: .{{0,200}}?(?P<rate>{NUMBER}) (?P<unit>[TG])FLOP/s")
DATA = re.compile(
    r": train (?P<tokens>[\d,]{1,30}) tokens, val .{0,100}? vocabulary (?P<vocab>[\d,]{1,15})"
)
TABLE = "where the time went:"
ROW = re.compile(
    rf"(?P<phase>{'|'.join(PHASES)}|wall clock)\s+(?P<s>[\d,]{{1,20}}\.\d\d)s\s+{NUMBER}%(?:\s|$)"
)
BYTES = {"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
LONGEST = 2000  # no line of nanoGPT's or ours has more
LAST_ITER = 10**15
UNIT_MS = {"h": 3_600_000.0, "m": 60_000.0, "s": 1000.0, "ms": 1.0}
# Every line of ours has one of these; the rest are nanoGPT's.
MARKS = re.compile(
    r"eval \d|checkpoint \d|warm-up: |compile|stopped by|updates done|ran out of memory|device: "
    r"|dtype: |peak for MFU|vocabulary|where the time went"
)


def out_of_memory(text: str) -> Record:
    from stepglass.logs.events import memory  # noqa: PLC0415  a rare line, and many patterns

    return memory(text)


class Console:
    """Reads nanoGPT's console and ours, which is nanoGPT's and more.

    A log is nanoGPT's until a line comes that only we print: from then on `time` holds no
    evaluation.
    """

    def __init__(self) -> None:
        self.name = "nanogpt"
        self.time_holds_eval = True
        self._nanogpt = NanoGPT()
        self._held: Record | None = None  # losses of a `step` line whose `eval` line is to come
        self._ledger: dict[str, float] | None = None  # while its table is being read

    @property
    def is_ours(self) -> bool:
        return self.name == "stepglass"

    def read(self, text: str) -> list[Record]:
        text = text[:LONGEST]
        if self._ledger is not None and (found := ROW.search(text)):
            return self._row(found["phase"], 1000 * (number(found["s"]) or 0.0))
        # Most lines are iterations: nothing of ours begins like one.
        if text[:5] != "iter " and MARKS.search(text) and (record := self._ours(text)):
            self.name, self.time_holds_eval = "stepglass", False
            return [*self.flush(), record]
        records = self._nanogpt.read(text)
        if any((record.get("iter") or 0) > LAST_ITER for record in records):
            return []
        if not records or not self.is_ours:
            return records
        if records[0]["kind"] == "eval":
            before = self.flush()
            self._held = records[0]
            return before
        if records[0]["kind"] == "checkpoint":
            return []  # it is said again, with its time, once it is on disk
        return self.flush() + records

    def flush(self) -> list[Record]:
        """An evaluation whose second line has not come."""
        held, self._held = self._held, None
        return [held] if held is not None else []

    def _row(self, phase: str, ms: float) -> list[Record]:
        assert self._ledger is not None
        if phase != "wall clock":
            self._ledger[phase] = ms
            return []
        phases, self._ledger = self._ledger, None
        ledger = {"wall_ms": ms, "phases": phases}
        return [*self.flush(), {"kind": "end", "wall_ms": ms, "ledger": ledger}]

    def _ours(self, text: str) -> Record | None:
        if found := EVAL.search(text):
            held, self._held = self._held, None
            is_same = held is not None and held["iter"] == int(found["iter"])
            return {
                "kind": "eval",
                "iter": int(found["iter"]),
                "train_loss": held["train_loss"] if held is not None and is_same else None,
                "val_loss": number(found["val"]),
                "val_se": number(found["se"]),
                "windows": int(found["windows"]),
                "time_ms": milliseconds(found["time"]),
            }
        if found := SAVED.search(text):
            size = number(found["size"])
            return {
                "kind": "checkpoint",
                "iter": int(found["iter"]),
                "time_ms": milliseconds(found["stall"]),
                "background_ms": milliseconds(found["back"]) if found["back"] else 0.0,
                "bytes": None if size is None else size * BYTES[found["unit"]],
                "is_best": found["best"] is not None,
            }
        if text.endswith(TABLE):
            self._ledger = {}
            return {"kind": "event", "name": "ledger", "detail": {}}
        return event(text) or fact(text)


def event(text: str) -> Record | None:
    """What happened, in the shape that the run log gives it."""
    if found := WARM_UP.search(text):
        detail: dict[str, Any] = {
            f"{name}_ms": milliseconds(duration) for name, duration in found.groupdict().items()
        }
        return {"kind": "event", "name": "warmup", "iter": 0, "detail": detail}
    if found := WAITED.search(text):
        detail = {"step": int(found["iter"]), "wait_ms": milliseconds(found["wait"])}
        return {"kind": "event", "name": "checkpoint_wait", "detail": detail}
    if found := FAILED.search(text):
        detail = {"step": int(found["iter"]), "reason": found["why"]}
        return {"kind": "event", "name": "checkpoint_failed", "detail": detail}
    if found := COMPILE_FAILED.search(text):
        return {"kind": "event", "name": "compile_failed", "detail": {"reason": found["why"]}}
    if found := STOPPED.search(text):
        detail = {"name": found["signal"]}
        return {"kind": "event", "name": "signal", "iter": int(found["iter"]), "detail": detail}
    if found := NO_MEMORY.search(text):
        return {**out_of_memory(text), "iter": int(found["iter"])}
    return None


def fact(text: str) -> Record | None:
    """What the run said of its machine and its data before it began."""
    if found := DEVICE.search(text):
        kind = found["type"].partition(":")[0]
        return {"kind": "start", "device": found["name"], "device_type": kind}
    if found := DTYPE.search(text):
        return {"kind": "start", "dtype": found["dtype"]}
    if found := COMPILE.search(text):
        return {"kind": "start", "compile": found["compile"] == "True"}
    if found := PEAK.search(text):
        rate = (number(found["rate"]) or 0.0) / (1 if found["unit"] == "T" else 1000)
        return {"kind": "start", "peak_tflops": rate}
    if "peak for MFU: " in text:
        return {"kind": "start", "peak_tflops": None}
    if found := RESUMED.search(text):
        return {"kind": "start", "init_from": "resume", "resumed_at": int(found["iter"])}
    if found := DATA.search(text):
        tokens, vocab_size = number(found["tokens"]), number(found["vocab"])
        return {"kind": "start", "train_tokens": tokens, "vocab_size": vocab_size}
    return None


def milliseconds(text: str | None) -> float | None:
    """What `units.duration` printed.

    >>> [milliseconds(x) for x in ("0.01ms", "5.7s", "1m 15s", "1h 02m", "n/a")]
    [0.01, 5700.0, 75000.0, 3720000.0, None]
    """
    total = 0.0
    for part in (text or UNKNOWN).split():
        unit = part.lstrip("0123456789.,+-e")
        value = number(part.removesuffix(unit)) if unit in UNIT_MS else None
        if value is None or not math.isfinite(value):
            return None
        total += value * UNIT_MS[unit]
    return round(total, 6)


UNKNOWN = "n/a"
