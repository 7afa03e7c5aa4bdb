"""The saves of a run: when one is due, how long training waits for it, and whether it succeeded.

The loop asks `is_due`, begins a save with `begin`, and calls `protect` before the weights change.
`after_evaluation` saves a new best model, and `save_last` saves the final state. The code that
writes a checkpoint to disk is in checkpoint/writer.py.
"""

from dataclasses import asdict, dataclass
from typing import Any

from stepglass.checkpoint.schedule import SaveSchedule
from stepglass.checkpoint.writer import CheckpointWriter, SaveOutcome, SaveRequest
from stepglass.errors import os_reason
from stepglass.hardware.ranks import this_rank
from stepglass.measure.console_lines import save_failed_line, saving_line, waited_line
from stepglass.measure.event_details import (
    CheckpointFailedEvent,
    CheckpointWaitEvent,
    FolderLostEvent,
    MovedEvent,
)
from stepglass.measure.records import Background, CheckpointRecord
from stepglass.measure.shapes import shape_record
from stepglass.run_dir.opening import open_elsewhere
from stepglass.train.environment import environment
from stepglass.train.run import NotFinite, Run

TRIES_AT_THE_END = 3

Best = tuple[float | None, int | None]  # its loss and its step


@dataclass
class PendingSave:
    """A save that is still being written, and what is needed to report it."""

    step: int
    stall_ms: float  # how long training waited
    best_before: Best | None  # set for a new best: restored if the save fails

    @property
    def is_best(self) -> bool:
        return self.best_before is not None


