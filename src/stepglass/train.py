"""Training: the loop, on one page.

    run(set_up(cfg, argv, clock, console, stop))

The loop does what nanoGPT's does, in the same order: evaluate and save at a boundary, then one
update. An iteration's record holds all the time since the one before it, boundary included, split
into phases that add up. The loop never decides how a checkpoint is written or a log line looks.
"""

import gc
import math
import shlex
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor, nn

from stepglass import checkpoint, checkpoint_dir, clock, device, ledger, units
from stepglass.errors import DataError, DeviceError, TrainingFailed
from stepglass.evaluate import evaluate
from stepglass.optim import lr_at, set_lr
from stepglass.saver import SaveOutcome, SaveRequest
from stepglass.session import (
    PendingIteration,
    PendingSave,
    Session,
    environment,
    naming_memory_errors,
)

TRIES_AT_THE_END = 3

# -- the loop -----------------------------------------------------------------------------------


def loop(s: Session) -> str:
    """Train until there is a reason to end, and return it."""
    cfg = s.cfg
    while True:
        step = s.state.step
        is_last = step >= cfg.max_iters
        if s.stop.is_set():
            return "signal"
        is_boundary = step % cfg.eval_interval == 0 or is_last or cfg.eval_only
        if is_boundary and s.state.evaluated_at != step:
            boundary(s)
            continue  # a signal may have come meanwhile
        if is_last or cfg.eval_only:
            return "finished"
        mind_checkpoints(s)

        with s.clock.phase("data"):
            micro_batches = s.batch(step)
        step_loss: Tensor | float = 0.0
        for host_x, host_y in micro_batches:
            with s.clock.phase("data"):
                x, y = s.device.send(host_x), s.device.send(host_y)
            with s.clock.phase("forward_backward"):
                with s.device.autocast():
                    _, loss = s.model(x, y)
                    loss = loss / cfg.gradient_accumulation_steps
                s.scaler.scale(loss).backward()
                step_loss = step_loss + loss.detach()  # stays on the device: nothing waits for it
                s.device.finish_queue()
        with s.clock.phase("optimizer"):
            lr = lr_at(step, cfg)
            set_lr(s.optimizer, lr)
            grad_norm = apply_gradients(s)
            s.device.finish_queue()
        s.state.step += 1
        s.state.tokens += cfg.tokens_per_iter
        with s.clock.phase("log"):
            report_iteration(s, step, lr, step_loss, grad_norm)


def apply_gradients(s: Session) -> Tensor | None:
    """Clip, update, clear. Returns the gradient's norm before clipping, where it is computed."""
    if s.pending_save is not None:
        protect_snapshot(s)
    norm = None
    if s.cfg.grad_clip > 0:
        s.scaler.unscale_(s.optimizer)
        norm = nn.utils.clip_grad_norm_(s.raw_model.parameters(), s.cfg.grad_clip)
    s.scaler.step(s.optimizer)
    s.scaler.update()
    s.optimizer.zero_grad(set_to_none=True)
    return norm


def boundary(s: Session) -> None:
    """Evaluate, remember the best, save, and tidy up: what nanoGPT hides inside an iteration."""
    drain(s)  # a loss that is no longer a number must not reach a checkpoint
    with s.clock.phase("gc"):
        gc.collect()  # first: what follows keeps the caches and the other cores warm for the step
    step = s.state.step
    before = s.clock.spent_ns("eval")
    with s.clock.phase("eval"):
        result = evaluate(s.model, s.data, s.windows, s.cfg, s.device, s.stop.is_set)
    if result is None:
        return
    s.state.evaluated_at = step
    with s.clock.phase("log"):
        wall_ms = (s.clock.spent_ns("eval") - before) / 1e6
        record = {"kind": "eval", "iter": step, "wall_ms": wall_ms, **asdict(result)}
        s.log.write(record)
        s.console.evaluation(record)
        correct_peak(s)
    report_saves(s)  # a best that could not be saved is not the one to beat
    if not math.isfinite(result.val_loss + result.train_loss):
        raise not_finite(s, f"step {step}: the validation loss is {result.val_loss}")
    if s.cfg.eval_only:
        return
    best_before = (s.state.best_val_loss, s.state.best_step)
    is_best = best_before[0] is None or result.val_loss < best_before[0]
    if is_best:
        s.state.best_val_loss, s.state.best_step = result.val_loss, step
    if step > 0 and (is_best or s.cfg.always_save_checkpoint):
        save(s, best_before if is_best else None)


# -- checkpoints --------------------------------------------------------------------------------


def mind_checkpoints(s: Session) -> None:
    """Between two updates: say what the writer has done, and save if it is time to."""
    if s.saver.finished or s.saver.notes:
        report_saves(s)
    step = s.state.step
    if step == 0 or step == s.last_saved_step:
        return
    if not s.saver.is_reserved:
        s.saver.reserve(live_tensors(s))
    if s.schedule.is_due(step, s.clock.elapsed_ms()):
        drain(s)
        save(s)


