"""Runs the first batch once before the first iteration, to compile and to allocate memory."""

import gc
import time

import numpy as np
import torch

from stepglass.checkpoint import tensors
from stepglass.data.dataset import as_tensors
from stepglass.errors import TrainingFailed
from stepglass.measure.console_lines import compile_failed_line, warm_up_line
from stepglass.measure.event_details import CompileFailedEvent, WarmUpEvent
from stepglass.train.batches import micro_batches
from stepglass.train.engines.engine import EngineLost
from stepglass.train.evaluate import Windows
from stepglass.train.memory_errors import is_out_of_memory
from stepglass.train.run import Run


def warm_up(run: Run, windows: Windows) -> None:
    """Do the one-time work now, so that iteration 0 takes as long as any other. If the engine is
    lost while the run is being stopped, do not raise: the loop checks for the stop request first
    and ends the run."""
    before = tensors.rng_tensors(run.device.type)
    try:
        rehearse(run, windows)
    except EngineLost as lost:
        if not run.stop.is_set():
            raise
        run.console.say(f"note: {lost}")
    tensors.load_rng(before)


def rehearse(run: Run, windows: Windows) -> None:
    """Run the first batch once and discard the result.

    Compiling, choosing kernels and most memory allocation happen here. The weights do not change,
    and `warm_up` restores the random generators, so the warm-up does not affect the run's results.
    Call this before a checkpoint is restored: `rehearse_update` needs an optimizer whose state is
    still zero.
    """
    compile_ms = None
    startup_ms = run.clock.total().wall_ms
    if run.device.compile:
        compile_ms = try_compile(run, windows)
        if compile_ms is None:
            gc.collect()  # frees what the failed attempt left, before the collector is frozen
    start = time.perf_counter_ns()
    rehearse_update(run)
    first_pass(run, windows)  # waits for the device
    first_batch_ms = (time.perf_counter_ns() - start) / 1e6
    event = WarmUpEvent(startup_ms=startup_ms, compile_ms=compile_ms, first_batch_ms=first_batch_ms)
    run.console.say(warm_up_line(event))
    run.event(event)


def first_pass(run: Run, windows: Windows) -> None:
    """Run one batch forward and backward, and score one batch of an evaluation."""
    run.engine.backward(micro_batches(run.data, run.cfg, 0)[:1], 0)
    run.engine.discard_gradients()
    with torch.inference_mode():
        offsets = np.resize(windows.val[: windows.rows], windows.rows)
        tokens = run.data.val.windows(offsets, windows.block_size + 1)
        run.engine.score(*as_tensors(tokens)).cpu()  # waits for the device


def rehearse_update(run: Run) -> None:
    """Do an update that changes nothing: with zero gradients the moments stay zero, and with a zero
    learning rate the weights stay the same. It touches all memory that an update uses, in every
    process."""
    for group in run.engine.optimizer.param_groups:
        group["lr"] = 0.0  # set again before every update
    run.engine.rehearse_update(run.cfg.grad_clip)
    for remembered in run.engine.optimizer.state.values():
        remembered["step"].zero_()


def try_compile(run: Run, windows: Windows) -> float | None:
    """Compile the model. If that fails, print why and use the model uncompiled. Returns the time in
    milliseconds, or None if compiling failed."""
    start = time.perf_counter_ns()
    try:
        run.engine.compile(True)
        first_pass(run, windows)
    except Exception as error:  # a compiler may raise any exception
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
