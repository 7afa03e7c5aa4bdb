"""Training: the loop, on one page.

    run(set_up(cfg, argv, clock, console, stop))

The loop does what nanoGPT's does, in the same order: evaluate and save at a boundary, then one
update. An iteration's record holds all the time since the one before it, boundary included, split
into phases that add up. The loop never decides how a checkpoint is written or a log line looks.
"""

import gc
import math
import shlex
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from stepglass import units
from stepglass.checkpoint import tensors
from stepglass.errors import DataError, DeviceError, TrainingFailed
from stepglass.hardware import device
from stepglass.measure import clock, ledger
from stepglass.run_dir import checkpoints
from stepglass.sample.text import short_text
from stepglass.train import saves
from stepglass.train.engines.helper_process import ReplicaLost
from stepglass.train.engines.replicas import MicroBatch
from stepglass.train.evaluate import evaluate
from stepglass.train.optimizer import lr_at, set_lr
from stepglass.train.session import PendingIteration, Session, naming_memory_errors

Findings = Callable[[Path], list[str]]  # what stands out in a run, once it is over

MEMORY_EVERY = 16  # iterations: it changes rarely, and asking for it takes longer than the clock

# -- the loop -----------------------------------------------------------------------------------


def loop(s: Session) -> str:
    """Train until there is a reason to end, and return it."""
    cfg = s.cfg
    while True:
        step = s.state.step
        is_last = step >= cfg.max_iters
        if s.stop.is_set():
            return "signal"
        if s.run.lost is not None:
            return "lost"
        is_boundary = s.evals.is_due(step, s.iter_ms()) or is_last or cfg.eval_only
        if is_boundary and s.state.evaluated_at != step:
            if boundary(s):
                return "target"
            continue  # a signal may have come meanwhile
        if is_last or cfg.eval_only:
            return "finished"
        if saves.is_due(s):
            drain(s)
            saves.save(s)

        with s.clock.phase("data"):
            micro_batches = s.batch(step)
        step_loss = forward_backward(s, micro_batches)
        with s.clock.phase("optimizer"):
            lr = lr_at(step, cfg)
            set_lr(s.optimizer, lr, cfg)
            grad_norm = apply_gradients(s)
            s.device.finish_queue()
        s.state.step += 1
        s.state.tokens += cfg.tokens_per_iter
        with s.clock.phase("log"):
            report_iteration(s, step, lr, step_loss, grad_norm)


def forward_backward(s: Session, micro_batches: list[MicroBatch]) -> Tensor:
    """Work out the gradients of an update. Returns its loss, which stays on the device: nothing
    waits for it."""
    if s.replicas is not None:
        with s.clock.phase("forward_backward"):
            return s.replicas.backward(micro_batches, (s.cfg.seed, s.state.step))
    losses = []
    for host_x, host_y in micro_batches:
        with s.clock.phase("data"):
            x, y = s.device.send(host_x), s.device.send(host_y)
        with s.clock.phase("forward_backward"):
            with s.device.autocast():
                _, loss = s.model(x, y)
                loss = loss / len(micro_batches)
            s.scaler.scale(loss).backward()
            losses.append(loss.detach())
            s.device.finish_queue()
    return torch.stack(losses).sum()


def apply_gradients(s: Session) -> Tensor | None:
    """Clip, update, clear. Returns the gradient's norm before clipping, where it is computed."""
    saves.protect_snapshot(s)
    if s.replicas is not None:
        return s.replicas.update(s.cfg.grad_clip)
    norm = None
    if s.cfg.grad_clip > 0:
        s.scaler.unscale_(s.optimizer)
        norm = nn.utils.clip_grad_norm_(s.raw_model.parameters(), s.cfg.grad_clip)
    s.scaler.step(s.optimizer)
    s.scaler.update()
    s.optimizer.zero_grad(set_to_none=True)
    return norm


def boundary(s: Session) -> bool:
    """Evaluate, remember the best, save, and tidy up: what nanoGPT hides inside an iteration.
    Returns whether the run's target is reached.
    """
    drain(s)  # a loss that is no longer a number must not reach a checkpoint
    with s.clock.phase("gc"):
        gc.collect()  # first: what follows keeps the caches and the other cores warm for the step
    step = s.state.step
    before = s.clock.spent_ns("eval")
    with s.clock.phase("eval"):
        result = evaluate(s.score, s.data, s.windows, s.cfg, s.eval_rows, s.device, s.stop.is_set)
        can_write = result is not None and math.isfinite(result.val_loss)
        written = sample_text(s) if can_write else None
    if result is None:
        return False
    s.state.evaluated_at, s.last_val_loss = step, result.val_loss
    with s.clock.phase("log"):
        wall_ms = (s.clock.spent_ns("eval") - before) / 1e6
        record = {"kind": "eval", "iter": step, "wall_ms": wall_ms, **asdict(result)}
        s.log.write(record)
        if written is not None:
            s.event("sample", {"text": written})
        s.console.evaluation(record)
        s.evals.measured(wall_ms)
        say_what_evaluating_costs(s)
        correct_peak(s)
    if not math.isfinite(result.val_loss + result.train_loss):
        what = f"step {step}: the validation loss is {result.val_loss}"
        raise saves.not_finite(s, what, spoilt_step=None)  # it is not saved yet
    if not s.cfg.eval_only:
        saves.save_after_evaluation(s, result.val_loss)
    return s.cfg.target_val_loss > 0 and result.val_loss <= s.cfg.target_val_loss