class Saves:
    """Starts the saves of a run and reports their results."""

    def __init__(
        self, run: Run, writer: CheckpointWriter, schedule: SaveSchedule, tokenizer: bytes
    ) -> None:
        self.run = run
        self.writer = writer
        self.rescued_from: str | None = None  # why the run had to leave its folder
        self._schedule = schedule
        self.tokenizer = tokenizer  # the contents of tokenizer.json in every checkpoint
        self._pending: PendingSave | None = None
        self._last_step = -1  # the last step that is saved or being saved
        self._write_ms = 0.0
        self._shown_dir = run.run_dir  # the run directory as last printed

    # -- during training ------------------------------------------------------------------------

    def is_due(self, step: int) -> bool:
        if step in (0, self._last_step):
            return False
        return self._schedule.is_due(step, self.run.clock.elapsed_ms())

    def reserve(self) -> None:
        """Let the writer allocate memory for a copy of the state."""
        self.writer.reserve(self.run.engine.tensors())

    def resumed(self, name: str) -> None:
        """Called when the run has been resumed from this checkpoint."""
        self._last_step = self.run.state.step
        self.writer.trust(name)

    def begin(self, best_before: Best | None = None, is_last: bool = False) -> None:
        """Start to copy and write the state. `best_before` is given if this is a new best.

        The state is copied while the gradients of the next update are computed. Training waits
        twice: here, until the previous save is on disk, and in `protect`, until the copy is
        complete.
        """
        run = self.run
        self.wait()
        before = run.clock.spent_ns("checkpoint")
        with run.clock.phase("checkpoint"):
            if not run.engine.has_finite_weights():
                what = f"step {run.state.step}: weights are no longer finite"
                raise NotFinite(what, spoilt_step=None)  # this step has not been saved
            if not self.writer.is_reserved:
                self.reserve()
                self.writer.wait()
            request = SaveRequest(
                run.state.step,
                self._state(),
                run.state.best_val_loss if best_before else None,
                self.tokenizer,
                is_last,
                run.engine.save_shards(self.writer.has_room),
            )
            self.writer.save(run.engine.tensors(), request)
        stall_ms = (run.clock.spent_ns("checkpoint") - before) / 1e6
        self._pending = PendingSave(run.state.step, stall_ms, best_before)
        self._last_step = run.state.step
        self._schedule.began(run.clock.elapsed_ms())
        with run.clock.phase("log"):
            self._say_if_moved()
            run.console.say(saving_line(self._shown_dir))

    def protect(self) -> None:
        """Wait until the state is copied. Call this before the weights change."""
        if self._pending is None:
            return
        clock = self.run.clock
        before = clock.spent_ns("checkpoint")
        with clock.phase("checkpoint"):
            self.writer.protect_snapshot()
        self._pending.stall_ms += (clock.spent_ns("checkpoint") - before) / 1e6

    def after_evaluation(self) -> None:
        """Save if this is the best evaluation so far, or if `always_save_checkpoint` is set."""
        if self._pending is not None and self._pending.is_best:
            self.wait()  # if the pending save fails, the best loss goes back to the one before
        self.report()
        best_before = self._note_best()
        state = self.run.state
        state.evals_since_best = 0 if best_before is not None else state.evals_since_best + 1
        is_wanted = best_before is not None or self.run.cfg.always_save_checkpoint
        if state.step > 0 and is_wanted:
            self.begin(best_before)

    def wait(self) -> None:
        """Wait until the previous save is on disk, because there is only one set of buffers."""
        run = self.run
        if self.writer.is_busy():
            before = run.clock.spent_ns("checkpoint")
            with run.clock.phase("checkpoint"):
                self.writer.wait()
            if self._pending is not None:
                waited_ms = (run.clock.spent_ns("checkpoint") - before) / 1e6
                event = CheckpointWaitEvent(step=self._pending.step, wait_ms=waited_ms)
                run.console.say(waited_line(event))
                run.event(event)
        self.report()

    def report(self) -> None:
        """Print and log what the writer has saved or failed to save. A failed save is only a
        warning: the run goes on."""
        writer = self.writer
        if not (writer.finished or writer.notes):
            return
        with self.run.clock.phase("log"):
            while writer.notes:
                self.run.console.say(writer.notes.popleft())
            while writer.finished:
                self._report(writer.finished.popleft())

    # -- at the end -----------------------------------------------------------------------------

    def save_last(self) -> bool:
        """Save the current state if it is not saved yet, and wait until it is on disk. If the run's
        folder is lost, save in another folder. Returns True if the state is saved."""
        state = self.run.state
        for _ in range(TRIES_AT_THE_END):
            self.wait()
            if self.run.folder.lost is not None and state.step > 0 and not self._go_elsewhere():
                return False
            best_before = self._note_best()
            if state.step == 0 or (self._last_step == state.step and best_before is None):
                return True
            self.begin(best_before, is_last=True)
        self.wait()
        return self._last_step == state.step

    @property
    def write_ms(self) -> float:
        """How long a save takes to reach the disk if training waits for it, by the last one."""
        return self._write_ms

    def totals(self) -> Background:
        """What the writer did in the background, for the ledger."""
        return Background(
            checkpoint_writer_ms=self.writer.background_ms,
            saves=self.writer.num_saved,
            failed_saves=self.writer.num_failed,
        )

    # -- helpers --------------------------------------------------------------------------------

    def _state(self) -> dict[str, Any]:
        """The part of the state that is not tensors."""
        run = self.run
        return {
            **asdict(run.state),
            "run_id": run.folder.run_id,
            "config": asdict(run.cfg),
            "model_config": shape_record(run.engine.model.config),
            "scaler": run.engine.state(),
            "data": run.data.fingerprint,
            "environment": environment(run.device),
            "processes": this_rank().of,
        }

    def _note_best(self) -> Best | None:
        """If the evaluation at this step is the best so far, remember it and return the previous
        best. Otherwise return None."""
        state, val_loss = self.run.state, self.run.last_val_loss
        before = state.best_val_loss, state.best_step
        if val_loss is None or state.evaluated_at != state.step:
            return None
        if before[0] is not None and val_loss >= before[0]:
            return None
        state.best_val_loss, state.best_step = val_loss, state.step
        return before

    def _report(self, outcome: SaveOutcome) -> None:
        """Log and print the result of a save."""
        run = self.run
        pending, self._pending = self._pending, None
        assert pending is not None, "an outcome belongs to a save"
        if outcome.error is not None:
            self._report_failure(outcome.step, outcome.error)
            if pending.best_before is not None and not outcome.is_best:
                run.state.best_val_loss, run.state.best_step = pending.best_before
            if outcome.name is None:
                self._last_step = -1
                return
        assert outcome.name is not None
        record = CheckpointRecord(
            iter=outcome.step,
            stall_ms=pending.stall_ms,
            background_ms=outcome.background_ms,
            bytes=outcome.num_bytes,
            path=f"ckpt/{outcome.name}",
            is_best=outcome.is_best,
        )
        run.log.write(record)
        run.console.checkpoint(record)
        self._write_ms = max(pending.stall_ms, outcome.background_ms - outcome.rested_ms)
        schedule = self._schedule
        before = schedule.every_ms(run.clock.elapsed_ms())
        schedule.measured(pending.stall_ms, outcome.background_ms, outcome.taken_ms)
        if schedule.is_auto and schedule.every_ms(run.clock.elapsed_ms()) > 1.1 * before:
            run.console.say(f"checkpoints: {schedule.bound(run.clock.elapsed_ms())}")

    def _report_failure(self, step: int, reason: str) -> None:
        run = self.run
        event = CheckpointFailedEvent(step=step, reason=reason, failed=self.writer.num_failed)
        if run.folder.lost is None:  # a lost folder stops the run, and is reported then
            run.console.say(save_failed_line(event))
        run.event(event)

    def _say_if_moved(self) -> None:
        """Report if the run's folder was moved. The run continues in it, because it is open."""
        run = self.run
        before, self._shown_dir = self._shown_dir, run.run_dir
        if before != self._shown_dir and not run.folder.folder.is_gone():
            run.console.say(f"note: {before} was moved to {self._shown_dir}; the run goes on there")
            run.event(MovedEvent(from_=str(before), to=str(self._shown_dir)))

    def _go_elsewhere(self) -> bool:
        """Save to a new folder from now on, because the run's folder is gone or is now used by
        another run. Returns False if no folder can be made."""
        run = self.run
        try:
            new = open_elsewhere(run.folder)
        except OSError as error:
            run.console.say(
                f"warning: no other folder could be made to save in: {os_reason(error)}"
            )
            return False
        why = run.folder.lost
        run.log.move_to(new.folder, new.check)
        self.writer.move_to(new)
        run.folder.close()
        run.folder, self._shown_dir, self.rescued_from = new, new.where(), why
        self._last_step = -1  # nothing is saved in the new folder yet
        run.console.say(f"warning: {why}; the run saves in {self._shown_dir} instead")
        run.event(FolderLostEvent(why=why, saved_in=str(self._shown_dir)))
        return True
