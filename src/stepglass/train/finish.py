"""Runs the training loop to its end, and reports how the run ended."""

import shlex
from collections.abc import Callable
from pathlib import Path

import torch

from stepglass import units
from stepglass.checkpoint import tensors
from stepglass.errors import DataError, DeviceError, TrainingFailed, os_reason
from stepglass.files import FileOps
from stepglass.measure import clock
from stepglass.measure.console_lines import stopped_line
from stepglass.measure.event_details import NotFiniteEvent, ProcessLostEvent, SignalEvent
from stepglass.measure.ledger import ledger_totals
from stepglass.measure.records import EndRecord
from stepglass.process import freeze_collector, thaw_collector
from stepglass.run_dir import checkpoints, commit
from stepglass.run_dir.folder import FolderLost
from stepglass.train.by_the_clock import keep_length
from stepglass.train.engines.engine import EngineLost
from stepglass.train.loop import loop
from stepglass.train.memory_errors import naming_memory_errors
from stepglass.train.run import NotFinite, Run
from stepglass.train.time_left import expected_last_step, time_left_ms
from stepglass.train.training import Training

Findings = Callable[[Path], list[str]]  # returns remarks about the log of a finished run


def train_to_the_end(t: Training, findings: Findings = lambda run_dir: []) -> None:
    """Train, save the last state, and show where the time went."""
    run = t.run
    reason = "error"
    with run.clock.phase("gc"):
        freeze_collector()
    try:
        with run.clock.phase("log"):
            run.console.start_progress(
                lambda: expected_last_step(t), lambda: time_left_ms(t), run.state.best_val_loss
            )
        with naming_memory_errors(run):
            reason = run_loop(t)
            t.iterations.drain()
            finish(t, reason)
    except NotFinite as found:
        reason = "failed"
        raise not_finite(t, found) from None
    except EngineLost as lost:  # in the last save, for which all processes are needed
        reason = "failed"
        run.event(ProcessLostEvent(why=str(lost)))
        t.saves.wait()
        raise lost_for_good(run, lost) from lost
    except TrainingFailed:
        reason = "failed"
        raise
    except DeviceError:
        reason = "oom"
        raise
    except DataError:
        t.iterations.drain()
        t.saves.save_last()  # the weights are those of the last complete update
        raise
    finally:
        thaw_collector()
        try:
            write_end(t, reason)
        finally:
            t.close()  # always: otherwise its threads would keep the process alive
    say_summary(run, findings)


def run_loop(t: Training) -> str:
    """Train until there is a reason to stop, and return the reason.

    If the engine is lost while the run is being stopped by a signal, the run ends normally.
    Otherwise it fails. In both cases the state after the last complete update is saved, unless an
    update was interrupted halfway: then the weights are not saved.
    """
    run = t.run
    try:
        return loop(t)
    except EngineLost as lost:
        run.event(ProcessLostEvent(why=str(lost)))
        if lost.is_torn:
            t.saves.wait()
            raise lost_for_good(run, lost) from lost
        if run.stop.is_set():
            run.console.say(f"note: {lost}")
            return "signal"
        t.iterations.drain()
        if not run.cfg.eval_only:
            t.saves.save_last()  # prints a warning if it fails
        raise TrainingFailed(f"{lost}; {how_to_go_on(run)}") from lost


def finish(t: Training, reason: str) -> None:
    """Print why the run ends, and save its last state."""
    run = t.run
    if reason == "finished" and run.budget is not None:
        keep_length(t)
    say_why(run, reason)
    is_saved = run.cfg.eval_only or t.saves.save_last()
    if t.saves.rescued_from or run.folder.lost:
        raise folder_lost(t, is_saved)
    if not is_saved:
        kept = next(iter(checkpoints.committed(run.run_dir)), "none")
        raise TrainingFailed(
            f"step {run.state.step} could not be saved (see the warnings above); newest: {kept}"
        )


def say_why(run: Run, reason: str) -> None:
    target, step = run.cfg.target_val_loss, run.state.step
    if reason == "signal":
        run.event(SignalEvent(name=run.stop.name or units.UNKNOWN))
        run.console.say(stopped_line(run.stop.name, step))
    if reason == "patience":
        run.console.say(
            f"ended by patience after {step} updates: {run.state.evals_since_best} evaluations "
            f"without a new best; --patience=0 goes on to the end"
        )
    if reason == "target":
        run.console.say(
            f"target reached after {step} updates: val loss {units.loss(run.last_val_loss)} "
            f"<= {units.loss(target)} over the whole validation split"
        )
    elif target and reason == "finished":
        run.console.say(
            f"target not reached: val loss {units.loss(run.last_val_loss)} > "
            f"{units.loss(target)} after {step} updates"
        )


