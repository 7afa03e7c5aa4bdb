"""The first batch, before the clock of iterations begins: compiling, and memory that grows once."""

import gc
import time
from dataclasses import replace

import numpy as np
import torch
from torch import nn

from stepglass import units
from stepglass.checkpoint import tensors
from stepglass.data.dataset import as_tensors
from stepglass.errors import TrainingFailed
from stepglass.train.engines.helper_process import ReplicaLost
from stepglass.train.session import Session, is_out_of_memory


def warm_up(s: Session) -> None:
    """Make iteration 0 a step like any other. A replica that is lost while the run is to stop ends
    it as the signal would have: the loop looks for that first."""
    before = tensors.rng_tensors(s.device.type)
    if s.replicas is not None:
        s.replicas.is_stopping = s.stop.is_set
    try:
        rehearse(s)
    except ReplicaLost as lost:
        if not s.stop.is_set():
            raise
        s.console.say(f"note: {lost}")
    tensors.load_rng(before)


def rehearse(s: Session) -> None:
    """Run the first batch once and throw the result away, so that iteration 0 is a step like any
    other.

    Compiling, choosing kernels and most growth of memory happen here. Nothing is learned and the
    generators are put back: a run with warm-up is the run without it. Comes before a checkpoint is
    restored: `rehearse_update` needs an optimizer that remembers nothing yet.
    """
    compile_ms = None
    startup_ms = s.clock.total().wall_ms
    if s.device.compile:
        compile_ms = try_compile(s)
        if compile_ms is None:
            gc.collect()  # what the attempt has left, before training freezes all there is
    start = time.perf_counter_ns()
    rehearse_update(s)
    first_pass(s)  # waits for the device
    first_batch_ms = (time.perf_counter_ns() - start) / 1e6
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


def rehearse_update(s: Session) -> None:
    """An update that changes nothing: gradients of zero leave moments of zero as they are, and a
    rate of zero the weights. It touches all the memory that an update does, in every process, and
    takes the same way there; the scaler is left out, for it would count.
    """
    for group in s.optimizer.param_groups:
        group["lr"] = 0.0  # set again before every update
    if s.replicas is not None:
        no_rows = [(x[:0], y[:0]) for x, y in s.batch(0)[:1]]
        s.replicas.backward(no_rows, seed=(s.cfg.seed,))
        s.replicas.update(s.cfg.grad_clip)
    else:
        for parameter in s.raw_model.parameters():
            parameter.grad = torch.zeros_like(parameter)
        if s.cfg.grad_clip > 0:
            nn.utils.clip_grad_norm_(s.raw_model.parameters(), s.cfg.grad_clip)
        s.optimizer.step()
        s.optimizer.zero_grad(set_to_none=True)
    for remembered in s.optimizer.state.values():
        remembered["step"].zero_()


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
