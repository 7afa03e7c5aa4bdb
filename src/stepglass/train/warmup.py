"""The first batch, before the first iteration: compiling, and memory that grows once."""

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
    """Make iteration 0 a step like any other. If the engine is lost while the run is asked to stop,
    the loop ends the run: it looks for that first."""
    before = tensors.rng_tensors(run.device.type)
    try:
        rehearse(run, windows)
    except EngineLost as lost:
        if not run.stop.is_set():
            raise
        run.console.say(f"note: {lost}")
    tensors.load_rng(before)


def rehearse(run: Run, windows: Windows) -> None:
    """Run the first batch once and throw the result away.

    Compiling, choosing kernels and most growth of memory happen here. Nothing is learned and the
    generators are put back: a run with warm-up is the run without it. Comes before a checkpoint is
    restored: `rehearse_update` needs an optimizer that remembers nothing yet.
    """
    compile_ms = None
    startup_ms = run.clock.total().wall_ms
    if run.device.compile:
        compile_ms = try_compile(run, windows)
        if compile_ms is None:
            gc.collect()  # what the attempt has left, before training freezes all there is
    start = time.perf_counter_ns()
    rehearse_update(run)
    first_pass(run, windows)  # waits for the device
    first_batch_ms = (time.perf_counter_ns() - start) / 1e6
    event = WarmUpEvent(startup_ms=startup_ms, compile_ms=compile_ms, first_batch_ms=first_batch_ms)
    run.console.say(warm_up_line(event))
    run.event(event)


def first_pass(run: Run, windows: Windows) -> None:
    """Send one batch through everything that a step and an evaluation need."""
    run.engine.backward(micro_batches(run.data, run.cfg, 0)[:1], 0)
    run.engine.discard_gradients()
    with torch.inference_mode():
        offsets = np.resize(windows.val[: windows.rows], windows.rows)
        tokens = run.data.val.windows(offsets, windows.block_size + 1)
        run.engine.score(*as_tensors(tokens)).cpu()  # waits for the device


def rehearse_update(run: Run) -> None:
    """An update that changes nothing: gradients of zero leave moments of zero as they are, and a
    rate of zero the weights. It touches all the memory that an update does, in every process."""
    for group in run.engine.optimizer.param_groups:
        group["lr"] = 0.0  # set again before every update
    run.engine.rehearse_update(run.cfg.grad_clip)
    for remembered in run.engine.optimizer.state.values():
        remembered["step"].zero_()


def try_compile(run: Run, windows: Windows) -> float | None:
    """Compile the model, or say why not and go on without. Returns how long it took."""
    start = time.perf_counter_ns()
    try:
        run.engine.compile(True)
        first_pass(run, windows)
    except Exception as error:  # compilers fail in every way there is
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
