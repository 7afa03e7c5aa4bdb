"""When training saves, and what it does about how that ended.

The loop asks `is_due`, and protects the snapshot before it changes the weights; an evaluation may
find a new best; the end sees to it that the last state is on disk. How a checkpoint is written is
the saver's affair.
"""

import shlex
from dataclasses import asdict
from typing import Any

import torch

from stepglass import units
from stepglass.checkpoint import tensors
from stepglass.checkpoint.writer import SaveOutcome, SaveRequest
from stepglass.errors import TrainingFailed, os_reason
from stepglass.files import FileOps
from stepglass.models import registry
from stepglass.run_dir import checkpoints
from stepglass.run_dir.folder import FolderLost
from stepglass.run_dir.opening import open_elsewhere
from stepglass.train.session import PendingSave, Session, environment

TRIES_AT_THE_END = 3


def is_due(s: Session) -> bool:
    """Asked between two updates: says what the writer has done, and whether to save now."""
    if s.saver.finished or s.saver.notes:
        report_saves(s)
    step = s.state.step
    if step in (0, s.last_saved_step):
        return False
    return s.schedule.is_due(step, s.clock.elapsed_ms())


def save_after_evaluation(s: Session, val_loss: float) -> None:
    """Save if this is the best so far, or if every evaluation is to be saved."""
    if s.pending_save is not None and s.pending_save.is_best:
        wait_for_writer(s)  # whether there is a best to beat is not known yet
    report_saves(s)
    s.last_val_loss = val_loss
    best_before = note_best(s)
    if s.state.step > 0 and (best_before is not None or s.cfg.always_save_checkpoint):
        save(s, best_before)


def note_best(s: Session) -> tuple[float | None, int | None] | None:
    """If the evaluation at this step is the best so far, remember that, and return what was."""
    before = s.state.best_val_loss, s.state.best_step
    if s.last_val_loss is None or s.state.evaluated_at != s.state.step:
        return None
    if before[0] is not None and s.last_val_loss >= before[0]:
        return None
    s.state.best_val_loss, s.state.best_step = s.last_val_loss, s.state.step
    return before


def save(
    s: Session,
    best_before: tuple[float | None, int | None] | None = None,
    is_last: bool = False,
) -> None:
    """Have the state copied and written. `best_before` is given if this is a new best.

    The copy is made while the next update's gradients are computed; training waits for what is
    left of it when the weights are to change, and for the save before if that is not done yet.
    """
    wait_for_writer(s)
    before = s.clock.spent_ns("checkpoint")
    with s.clock.phase("checkpoint"):
        sums = torch.stack([p.detach().sum() for p in s.raw_model.parameters()])
        if not sums.isfinite().all():
            what = f"step {s.state.step}: weights are no longer finite"
            raise not_finite(s, what, spoilt_step=None)  # it is not saved yet
        if not s.saver.is_reserved:
            s.saver.reserve(live_tensors(s))
            s.saver.wait()
        best_val_loss = s.state.best_val_loss if best_before else None
        request = SaveRequest(s.state.step, state_of(s), best_val_loss, s.tokenizer, is_last)
        s.saver.save(live_tensors(s), request)
    stall_ms = (s.clock.spent_ns("checkpoint") - before) / 1e6
    s.pending_save = PendingSave(s.state.step, stall_ms, best_before)
    s.last_saved_step = s.state.step
    s.schedule.began(s.clock.elapsed_ms())
    with s.clock.phase("log"):
        say_where_the_run_is(s)
        s.console.say(f"saving checkpoint to {s.shown_dir}")


def say_where_the_run_is(s: Session) -> None:
    """Its folder may have been moved meanwhile: the run has followed it."""
    before, s.shown_dir = s.shown_dir, s.run_dir
    if before != s.shown_dir and not s.run.folder.is_gone():
        s.console.say(f"note: {before} was moved to {s.shown_dir}; the run goes on there")
        s.event("moved", {"from": str(before), "to": str(s.shown_dir)})


def save_last(s: Session) -> bool:
    """Save what is not saved yet, and see to it that it is on disk, if need be in another
    folder."""
    for _ in range(TRIES_AT_THE_END):
        wait_for_writer(s)
        if s.run.lost is not None and s.state.step > 0 and not go_elsewhere(s):
            return False
        best_before = note_best(s)
        if s.state.step == 0 or (s.last_saved_step == s.state.step and best_before is None):
            return True
        save(s, best_before, is_last=True)
    wait_for_writer(s)
    return s.last_saved_step == s.state.step


def go_elsewhere(s: Session) -> bool:
    """The run's folder is gone, or another run's: what is saved from now on goes into a new one."""
    try:
        run = open_elsewhere(s.run)
    except OSError as error:
        s.console.say(f"warning: no other folder could be made to save in: {os_reason(error)}")
        return False
    why = s.run.lost
    s.log.move_to(run.folder, run.check)
    s.saver.move_to(run)
    s.run.close()
    s.run, s.shown_dir, s.rescued_from = run, run.where(), why
    s.last_saved_step = -1  # what was saved before was saved elsewhere
    s.console.say(f"warning: {why}; the run saves in {s.shown_dir} instead")
    s.event("folder_lost", {"why": why, "saved_in": str(s.shown_dir)})
    return True


