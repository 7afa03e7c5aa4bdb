"""The first batch, before the clock of iterations begins: compiling, and memory that grows once."""

import gc
import time
from dataclasses import replace

import numpy as np
import torch

from stepglass import checkpoint, units
from stepglass.data.dataset import as_tensors
from stepglass.errors import TrainingFailed
from stepglass.session import Session, is_out_of_memory


def warm_up(s: Session) -> None:
    """Run the first batch once and throw the result away, so that iteration 0 is a step like any
    other.

    Compiling, choosing kernels and most growth of memory happen here. Nothing is learned and the
    generators are put back: a run with warm-up is the run without it.
    """
    before = checkpoint.rng_tensors(s.device.type)
    compile_ms = None
    startup_ms = s.clock.total().wall_ms
    if s.device.compile:
        compile_ms = try_compile(s)
        if compile_ms is None:
            gc.collect()  # what the attempt has left, before training freezes all there is
    start = time.perf_counter_ns()
    first_pass(s)
    first_batch_ms = (time.perf_counter_ns() - start) / 1e6
    checkpoint.load_rng(before)
    compiled = f"compile {units.duration(compile_ms)}, " if compile_ms is not None else ""
    s.console.say(
        f"warm-up: start-up {units.duration(startup_ms)}, {compiled}first batch "
        f"{units.duration(first_batch_ms)}"
    )
    s.event(
        "warmup",
        {"startup_ms": startup_ms, "compile_ms": compile_ms, "first_batch_ms": first_batch_ms},
    )


def first_pass(s: Session) -> None:
    """One batch through everything a step and an evaluation need."""
    if s.replicas is not None:
        s.replicas.backward(s.batch(0)[:1], seed=(s.cfg.seed,))
    else:
        x, y = (s.device.send(part) for part in s.batch(0)[0])
        with s.device.autocast():
            _, loss = s.model(x, y)
        s.scaler.scale(loss).backward()
        s.optimizer.zero_grad(set_to_none=True)
    with torch.inference_mode():
        rows = s.windows.val[: s.eval_rows]
        tokens = s.data.val.windows(np.resize(rows, s.eval_rows), s.cfg.block_size + 1)
        s.score(*as_tensors(tokens)).cpu()  # waits for the device


def try_compile(s: Session) -> float | None:
    """Compile the model, or say why not and go on without."""
    start = time.perf_counter_ns()
    try:
        if s.replicas is not None:
            s.replicas.compile(True)
        else:
            s.model = torch.compile(s.raw_model)  # type: ignore[assignment]
        first_pass(s)
    except Exception as error:  # compilers fail in every way there is
        if is_out_of_memory(error) or isinstance(error, TrainingFailed):  # a replica was lost
            raise
        s.model, s.device = s.raw_model, replace(s.device, compile=False)
        if s.replicas is not None:
            s.replicas.compile(False)
        s.optimizer.zero_grad(set_to_none=True)
        s.raw_model.train()
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
        s.console.say(f"compile failed: {reason}; going on without it")
        s.event("compile_failed", {"reason": reason})
        return None
    return (time.perf_counter_ns() - start) / 1e6