def save(s: Session, best_before: tuple[float | None, int | None] | None = None) -> None:
    """Have the state copied and written. `best_before` is given if this is a new best.

    The copy is made while the next update's gradients are computed; training waits for what is
    left of it when the weights are to change, and for the save before if that is not done yet.
    """
    if s.cfg.grad_clip == 0 and not all(p.isfinite().all() for p in s.raw_model.parameters()):
        raise not_finite(s, f"step {s.state.step}: weights are no longer finite")
    wait_for_writer(s)
    before = s.clock.spent_ns("checkpoint")
    with s.clock.phase("checkpoint"):
        if not s.saver.is_reserved:
            s.saver.reserve(live_tensors(s))
            s.saver.wait()
        best_val_loss = s.state.best_val_loss if best_before else None
        request = SaveRequest(s.state.step, state_of(s), best_val_loss)
        s.saver.save(live_tensors(s), request)
    now_ms = s.clock.elapsed_ms()
    stall_ms = (s.clock.spent_ns("checkpoint") - before) / 1e6
    s.pending_save = PendingSave(s.state.step, stall_ms, best_before or best_of(s))
    s.last_saved_step = s.state.step
    s.schedule.began(now_ms)
    with s.clock.phase("log"):
        s.console.say(f"saving checkpoint to {s.cfg.out_dir}")


def protect_snapshot(s: Session) -> None:
    """The weights are about to change: what is still to be copied of them must be copied now."""
    assert s.pending_save is not None
    before = s.clock.spent_ns("checkpoint")
    with s.clock.phase("checkpoint"):
        s.saver.protect_snapshot()
    s.pending_save.stall_ms += (s.clock.spent_ns("checkpoint") - before) / 1e6


def wait_for_writer(s: Session) -> None:
    """There is one set of buffers: the save before has to be on disk first."""
    if s.saver.is_busy():
        before = s.clock.spent_ns("checkpoint")
        with s.clock.phase("checkpoint"):
            s.saver.wait()
        if s.pending_save is not None:
            waited_ms = (s.clock.spent_ns("checkpoint") - before) / 1e6
            step = s.pending_save.step
            s.console.say(f"waited {units.duration(waited_ms)} for checkpoint {step} to be written")
            s.event("checkpoint_wait", {"step": step, "wait_ms": waited_ms})
    report_saves(s)


def report_saves(s: Session) -> None:
    """What the writer has committed, or could not: a disk that fails costs a warning, not the
    run."""
    with s.clock.phase("log"):
        while s.saver.notes:
            s.console.say(s.saver.notes.popleft())
        while s.saver.finished:
            report_save(s, s.saver.finished.popleft())


def report_save(s: Session, outcome: SaveOutcome) -> None:
    pending, s.pending_save = s.pending_save, None
    assert pending is not None, "an outcome belongs to a save"
    if outcome.error is not None:
        s.console.say(
            f"warning: checkpoint {outcome.step} failed, the {ordinal(s.saver.num_failed)} so far: "
            f"{outcome.error}; training goes on, and the next save will try again"
        )
        s.event(
            "checkpoint_failed",
            {"step": outcome.step, "reason": outcome.error, "failed": s.saver.num_failed},
        )
        if outcome.is_best and s.state.best_step == outcome.step:
            s.state.best_val_loss, s.state.best_step = pending.best_before  # it is not on disk
        if outcome.path is None:
            s.last_saved_step = -1
            return
    assert outcome.path is not None
    record = {
        "kind": "checkpoint",
        "iter": outcome.step,
        "stall_ms": pending.stall_ms,
        "background_ms": outcome.background_ms,
        "bytes": outcome.num_bytes,
        "path": str(outcome.path.relative_to(s.run_dir)),
        "is_best": outcome.is_best and outcome.error is None,
    }
    s.log.write(record)
    s.console.checkpoint(record)
    before = s.schedule.every_ms(s.clock.elapsed_ms())
    s.schedule.measured(pending.stall_ms, outcome.background_ms)
    if s.schedule.every_ms(s.clock.elapsed_ms()) > 1.1 * before:
        s.console.say(f"checkpoints: {s.schedule.bound(s.clock.elapsed_ms())}")


def ordinal(number: int) -> str:
    return {1: "first", 2: "second", 3: "third"}.get(number, f"{number}th")


def best_of(s: Session) -> tuple[float | None, int | None]:
    return s.state.best_val_loss, s.state.best_step


def live_tensors(s: Session) -> checkpoint.Files:
    return checkpoint.live_tensors(s.raw_model, s.optimizer, s.device.type)


def state_of(s: Session) -> dict[str, Any]:
    """All of the state that is no tensor."""
    return {
        **asdict(s.state),
        "config": asdict(s.cfg),
        "model_config": asdict(s.raw_model.config),
        "scaler": s.scaler.state_dict(),
        "data": s.data.fingerprint,
        "environment": environment(s.device),
    }


# -- iterations ---------------------------------------------------------------------------------