def protect_snapshot(s: Session) -> None:
    """The weights are about to change: what is still to be copied of them must be copied now."""
    if s.pending_save is None:
        return
    before = s.clock.spent_ns("checkpoint")
    with s.clock.phase("checkpoint"):
        s.saver.protect_snapshot()
    s.pending_save.stall_ms += (s.clock.spent_ns("checkpoint") - before) / 1e6


def folder_lost(s: Session, is_saved: bool) -> TrainingFailed:
    """The run cannot go on where it was. Says why, and where its last state is."""
    why = s.rescued_from or s.run.lost
    if s.state.step == 0 or s.cfg.eval_only:
        return TrainingFailed(f"{why}; there was nothing to save")
    if not is_saved:
        return TrainingFailed(f"{why}; the state after {s.state.step} updates could not be saved")
    place = shlex.quote(str(s.run_dir))
    return TrainingFailed(
        f"{why}; the state after {s.state.step} updates is saved in {s.run_dir}; go on with: "
        f"stepglass train --out_dir={place} --init_from=resume"
    )


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
    """Log what became of a save."""
    pending, s.pending_save = s.pending_save, None
    assert pending is not None, "an outcome belongs to a save"
    if outcome.error is not None:
        if s.run.lost is None:  # or the run is about to stop, and says so
            s.console.say(
                f"warning: checkpoint {outcome.step} failed ({s.saver.num_failed} so far): "
                f"{outcome.error}; training goes on, and the next save will try again"
            )
        s.event(
            "checkpoint_failed",
            {"step": outcome.step, "reason": outcome.error, "failed": s.saver.num_failed},
        )
        if pending.best_before is not None and not outcome.is_best:
            s.state.best_val_loss, s.state.best_step = pending.best_before  # best.json says so too
        if outcome.name is None:
            s.last_saved_step = -1
            return
    assert outcome.name is not None
    record = {
        "kind": "checkpoint",
        "iter": outcome.step,
        "stall_ms": pending.stall_ms,
        "background_ms": outcome.background_ms,
        "bytes": outcome.num_bytes,
        "path": f"ckpt/{outcome.name}",
        "is_best": outcome.is_best,
    }
    s.log.write(record)
    s.console.checkpoint(record)
    before = s.schedule.every_ms(s.clock.elapsed_ms())
    s.schedule.measured(pending.stall_ms, outcome.background_ms, outcome.taken_ms)
    if s.schedule.is_auto and s.schedule.every_ms(s.clock.elapsed_ms()) > 1.1 * before:
        s.console.say(f"checkpoints: {s.schedule.bound(s.clock.elapsed_ms())}")


def set_spoilt_aside(s: Session, step: int) -> None:
    """So that a run resumed goes on from one that is good. What this process has only read, or
    what an evaluation found in order, is not to blame."""
    if step in (s.first_step, s.state.evaluated_at):
        return
    for path in checkpoints.committed(s.run_dir):
        if checkpoints.step_of(path) == step:
            try:
                s.run.check()
                aside = checkpoints.disown(FileOps(), s.run.folder, path.name)
            except FolderLost:
                return
            except OSError as error:
                s.console.say(f"warning: {path} is spoilt: {os_reason(error)}; delete it")
            else:
                place = path.with_name(aside)
                s.console.say(f"note: {path.name} is spoilt; it is in {place} now")


def live_tensors(s: Session) -> tensors.Files:
    return tensors.live_tensors(s.raw_model, s.optimizer, s.device.type)


def state_of(s: Session) -> dict[str, Any]:
    """All of the state that is no tensor."""
    return {
        **asdict(s.state),
        "run_id": s.run.run_id,
        "config": asdict(s.cfg),
        "model_config": registry.as_record(s.raw_model.config),
        "scaler": s.scaler.state_dict(),
        "data": s.data.fingerprint,
        "environment": environment(s.device),
    }


def not_finite(s: Session, what: str, spoilt_step: int | None) -> TrainingFailed:
    """Numbers have run away. Says what is still good, and what to change. A checkpoint of the step
    whose weights gave them was written before anybody knew."""
    s.event("nan", {"what": what})
    wait_for_writer(s)
    if spoilt_step is not None:
        set_spoilt_aside(s, spoilt_step)
    newest = tensors.newest_path(s.run_dir)
    kept = f"the last good checkpoint is {newest}" if newest else "no checkpoint had been saved yet"
    rates = ["learning_rate", *(["muon_lr"] if s.cfg.uses_muon else [])]
    rates += ["embedding_lr"] if s.cfg.embedding_lr else []
    remedies = [f"--{name}={getattr(s.cfg, name) / 2:g}" for name in rates]
    if s.device.dtype is torch.float16:
        remedies.append("--dtype=float32")
    if s.cfg.grad_clip == 0:
        remedies.append("--grad_clip=1.0")
    again = f"--out_dir={shlex.quote(str(s.run_dir))} --init_from=resume " if newest else ""
    return TrainingFailed(f"{what}; {kept}. Try {again}{' '.join(remedies)}")
