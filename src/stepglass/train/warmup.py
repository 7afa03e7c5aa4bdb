"""Runs the first batch once before the first iteration, to allocate memory, to measure how long an
update takes, and to compile if that pays."""

import gc
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from stepglass.checkpoint import tensors
from stepglass.errors import TrainingFailed
from stepglass.hardware import choose
from stepglass.measure.console_lines import compile_failed_line, compile_line, start_up_line
from stepglass.measure.event_details import CompileFailedEvent, WarmUpEvent
from stepglass.process import Interrupted
from stepglass.train.batches import first_rows, micro_batches
from stepglass.train.engines.engine import EngineLost
from stepglass.train.evaluate import Windows, score_batch
from stepglass.train.memory_errors import is_out_of_memory
from stepglass.train.pace import measure_update_ms, rehearse_update, say_when_done
from stepglass.train.run import Run

COMPILING = "compiling the model, about a minute; Ctrl-C stops"


@dataclass(frozen=True)
class Rehearsal:
    """What the first batch showed. Times are milliseconds."""

    startup_ms: float = 0.0
    first_batch_ms: float = 0.0
    update_ms: float = 0.0
    eval_ms: float | None = None  # of an evaluation
    does_compile: bool = False


@contextmanager
def undisturbed(run: Run) -> Iterator[None]:
    """Restore the random generators afterwards, so that a rehearsal does not change the run. If the
    engine is lost while the run is being stopped, do not raise: the loop checks for the stop
    request first and ends the run."""
    before = tensors.rng_tensors(run.device.type)
    try:
        yield
    except EngineLost as lost:
        if not run.stop.is_set():
            raise
        run.console.say(f"note: {lost}")
    tensors.load_rng(before)


def rehearse(run: Run, windows: Windows, compiled_before: bool | None) -> Rehearsal:
    """Run the first batch, measure an update, and decide whether to compile.

    Most memory is allocated here, so that iteration 0 takes as long as any other. The weights do
    not change. Call this before a checkpoint is restored: `rehearse_update` needs an optimizer
    whose state is still zero.
    """
    startup_ms = run.clock.total().wall_ms
    start = time.perf_counter_ns()
    rehearse_update(run.engine, run.cfg.grad_clip)
    first_pass(run, windows)  # waits for the device
    first_batch_ms = (time.perf_counter_ns() - start) / 1e6
    step_ms = 0.0 if run.cfg.eval_only else update_ms_of(run)
    is_asked = run.cfg.eval_interval == "auto" or run.cfg.minutes > 0
    eval_ms = measure_eval_ms(run, windows) if is_asked else None
    does_compile = decide_to_compile(run, step_ms, compiled_before)
    return Rehearsal(startup_ms, first_batch_ms, step_ms, eval_ms, does_compile)


def update_ms_of(run: Run) -> float:
    left = run.cfg.max_iters - run.first_step
    return measure_update_ms(
        run.engine, run.data, run.cfg, left, run.stop.is_set, rows=run.warm_up_rows
    )


def decide_to_compile(run: Run, step_ms: float, compiled_before: bool | None) -> bool:
    """Decide from the time that the rest of the run takes uncompiled."""
    if run.warm_up_rows < run.cfg.batch_size:
        chosen, why = True, "the batch fits into memory only if the model is compiled"
    elif run.cfg.compile == "auto" and compiled_before is not None:
        chosen, why = compiled_before, "as when the run was saved: the same bits"
    else:
        run_s = (run.cfg.max_iters - run.first_step) * step_ms / 1000
        if run.cfg.minutes:
            run_s = 60 * run.cfg.minutes - run.clock.elapsed_ms() / 1000
        chosen, why = choose.pick_compile(run.device.type, run.cfg.compile, run_s)
    run.console.say(compile_line(chosen, why))
    return chosen


def warm_up(run: Run, windows: Windows, rehearsal: Rehearsal) -> None:
    """Compile the model if that was decided, and report how long the start took."""
    compile_ms, step_ms = None, rehearsal.update_ms
    if rehearsal.does_compile and not run.stop.is_set():
        compile_ms = try_compile(run, windows)
        if compile_ms is None:
            gc.collect()  # frees what the failed attempt left, before the collector is frozen
        elif not run.cfg.eval_only:
            step_ms = update_ms_of(run)
    event = WarmUpEvent(
        startup_ms=rehearsal.startup_ms,
        compile_ms=compile_ms,
        first_batch_ms=rehearsal.first_batch_ms,
    )
    run.console.say(start_up_line(event))
    run.event(event)
    say_when_done(run, step_ms)


def first_pass(run: Run, windows: Windows) -> None:
    """Run one batch forward and backward, or what fits of it, and score one batch of an
    evaluation."""
    run.engine.backward(first_rows(micro_batches(run.data, run.cfg, 0), run.warm_up_rows), 0)
    run.engine.discard_gradients()
    score_first_batch(run, windows)


def score_first_batch(run: Run, windows: Windows) -> None:
    """Score one batch of an evaluation, and wait for the device."""
    offsets = np.resize(windows.val[: windows.rows], windows.rows)
    score_batch(run.engine, run.data.val, offsets, windows).cpu()


def measure_eval_ms(run: Run, windows: Windows) -> float | None:
    """The time of an evaluation, from one of its batches."""
    if run.cfg.eval_only or run.stop.is_set():
        return None
    start = time.perf_counter_ns()
    score_first_batch(run, windows)
    batches = (len(windows.train) + len(windows.val)) / windows.rows
    return (time.perf_counter_ns() - start) / 1e6 * batches


def try_compile(run: Run, windows: Windows) -> float | None:
    """Compile the model. If that fails, print why and use the model uncompiled. Returns the time in
    milliseconds, or None if compiling failed or was interrupted by a signal."""
    start = time.perf_counter_ns()
    try:
        with run.console.waiting(COMPILING), run.stop.interrupting(), warnings.catch_warnings():
            # torch warns of the operation in which a signal has interrupted it.
            warnings.filterwarnings("ignore", message="Error detected in")
            run.engine.compile(True)
            first_pass(run, windows)
    except Interrupted:
        return None  # the loop ends the run before the first update
    except Exception as error:  # a compiler may raise any exception
        if run.stop.is_set():
            return None  # it has wrapped the interruption in an error of its own
        if is_out_of_memory(error) or isinstance(error, TrainingFailed):  # a replica was lost
            raise
        run.engine.compile(False)
        run.engine.discard_gradients()
        run.engine.model.train()
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
        event = CompileFailedEvent(reason=reason)
        run.console.say(compile_failed_line(event))
        run.event(event)
        return None
    return (time.perf_counter_ns() - start) / 1e6