def sample_text(s: Session) -> str | None:
    """What the model writes by now, if the run is to keep that. Draws from no shared generator."""
    if s.codec is None:
        return None
    return short_text(s.raw_model, s.codec, s.cfg.sample_tokens, s.stop.is_set)


def say_what_evaluating_costs(s: Session) -> None:
    """Once, as soon as it is known."""
    iter_ms = s.iter_ms()
    cost = s.evals.cost(iter_ms) if iter_ms is not None and not s.cfg.eval_only else None
    if cost is not None and "eval cost" not in s.warned:
        s.warned.add("eval cost")
        s.console.say(cost)


# -- iterations ---------------------------------------------------------------------------------


def report_iteration(
    s: Session, step: int, lr: float, loss: Tensor, grad_norm: Tensor | None
) -> None:
    """Close the iteration's window, and show every iteration the device has finished."""
    norm = loss.new_full((), math.nan) if grad_norm is None else grad_norm
    values = s.device.fetch_later(torch.stack((loss, norm)))
    s.pending.append(PendingIteration(step, lr, values, s.clock.lap()))
    read_back(s)


def drain(s: Session) -> None:
    """Wait for the device and log all it has done. The wait is for the model, and billed to it."""
    with s.clock.phase("forward_backward"):
        s.device.drain()
    with s.clock.phase("log"):
        read_back(s)


def read_back(s: Session) -> None:
    """Log the iterations whose results have arrived."""
    while s.pending and s.pending[0].lap.is_settled():
        done = s.pending.popleft()
        loss, grad_norm = done.loss_and_norm.tolist()
        step_ms = done.lap.step_ms()
        share = mfu(s, step_ms)
        s.fastest_mfu = max(s.fastest_mfu, share or 0.0)
        record: dict[str, Any] = {
            "kind": "iter",
            "iter": done.step,
            "loss": loss,
            "lr": done.lr,
            "grad_norm": grad_norm if math.isfinite(grad_norm) else None,
            "tokens": s.cfg.tokens_per_iter,
            "wall_ms": done.lap.wall_ms,
            "phases": done.lap.phases_ms(),
            "mfu": None if share is not None and is_peak_too_low(s, share) else share,
        }
        if done.lap.device_phases is not None:
            record["device_phases"] = done.lap.device_phases
        if done.step % MEMORY_EVERY == 0:
            record["memory_bytes"] = s.device.used_bytes()
        s.log.write(record)
        if not math.isfinite(loss):
            what = f"iter {done.step}: the loss is {loss}"
            raise saves.not_finite(s, what, spoilt_step=done.step)
        if s.cfg.grad_clip > 0 and not s.scaler.is_enabled() and not math.isfinite(grad_norm):
            # The loss of this iteration is the last good one, and nothing can be learned from it.
            what = f"iter {done.step}: the gradient's norm is {grad_norm}"
            raise saves.not_finite(s, what, spoilt_step=done.step)
        s.console.iteration(record, step_ms, done.step % s.cfg.log_interval == 0, s.clock.total())
        if s.log.failure and "log" not in s.warned:
            s.warned.add("log")
            s.console.say(f"warning: the run log has gaps: {s.log.failure}; training goes on")
        s.say_what_loggers_lost()


def mfu(s: Session, step_ms: float) -> float | None:
    """The share of the device's peak that the step's model FLOPs make up."""
    if s.peak.flops_per_s is None or step_ms <= 0:
        return None
    flops = s.raw_model.config.flops_per_token() * s.cfg.tokens_per_iter
    return flops / (step_ms / 1000) / s.peak.flops_per_s


def is_peak_too_low(s: Session, share: float) -> bool:
    """No step outruns the machine: an MFU above 100 % means the peak was measured too low."""
    return s.device.type == "cpu" and share > 1


def correct_peak(s: Session) -> None:
    """Measure it again, at a boundary."""
    if not is_peak_too_low(s, s.fastest_mfu):
        return
    before, s.fastest_mfu = s.peak, 0.0
    s.peak = device.measured_again(before, s.device)
    if s.peak is not before:
        s.console.say(f"peak for MFU: {s.peak.source}; the machine was busy at the first try")
        s.event("peak", {"peak_flops": s.peak.flops_per_s, "peak_source": s.peak.source})