def write_end(t: Training, reason: str) -> None:
    """Write the end record, and print the ledger."""
    run = t.run
    t.saves.wait()
    run.console.stop_progress()
    total, background = run.clock.total(), t.saves.totals()
    run.log.write(
        EndRecord(
            reason=reason,
            iter=run.state.step,
            ledger=ledger_totals(total).as_dict(),
            background=background.as_dict(),
        )
    )
    run.console.ledger(total, background)


def say_summary(run: Run, findings: Findings) -> None:
    """Print a summary of the finished run."""
    cost_ms = clock.cost_per_switch_ns() * run.clock.num_switches / 1e6
    share = cost_ms / run.clock.total().wall_ms
    run.console.say(
        f"  the clock itself took {units.duration(cost_ms)}, {units.percent(share, 3)}, inside "
        "the phases above"
    )
    state = run.state
    if state.best_step is not None:
        run.console.say(
            f"best val loss {units.loss(state.best_val_loss)} at step {state.best_step}"
        )
    for line in findings(run.run_dir):
        run.console.say(line)
    newest = next(iter(checkpoints.committed(run.run_dir)), None)
    if newest is not None:
        run.console.say(f"newest checkpoint: {newest}")
        if state.step < run.cfg.max_iters or state.evaluated_at != state.step:
            run.console.say(f"go on with: {resume_command(run)}")
        say_what_next(run)


def say_what_next(run: Run) -> None:
    """Name the commands that show what the run has learnt, ready to be copied."""
    folder = shlex.quote(str(run.run_dir))
    run.console.say(f"next: stepglass sample {folder}   # text from its best model")
    run.console.say(f"      stepglass report {folder}   # a page with the loss and the times")


# -- failures -----------------------------------------------------------------------------------


def lost_for_good(run: Run, lost: EngineLost) -> TrainingFailed:
    """The error for weights that were lost with a process, or half changed."""
    cost = f"; the weights after {run.state.step} updates {lost.unsaved} and are not saved"
    return TrainingFailed(f"{lost}{cost if lost.is_torn else ''}; {how_to_go_on(run)}")


def how_to_go_on(run: Run) -> str:
    newest = tensors.newest_path(run.run_dir)
    if newest is None:
        return "no checkpoint had been saved yet"
    return f"newest checkpoint: {newest}; go on with: {resume_command(run)}"


def resume_command(run: Run) -> str:
    return f"stepglass resume {shlex.quote(str(run.run_dir))}"


def folder_lost(t: Training, is_saved: bool) -> TrainingFailed:
    """The error for a run that lost its folder. It says why, and where the last state is saved."""
    run = t.run
    why, step = t.saves.rescued_from or run.folder.lost, run.state.step
    if step == 0 or run.cfg.eval_only:
        return TrainingFailed(f"{why}; there was nothing to save")
    if not is_saved:
        return TrainingFailed(f"{why}; the state after {step} updates could not be saved")
    return TrainingFailed(
        f"{why}; the state after {step} updates is saved in {run.run_dir}; go on with: "
        f"{resume_command(run)}"
    )


def not_finite(t: Training, found: NotFinite) -> TrainingFailed:
    """The error for NaN or infinite numbers. It names the last good checkpoint and a remedy."""
    run, cfg = t.run, t.run.cfg
    run.event(NotFiniteEvent(what=str(found)))
    t.saves.wait()
    if found.spoilt_step is not None:
        set_spoilt_aside(run, found.spoilt_step)
    newest = tensors.newest_path(run.run_dir)
    kept = f"the last good checkpoint is {newest}" if newest else "no checkpoint had been saved yet"
    rates = ["learning_rate", *(["muon_lr"] if cfg.uses_muon else [])]
    rates += ["embedding_lr"] if cfg.embedding_lr else []
    remedies = [f"--{name}={getattr(cfg, name) / 2:g}" for name in rates]
    if run.device.dtype is torch.float16:
        remedies.append("--dtype=float32")
    if cfg.grad_clip == 0:
        remedies.append("--grad_clip=1.0")
    again = f"{resume_command(run)} " if newest else ""
    return TrainingFailed(f"{found}; {kept}. Try {again}{' '.join(remedies)}")


def set_spoilt_aside(run: Run, step: int) -> None:
    """Rename the checkpoint of a step with bad weights, so that a resumed run uses a good one.

    The checkpoint is kept if this process only read it, or if an evaluation of it was finite: then
    its weights were good.
    """
    if step in (run.first_step, run.state.evaluated_at):
        return
    for path in checkpoints.committed(run.run_dir):
        if checkpoints.step_of(path) == step:
            try:
                run.folder.check()
                aside = commit.mark_spoilt(FileOps(), run.folder.folder, path.name)
            except FolderLost:
                return
            except OSError as error:
                run.console.say(f"warning: {path} is spoilt: {os_reason(error)}; delete it")
            else:
                run.console.say(
                    f"note: {path.name} is spoilt; it is in {path.with_name(aside)} now"
                )
