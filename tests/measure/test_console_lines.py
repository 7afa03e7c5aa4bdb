"""A line that the console prints and `explain` reads comes back with the values it was made of."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from helpers import prepare_tiny, train_tiny
from stepglass.logs.formats.stepglass_console import StepglassConsole
from stepglass.measure import console_lines, ledger
from stepglass.measure.clock import Lap
from stepglass.measure.event_details import (
    CheckpointFailedEvent,
    CheckpointWaitEvent,
    CompileFailedEvent,
    WarmUpEvent,
)
from stepglass.measure.records import Background, CheckpointRecord, EvalRecord, IterRecord

EVALUATION = EvalRecord(
    iter=400, wall_ms=549.23, train_loss=2.3873, val_loss=2.427, val_se=0.0149, windows=240,
    val_bits_per_byte=3.5014,
)  # fmt: skip
ITERATION = IterRecord(
    iter=400, loss=2.4199, lr=1e-3, grad_norm=None, tokens=768, wall_ms=598.1, phases={}, mfu=0.4922
)
SAVE = {"iter": 400, "stall_ms": 4.11, "bytes": 9_700_000, "path": "ckpt/x"}
SAVED = CheckpointRecord(**SAVE, background_ms=1500.0, is_best=True)
SAVED_AT_ONCE = CheckpointRecord(**SAVE, background_ms=0.0, is_best=False)
WARM_UP = WarmUpEvent(startup_ms=4500.0, compile_ms=21_100.0, first_batch_ms=166.07)
NOT_COMPILED = WarmUpEvent(startup_ms=4500.0, compile_ms=None, first_batch_ms=166.07)
WAITED = CheckpointWaitEvent(step=400, wait_ms=25.1)
FAILED = CheckpointFailedEvent(step=400, reason="ckpt: no space left on device; full", failed=2)
COMPILE_FAILED = CompileFailedEvent(reason="no C++ compiler was found")
NO_MEMORY = console_lines.no_memory_text(
    "cuda (NVIDIA A100)", "at step 7", "batch_size=64 and block_size=8", "--batch_size=32"
)


def event(detail: Any, **more: Any) -> dict[str, Any]:
    return {"kind": "event", "name": detail.event_name, "detail": detail.as_dict(), **more}


def start(**facts: Any) -> dict[str, Any]:
    return {"kind": "start", **facts}


def saved(record: CheckpointRecord) -> dict[str, Any]:
    figures = record.as_dict()
    del figures["path"]  # the line does not name it
    figures["time_ms"] = figures.pop("stall_ms")
    return figures


LINES: list[tuple[str, dict[str, Any]]] = [
    (
        console_lines.iteration_line(ITERATION, step_ms=44.84),
        {"kind": "iter", "iter": 400, "loss": 2.4199, "time_ms": 44.84, "mfu": 49.22},
    ),
    (
        console_lines.iteration_line(replace(ITERATION, mfu=None), step_ms=44.84, flops=1e9),
        {"kind": "iter", "iter": 400, "loss": 2.4199, "time_ms": 44.84, "mfu": None},
    ),
    (
        console_lines.losses_line(EVALUATION),
        {"kind": "eval", "iter": 400, "train_loss": 2.3873, "val_loss": 2.427},
    ),
    (console_lines.saving_line(Path("out")), {"kind": "checkpoint"}),
    (console_lines.vocab_size_line(84, "meta.json"), start(vocab_size=84.0)),
    (console_lines.tokens_per_iter_line(49_152), start(tokens_per_iter=49_152.0)),
    (console_lines.parameters_line(10_650_000), start(parameters=10.65e6)),
    (
        console_lines.evaluation_line(EVALUATION),
        {"kind": "eval", "iter": 400, "train_loss": None, "val_loss": 2.427, "val_se": 0.0149,
         "windows": 240, "time_ms": 549.23},
    ),
    (console_lines.saved_line(SAVED), saved(SAVED)),
    (console_lines.saved_line(SAVED_AT_ONCE), saved(SAVED_AT_ONCE)),
    (console_lines.waited_line(WAITED), event(WAITED)),
    (console_lines.save_failed_line(FAILED), event(FAILED)),
    (console_lines.start_up_line(WARM_UP), event(WARM_UP, iter=0)),
    (console_lines.start_up_line(NOT_COMPILED), event(NOT_COMPILED, iter=0)),
    (console_lines.compile_failed_line(COMPILE_FAILED), event(COMPILE_FAILED)),
    (
        console_lines.stopped_line("SIGTERM", 401),
        {"kind": "event", "name": "signal", "iter": 401, "detail": {"name": "SIGTERM"}},
    ),
    (
        console_lines.resumed_line("out dir", "step-00000400-000002", 400),
        start(init_from="resume", resumed_at=400),
    ),
    (
        console_lines.device_line("cuda:1", "NVIDIA A100-SXM4-40GB", "asked for"),
        start(device="NVIDIA A100-SXM4-40GB", device_type="cuda"),
    ),
    (console_lines.dtype_line("bfloat16", "the fastest here"), start(dtype="bfloat16")),
    (console_lines.compile_line(False, "it takes too long"), start(compile=False)),
    (console_lines.peak_line("180 GFLOP/s, measured here"), start(peak_tflops=0.18)),
    (console_lines.peak_line("A100: 312.0 TFLOP/s in bfloat16"), start(peak_tflops=312.0)),
    (console_lines.new_peak_line("190 GFLOP/s, measured here"), start(peak_tflops=0.19)),
    (console_lines.peak_line("unknown for this device"), start(peak_tflops=None)),
    (
        console_lines.data_line(Path("data/plays"), 4_551_515, 505_724, 84, "char"),
        start(train_tokens=4_551_515.0, vocab_size=84.0),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("line", "expected"), LINES, ids=[line[:40] for line, _ in LINES])
def test_a_line_comes_back_with_its_values(line, expected):
    reader = StepglassConsole()
    assert reader.read(line) == [expected]


def test_no_memory_comes_back_with_its_step():
    [record] = StepglassConsole().read(f"error: {NO_MEMORY}")
    assert (record["kind"], record["name"], record["iter"]) == ("event", "oom", 7)


def test_the_ledger_comes_back_as_the_end_of_the_run():
    total = Lap(1_065_670_000_000, {"warmup": 4_680_000_000, "other": 1_060_990_000_000})
    background = Background(checkpoint_writer_ms=3000.0, saves=3, failed_saves=0)
    reader = StepglassConsole()
    read = [reader.read(line) for line in ledger.ledger_lines(total, background)]
    [end] = [record for records in read for record in records if record["kind"] == "end"]
    assert end["wall_ms"] == end["ledger"]["wall_ms"] == pytest.approx(1_065_670.0)
    assert end["ledger"]["phases"] == pytest.approx({"warmup": 4680.0, "other": 1_060_990.0})


def test_both_lines_of_an_evaluation_are_one_record():
    reader = StepglassConsole()
    reader.read(console_lines.start_up_line(WARM_UP))  # now the log is known to be ours
    assert reader.read(console_lines.losses_line(EVALUATION)) == []
    [record] = reader.read(console_lines.evaluation_line(EVALUATION))
    assert (record["train_loss"], record["time_ms"]) == (2.3873, 549.23)


def test_the_words_of_the_first_versions_for_a_failed_checkpoint_are_read_too():
    """The pattern once knew only these words, and a failed checkpoint was overlooked."""
    line = "warning: checkpoint 400 failed, the 2nd so far: no space left; training goes on"
    [record] = StepglassConsole().read(line)
    assert record["detail"] == {"step": 400, "reason": "no space left", "failed": None}


def test_every_function_that_makes_a_line_is_tried_here():
    source = Path(__file__).read_text()
    made = [name for name in vars(console_lines) if name.endswith(("_line", "_text"))]
    assert [name for name in made if f"console_lines.{name}(" not in source] == []


# Printed for people only: nobody asks a log for them.
FOR_PEOPLE = (
    "replicas: ",
    "checkpoints: ",
    "evaluations: ",
    "  ",  # the rows of the ledger, and what is indented below a heading
    "best val loss ",
    "newest checkpoint: ",
    "go on with: ",
    "next: ",
    "note: ",
    "What stands out",
)


def test_every_line_of_a_run_is_read_or_is_known_to_be_for_people(capsys):
    prepare_tiny()
    capsys.readouterr()
    assert train_tiny(log_interval=1) == 0
    reader = StepglassConsole()
    lines = capsys.readouterr().out.splitlines()
    unread = [
        line
        for line in lines
        if not line.startswith((*FOR_PEOPLE, "step ", "saving "))  # the reader waits for the next
        and not reader.read(line)
    ]
    assert unread == []
    assert len(lines) > 20