# -- beginning and end --------------------------------------------------------------------------


def run(s: Session, findings: Findings = lambda run_dir: []) -> None:
    """Train a session to its end and show where the time went, whatever the end is."""
    reason = "error"
    with s.clock.phase("gc"):
        gc.freeze()  # what is alive now stays alive: the collector need not look at it again
        gc.disable()
    try:
        with s.clock.phase("log"):
            s.console.start_progress(s.state.step, s.cfg.max_iters)
        with naming_memory_errors(s):
            reason = loop_or_loss(s)
            drain(s)
            finish(s, reason)
    except TrainingFailed:
        reason = "failed"
        raise
    except DeviceError:
        reason = "oom"
        raise
    except DataError:
        drain(s)
        saves.save_last(s)  # the weights are those of the last whole update
        raise
    finally:
        gc.enable()
        gc.unfreeze()
        try:
            close_books(s, reason)
        finally:
            s.close()  # whatever happened: threads that are not told to end never do
    summary(s, findings)


def loop_or_loss(s: Session) -> str:
    """Train until there is a reason to end. A replica that is lost ends a run that is asked to stop
    as any signal does, and fails any other; what is saved is the last whole update."""
    try:
        return loop(s)
    except ReplicaLost as lost:
        if lost.is_torn:
            saves.wait_for_writer(s)
            cost = f"; the weights after {s.state.step} updates were half changed and are not saved"
            raise TrainingFailed(f"{lost}{cost}; {how_to_go_on(s)}") from lost
        if s.stop.is_set():
            s.console.say(f"note: {lost}")
            return "signal"
        drain(s)
        if not s.cfg.eval_only:
            saves.save_last(s)  # a warning says if it could not be
        raise TrainingFailed(f"{lost}; {how_to_go_on(s)}") from lost


def how_to_go_on(s: Session) -> str:
    newest = tensors.newest_path(s.run_dir)
    if newest is None:
        return "no checkpoint had been saved yet"
    again = f"stepglass train --out_dir={shlex.quote(str(s.run_dir))} --init_from=resume"
    return f"newest checkpoint: {newest}; go on with: {again}"


def close_books(s: Session, reason: str) -> None:
    """The last record, and the ledger."""
    saves.wait_for_writer(s)
    s.console.stop_progress()
    total = s.clock.total()
    beside = {
        "checkpoint_writer_ms": s.saver.background_ms,
        "saves": s.saver.num_saved,
        "failed_saves": s.saver.num_failed,
    }
    s.log.write(
        {
            "kind": "end",
            "reason": reason,
            "iter": s.state.step,
            "ledger": ledger.as_record(total),
            "background": beside,
        }
    )
    s.console.ledger(total, beside)


def finish(s: Session, reason: str) -> None:
    """The last checkpoint."""
    if reason == "signal":
        s.event("signal", {"name": s.stop.name})
        s.console.say(f"stopped by {s.stop.name} after {s.state.step} updates")
    if reason == "target":
        s.console.say(
            f"target reached after {s.state.step} updates: val loss {units.loss(s.last_val_loss)} "
            f"<= {units.loss(s.cfg.target_val_loss)} over the whole validation split"
        )
    elif s.cfg.target_val_loss and reason == "finished":
        s.console.say(
            f"target not reached: val loss {units.loss(s.last_val_loss)} > "
            f"{units.loss(s.cfg.target_val_loss)} after {s.state.step} updates"
        )
    is_saved = s.cfg.eval_only or saves.save_last(s)
    if s.rescued_from or s.run.lost:
        raise saves.folder_lost(s, is_saved)
    if not is_saved:
        kept = next(iter(checkpoints.committed(s.run_dir)), "none")
        raise TrainingFailed(
            f"step {s.state.step} could not be saved (see the warnings above); newest: {kept}"
        )


def summary(s: Session, findings: Findings) -> None:
    cost_ms = clock.cost_per_switch_ns() * s.clock.num_switches / 1e6
    share = cost_ms / s.clock.total().wall_ms
    s.console.say(
        f"  the clock itself took {units.duration(cost_ms)}, {units.percent(share, 3)}, inside "
        "the phases above"
    )
    if s.state.best_step is not None:
        s.console.say(
            f"best val loss {units.loss(s.state.best_val_loss)} at step {s.state.best_step}"
        )
    for line in findings(s.run_dir):
        s.console.say(line)
    newest = next(iter(checkpoints.committed(s.run_dir)), None)
    if newest is not None:
        s.console.say(f"newest checkpoint: {newest}")
        if s.state.step < s.cfg.max_iters or s.state.evaluated_at != s.state.step:
            s.console.say(
                f"go on with: stepglass train --out_dir={shlex.quote(str(s.run_dir))} "
                "--init_from=resume"
            )
