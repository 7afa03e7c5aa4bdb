"""Our own console output, which extends nanoGPT's.

    step 400: train loss 2.3873, val loss 2.4270
    eval 400: 549.23ms, val loss 2.4270 ± 0.0149 (240 windows)
    iter 400: loss 2.4199, time 44.84ms, mfu 49.22%
    checkpoint 400: stalled 4.11ms, written in background 1.5s, 9.7 MB, the best so far

`time` is the training step alone, and MFU is relative to the peak of the device that ran. The
patterns are next to the functions that print the lines, in measure/console_lines.py and
measure/ledger.py.
"""

from dataclasses import replace

from stepglass.logs.formats.nanogpt import NanoGPT
from stepglass.logs.formats.run_log_reader import RUN_LOG_FORMAT, out_of_memory_record
from stepglass.logs.log_format import LogFormat
from stepglass.logs.reader import Record, number
from stepglass.measure import console_lines, ledger
from stepglass.measure.console_lines import UNIT_BYTES, duration_ms
from stepglass.measure.event_details import (
    CheckpointFailedEvent,
    CheckpointWaitEvent,
    CompileFailedEvent,
    EventDetail,
    SignalEvent,
    WarmUpEvent,
)
from stepglass.measure.records import LedgerTotals

CONSOLE_FORMAT = replace(RUN_LOG_FORMAT, time_holds_eval=False, is_run_log=False)
LONGEST = 2000  # characters; no line of nanoGPT or ours is longer
LAST_ITER = 10**15


class StepglassConsole:
    """Reads nanoGPT's console and ours, which extends it.

    A log counts as nanoGPT's until a line appears that only we print. From then on, `time` does not
    include evaluations.
    """

    def __init__(self) -> None:
        self._nanogpt = NanoGPT()
        self.is_ours = False
        self._held: Record | None = None  # a `step` line that waits for its `eval` line
        self._ledger: dict[str, float] | None = None  # while the table is being read

    @property
    def format(self) -> LogFormat:
        return CONSOLE_FORMAT if self.is_ours else self._nanogpt.format

    def read(self, text: str) -> list[Record]:
        text = text[:LONGEST]
        if self._ledger is not None and (found := ledger.ROW.search(text)):
            phase, seconds = ledger.phase_called(found["phase"]), number(found["s"]) or 0.0
            return self._row(phase, 1000 * seconds)
        # The fast test comes first: most lines are iterations, and none of the lines that only we
        # print begins with "iter ".
        if (
            text[:5] != "iter "
            and console_lines.MARKS.search(text)
            and (record := self._ours(text))
        ):
            self.is_ours = True
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
            return []  # another line with the time follows when it is on disk
        return self.flush() + records

    def flush(self) -> list[Record]:
        """Return the evaluation that still waits for its `eval` line."""
        held, self._held = self._held, None
        return [held] if held is not None else []

    def _row(self, phase: str, ms: float) -> list[Record]:
        assert self._ledger is not None
        if phase != ledger.WALL_CLOCK:
            self._ledger[phase] = ms
            return []
        phases, self._ledger = self._ledger, None
        totals = LedgerTotals(wall_ms=ms, phases=phases).as_dict()
        return [*self.flush(), {"kind": "end", "wall_ms": ms, "ledger": totals}]

    def _ours(self, text: str) -> Record | None:
        if found := console_lines.EVALUATION.search(text):
            held, self._held = self._held, None
            is_same = held is not None and held["iter"] == int(found["iter"])
            return {
                "kind": "eval",
                "iter": int(found["iter"]),
                "train_loss": held["train_loss"] if held is not None and is_same else None,
                "val_loss": number(found["val"]),
                "val_se": number(found["se"]),
                "windows": int(found["windows"]),
                "time_ms": duration_ms(found["time"]),
            }
        if found := console_lines.SAVED.search(text):
            size = number(found["size"])
            return {
                "kind": "checkpoint",
                "iter": int(found["iter"]),
                "time_ms": duration_ms(found["stall"]),
                "background_ms": duration_ms(found["back"]) if found["back"] else 0.0,
                "bytes": None if size is None else size * UNIT_BYTES[found["unit"]],
                "is_best": found["best"] is not None,
            }
        if text.endswith(ledger.HEADING):
            self._ledger = {}
            return {"kind": "event", "name": "ledger", "detail": {}}
        return _event_record(text) or _header_record(text)


def _event_record(text: str) -> Record | None:
    """The event of a line, in the form of the run log, or None."""
    if found := console_lines.START_UP.search(text):
        times = {name: duration_ms(duration) for name, duration in found.groupdict().items()}
        return _event(WarmUpEvent.from_dict(times), iteration=0)
    if found := console_lines.WAITED.search(text):
        wait = {"step": int(found["iter"]), "wait_ms": duration_ms(found["wait"])}
        return _event(CheckpointWaitEvent.from_dict(wait))
    if found := console_lines.SAVE_FAILED.search(text):
        failed = int(found["failed"]) if found["failed"] else None
        failure = {"step": int(found["iter"]), "reason": found["why"], "failed": failed}
        return _event(CheckpointFailedEvent.from_dict(failure))
    if found := console_lines.COMPILE_FAILED.search(text):
        return _event(CompileFailedEvent(reason=found["why"]))
    if found := console_lines.STOPPED.search(text):
        return _event(SignalEvent(name=found["signal"]), iteration=int(found["iter"]))
    if found := console_lines.NO_MEMORY.search(text):
        return {**out_of_memory_record(text), "iter": int(found["iter"])}
    return None


def _event(detail: EventDetail, iteration: int | None = None) -> Record:
    """The record of an event. Without `iteration`, it belongs to the last printed iteration."""
    where = {} if iteration is None else {"iter": iteration}
    return {"kind": "event", "name": detail.event_name, **where, "detail": detail.as_dict()}


def _header_record(text: str) -> Record | None:
    """Lines about the machine and the data that are printed before training."""
    if found := console_lines.DEVICE.search(text):
        kind = found["type"].partition(":")[0]
        return {"kind": "start", "device": found["name"], "device_type": kind}
    if found := console_lines.DTYPE.search(text):
        return {"kind": "start", "dtype": found["dtype"]}
    if found := console_lines.COMPILE.search(text):
        return {"kind": "start", "compile": found["compile"] == "True"}
    if found := console_lines.PEAK.search(text):
        rate = number(found["rate"])
        tflops = None if rate is None else rate / (1 if found["unit"] == "T" else 1000)
        return {"kind": "start", "peak_tflops": tflops}
    if found := console_lines.RESUMED.search(text):
        return {"kind": "start", "init_from": "resume", "resumed_at": int(found["iter"])}
    if found := console_lines.DATA.search(text):
        tokens, vocab_size = number(found["tokens"]), number(found["vocab"])
        return {"kind": "start", "train_tokens": tokens, "vocab_size": vocab_size}
    return None