def report_iteration(
    s: Session, step: int, lr: float, loss: Tensor | float, grad_norm: Tensor | None
) -> None:
    """Close the iteration's window, and show every iteration the device has finished."""
    assert isinstance(loss, Tensor), "an update has at least one micro-batch"
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
        record: dict[str, Any] = {
            "kind": "iter",
            "iter": done.step,
            "loss": loss,
            "lr": done.lr,
            "grad_norm": grad_norm if math.isfinite(grad_norm) else None,
            "tokens": s.cfg.tokens_per_iter,
            "wall_ms": done.lap.wall_ms,
            "phases": done.lap.phases_ms(),
            "mfu": mfu(s, step_ms),
        }
        if done.lap.device_phases is not None:
            record["device_phases"] = done.lap.device_phases
        s.fastest_mfu = max(s.fastest_mfu, record["mfu"] or 0.0)
        s.log.write(record)
        if not math.isfinite(loss):
            raise not_finite(s, f"iter {done.step}: the loss is {loss}")
        if s.cfg.grad_clip > 0 and not s.scaler.is_enabled() and not math.isfinite(grad_norm):
            # The loss of this iteration is the last good one: the update has spoilt the weights.
            raise not_finite(s, f"iter {done.step}: the gradient's norm is {grad_norm}")
        s.console.iteration(record, step_ms, done.step % s.cfg.log_interval == 0, s.clock.total())
        if s.log.failure and "log" not in s.warned:
            s.warned.add("log")
            s.console.say(f"warning: the run log has gaps: {s.log.failure}; training goes on")


def mfu(s: Session, step_ms: float) -> float | None:
    """The share of the device's peak that the step's model FLOPs make up."""
    if s.peak.flops_per_s is None or step_ms <= 0:
        return None
    flops = s.raw_model.config.flops_per_token() * s.cfg.tokens_per_iter
    return flops / (step_ms / 1000) / s.peak.flops_per_s


def correct_peak(s: Session) -> None:
    """No step outruns the machine: an MFU above 100 % means the peak was measured too low."""
    if s.device.type != "cpu" or s.fastest_mfu <= 1:
        return
    before, s.fastest_mfu = s.peak, 0.0
    s.peak = device.measured_again(before, s.device)
    if s.peak is not before:
        s.console.say(f"peak for MFU: {s.peak.source}; the machine was busy at the first try")
        s.event("peak", {"peak_flops": s.peak.flops_per_s, "peak_source": s.peak.source})


def not_finite(s: Session, what: str) -> TrainingFailed:
    """Numbers have run away. Says what is still good, and what to change."""
    s.event("nan", {"what": what})
    wait_for_writer(s)
    newest = next(iter(checkpoint_dir.committed(s.run_dir)), None)
    kept = f"the last good checkpoint is {newest}" if newest else "no checkpoint had been saved yet"
    remedies = [f"--learning_rate={s.cfg.learning_rate / 2:g}"]
    if s.device.dtype is torch.float16:
        remedies.append("--dtype=float32")
    if s.cfg.grad_clip == 0:
        remedies.append("--grad_clip=1.0")
    again = f"--out_dir={shlex.quote(s.cfg.out_dir)} --init_from=resume " if newest else ""
    return TrainingFailed(f"{what}; {kept}. Try {again}{' '.join(remedies)}")


# -- beginning and end --------------------------------------------------------------------------


def run(s: Session) -> None:
    """Train a session to its end and show where the time went, whatever the end is."""
    reason = "error"
    with s.clock.phase("gc"):
        gc.collect()
        gc.freeze()  # what is alive now stays alive: the collector need not look at it again
        gc.disable()
    try:
        s.console.start_progress(s.state.step, s.cfg.max_iters)
        with naming_memory_errors(s):
            reason = loop(s)
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
        save_last(s)  # the weights are those of the last whole update
        raise
    finally:
        gc.enable()
        gc.unfreeze()
        wait_for_writer(s)
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
        s.close()
        s.console.ledger(total, beside)
    summary(s)


def finish(s: Session, reason: str) -> None:
    """The last checkpoint."""
    wait_for_writer(s)
    if reason == "signal":
        s.event("signal", {"name": s.stop.name})
        s.console.say(f"stopped by {s.stop.name} after {s.state.step} updates")
    if not s.cfg.eval_only and not save_last(s):
        kept = next(iter(checkpoint_dir.committed(s.run_dir)), "none")
        raise TrainingFailed(
            f"step {s.state.step} could not be saved (see the warnings above); newest: {kept}"
        )


def save_last(s: Session) -> bool:
    """Save what is not saved yet, and see to it that it is on disk."""
    for _ in range(TRIES_AT_THE_END):
        if s.state.step in (0, s.last_saved_step):
            return True
        save(s)
        wait_for_writer(s)
    return s.state.step == s.last_saved_step


def summary(s: Session) -> None:
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
    newest = next(iter(checkpoint_dir.committed(s.run_dir)), None)
    if newest is not None:
        s.console.say(f"newest checkpoint: {newest}")
        if s.state.step < s.cfg.max_iters:
            s.console.say(
                f"go on with: stepglass train --out_dir={shlex.quote(s.cfg.out_dir)} "
                "--init_from=resume"
            )
