"""The lines that training prints and `explain` reads, each next to the pattern that reads it.

    saved_line(CheckpointRecord(...))  ->  "checkpoint 400: stalled 4.11ms, 9.7 MB"
    SAVED.search(line)                 ->  iter, stall, back, size, unit, best

nanoGPT's lines have no pattern here, because the reader of nanoGPT's logs has the patterns. Lines
that no program reads are made in the module that prints them. The table of phases is in ledger.py.
"""

import math
import re
from pathlib import Path

from stepglass import units
from stepglass.measure.event_details import (
    CheckpointFailedEvent,
    CheckpointWaitEvent,
    CompileFailedEvent,
    WarmUpEvent,
)
from stepglass.measure.records import CheckpointRecord, EvalRecord, IterRecord

# Every line with a pattern in this module or in ledger.py contains one of these texts.
MARKS = re.compile(
    r"eval \d|checkpoint \d|start-up: |warm-up: |compile|stopped by|updates done|ran out of memory"
    r"|device: |dtype: |peak for MFU|vocabulary|where the time went"
)

FIGURE = r"-?(?:\d[\d,]*(?:\.\d+)?|nan|inf)"
STEP_NUMBER = r"(?P<iter>\d{1,15})"
DURATION = rf"(?:\d{{1,9}}h \d\dm|\d{{1,9}}m \d\ds|{FIGURE}m?s|{units.UNKNOWN})"
UNIT_MS = {"h": 3_600_000.0, "m": 60_000.0, "s": 1000.0, "ms": 1.0}
UNIT_BYTES = {"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}


def duration_ms(text: str | None) -> float | None:
    """Parse a duration that `units.duration` has formatted.

    >>> [duration_ms(x) for x in ("0.01ms", "5.7s", "1m 15s", "1h 02m", "n/a")]
    [0.01, 5700.0, 75000.0, 3720000.0, None]
    """
    total = 0.0
    for part in (text or units.UNKNOWN).split():
        unit = part.lstrip("0123456789.,-+e")
        try:
            total += float(part.removesuffix(unit).replace(",", "")) * UNIT_MS[unit]
        except (KeyError, ValueError):
            return None
    return round(total, 6) if math.isfinite(total) else None


# -- lines that nanoGPT also prints --------------------------------------------------------------


def iteration_line(record: IterRecord, step_ms: float, flops: float | None = None) -> str:
    """`flops` are those of the step: where the device's peak is unknown, the rate stands for the
    MFU."""
    rate = ""
    if record.mfu is None and flops and step_ms > 0:
        rate = f" ({units.flops_rate(1000 * flops / step_ms)})"
    return (
        f"iter {record.iter}: loss {units.loss(record.loss)}, "
        f"time {units.milliseconds(step_ms)}, mfu {units.percent(record.mfu)}{rate}"
    )


def losses_line(record: EvalRecord) -> str:
    train, val = units.loss(record.train_loss), units.loss(record.val_loss)
    return f"step {record.iter}: train loss {train}, val loss {val}"


def saving_line(run_dir: Path) -> str:
    return f"saving checkpoint to {run_dir}"


def vocab_size_line(vocab_size: int, origin: str) -> str:
    return f"found vocab_size = {vocab_size} (inside {origin})"


def tokens_per_iter_line(tokens: int) -> str:
    return f"tokens per iteration will be: {tokens:,}"


def parameters_line(num_params: int) -> str:
    return f"number of parameters: {num_params / 1e6:.2f}M"


# -- evaluations and checkpoints -----------------------------------------------------------------

EVALUATION = re.compile(
    rf"(?<![\w/-])eval {STEP_NUMBER}: (?P<time>{DURATION}), "
    rf"val loss (?P<val>{FIGURE}|{units.UNKNOWN}) ± (?P<se>{FIGURE}|{units.UNKNOWN}) "
    rf"\((?P<windows>\d{{1,12}}) windows\)"
)


def evaluation_line(record: EvalRecord) -> str:
    """Shows what nanoGPT's line does not: the evaluation's time, the loss's standard error, and a
    loss that can be compared with that of other tokens."""
    bits = record.val_bits_per_byte
    return (
        f"eval {record.iter}: {units.duration(record.wall_ms)}, "
        f"val loss {units.loss(record.val_loss)} ± {units.loss(record.val_se)} "
        f"({record.windows} windows)"
        f"{'' if bits is None else f', {bits:.4f} bits per byte'}"
    )


SAVED = re.compile(
    rf"(?<![\w/-])checkpoint {STEP_NUMBER}: stalled (?P<stall>{DURATION})"
    rf"(?:, written in background (?P<back>{DURATION}))?"
    rf"(?:, (?P<size>{FIGURE}) (?P<unit>[kMGT]?B))?(?P<best>, the best so far)?"
)


def saved_line(record: CheckpointRecord) -> str:
    background = f", written in background {units.duration(record.background_ms)}"
    return (
        f"checkpoint {record.iter}: stalled {units.duration(record.stall_ms)}"
        f"{background if record.background_ms else ''}, {units.size(record.bytes)}"
        f"{', the best so far' if record.is_best else ''}"
    )


WAITED = re.compile(rf"\bwaited (?P<wait>{DURATION}) for checkpoint {STEP_NUMBER} to be written")


def waited_line(event: CheckpointWaitEvent) -> str:
    return f"waited {units.duration(event.wait_ms)} for checkpoint {event.step} to be written"


# The first versions printed "failed, the 2nd so far: ...".
SAVE_FAILED = re.compile(
    rf"\bwarning: checkpoint {STEP_NUMBER} failed"
    r"(?: \((?P<failed>\d{1,9}) so far\)|, the \w{1,20} so far): "
    r"(?P<why>.{0,500}?)(?:; training goes on\b|$)"
)


def save_failed_line(event: CheckpointFailedEvent) -> str:
    return (
        f"warning: checkpoint {event.step} failed ({event.failed} so far): {event.reason}; "
        "training goes on, and the next save will try again"
    )


# -- the beginning and the end -------------------------------------------------------------------

# The first versions printed "warm-up: start-up 4.5s, first batch ...".
START_UP = re.compile(
    rf"\b(?:start-up: imports and model|warm-up: start-up) (?P<startup_ms>{DURATION}), "
    rf"(?:compile (?P<compile_ms>{DURATION}), )?"
    rf"first batch (?P<first_batch_ms>{DURATION})"
)


def start_up_line(event: WarmUpEvent) -> str:
    compiled = "" if event.compile_ms is None else f"compile {units.duration(event.compile_ms)}, "
    return (
        f"start-up: imports and model {units.duration(event.startup_ms)}, {compiled}"
        f"first batch {units.duration(event.first_batch_ms)}"
    )


COMPILE_FAILED = re.compile(r"\bcompile failed: (?P<why>.{0,300}?); going on without it")


def compile_failed_line(event: CompileFailedEvent) -> str:
    return f"compile failed: {event.reason}; going on without it"


RESUMED = re.compile(
    rf"\bResuming training from .{{1,500}}?: \S{{1,100}}, {STEP_NUMBER} updates done"
)


def resumed_line(out_dir: str, checkpoint: str, step: int) -> str:
    return f"Resuming training from {out_dir}: {checkpoint}, {step} updates done"


STOPPED = re.compile(rf"\bstopped by (?P<signal>SIG\w+) after {STEP_NUMBER} updates")


def stopped_line(signal: str | None, step: int) -> str:
    return f"stopped by {signal} after {step} updates"


NO_MEMORY = re.compile(rf"ran out of memory at step {STEP_NUMBER} with batch_size=")


def no_memory_text(device: str, when: str, sizes: str, remedy: str) -> str:
    """The out-of-memory error of a run. `when` is "at step 7" or "at the start". `sizes` starts
    with the batch size, for example "batch_size=12 and block_size=64".
    """
    return f"{device} ran out of memory {when} with {sizes}; try {remedy}"


# -- the machine and the data --------------------------------------------------------------------

DEVICE = re.compile(r"(?<![\w.])device: (?P<type>cpu|mps|cuda(?::\d+)?) \((?P<name>.{1,100}?)\): ")


def device_line(device: str, name: str, reason: str) -> str:
    return f"device: {device} ({name}): {reason}"


DTYPE = re.compile(r"(?<![\w.])dtype: (?P<dtype>float32|float16|bfloat16): ")


def dtype_line(dtype: str, reason: str) -> str:
    return f"dtype: {dtype}: {reason}"


COMPILE = re.compile(r"(?<![\w.])compile: (?P<compile>True|False): ")


def compile_line(does_compile: bool, reason: str) -> str:
    return f"compile: {does_compile}: {reason}"


PEAK = re.compile(rf"\bpeak for MFU: (?:.{{0,200}}?(?P<rate>{FIGURE}) (?P<unit>[TG])FLOP/s)?")


def peak_line(source: str) -> str:
    """`source` names the rate, or says why it is unknown."""
    return f"peak for MFU: {source}"


def new_peak_line(source: str) -> str:
    return f"{peak_line(source)}; the machine was busy at the first try"


DATA = re.compile(
    r": train (?P<tokens>[\d,]{1,30}) tokens, val .{0,100}? vocabulary (?P<vocab>[\d,]{1,15})"
)


def data_line(folder: Path, train_tokens: int, val_tokens: int, vocab: int, kind: str) -> str:
    """The result of `prepare`. It has a pattern because many users log it to the same file."""
    return (
        f"{folder}: train {train_tokens:,} tokens, val {val_tokens:,} tokens, "
        f"vocabulary {vocab:,} ({kind})"
    )
