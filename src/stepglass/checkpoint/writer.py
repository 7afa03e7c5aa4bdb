"""Writes the checkpoints of a run in a background thread while training goes on.

    writer.reserve(files)         # once: allocates buffers for a snapshot, in the background
    writer.save(files, request)   # returns at once
    ...                           # the next forward and backward pass
    writer.protect_snapshot()     # before the weights change: waits until they are copied
    ...
    while writer.finished:        # saves that succeeded or failed, in order
        outcome = writer.finished.popleft()

The thread is not a daemon, so a process does not exit before its checkpoint is written. The thread
catches every error: a failing disk causes a warning and does not end the run.
"""

import os
import time
from collections import deque
from dataclasses import dataclass, replace
from typing import Any

from stepglass import json_files
from stepglass.checkpoint import background, tensors
from stepglass.checkpoint.background import BackgroundWriter, Job, reason_of
from stepglass.files import FileOps
from stepglass.hardware.device import Device
from stepglass.measure.run_log import Mark, RunLogWriter
from stepglass.run_dir import commit
from stepglass.run_dir.commit import Contents, OtherShards, Retention
from stepglass.run_dir.folder import FolderLost, RunFolder


@dataclass(frozen=True)
class SaveRequest:
    """The parts of a save besides tensors."""

    step: int
    state: dict[str, Any]  # for state.json
    best_val_loss: float | None = None  # set if this is the best so far
    tokenizer: bytes = b"{}\n"  # for tokenizer.json
    is_last: bool = False  # the last save of a run may use the reserved disk space
    others: OtherShards | None = None  # set if other processes write parts of it


@dataclass(frozen=True)
class SaveOutcome:
    """The result of a save: `name` is set if it is on disk, `error` if anything failed."""

    step: int
    name: str | None = None
    is_best: bool = False  # best.json points at it
    num_bytes: int = 0
    background_ms: float = 0.0
    rested_ms: float = 0.0  # of background_ms: pauses; there are none if training waits
    taken_ms: float = 0.0  # CPU time divided by the number of cores; 0 if training is on a GPU
    error: str | None = None


class CheckpointWriter(BackgroundWriter):
    """Writes the checkpoints of one run directory, one after the other."""

    def __init__(
        self,
        run: RunFolder,
        device: Device,
        log: RunLogWriter,
        keep: Retention,
        ops: FileOps | None = None,
        sharers: int = 1,
    ) -> None:
        self._run = run
        self._log = log
        self._keep = keep
        self._ops = ops or FileOps()
        self._verified: str | None = None
        self._others: OtherShards | None = None
        self._has_told = False  # that training waits for others
        self.finished: deque[SaveOutcome] = deque()
        self.num_failed = 0
        self.num_saved = 0
        self.background_ms = 0.0
        super().__init__(device, sharers=sharers)

    # -- called by training ---------------------------------------------------------------------

    def trust(self, name: str) -> None:
        """Never delete this checkpoint. This process has read and verified it, while newer ones
        have only been written."""
        self._verified = name

    def move_to(self, run: RunFolder) -> None:
        """Save to another folder from now on. Call `wait()` first."""
        self.is_tidy.wait()
        self._run = run

    def save(self, files: tensors.Files, request: SaveRequest) -> None:
        """Start to copy and write a snapshot. Call `wait()` first; read `finished` later."""
        mark = self._log.mark()
        self._others = request.others
        waits = request.others is not None and request.others.waits
        if waits and self.has_room and not self._has_told:
            self._has_told = True
            self.notes.append(
                "note: checkpoints are written while training waits: another process has too "
                "little memory for a copy"
            )
        self._start(files, lambda job: self._commit(request, job, mark), waits)

    def wait(self) -> None:
        if self._others is not None and self.is_busy():
            self._others.hurry()
        super().wait()

    # -- the thread -----------------------------------------------------------------------------

    def _tidy_up(self) -> None:
        """Delete old checkpoints. `wait` does not wait for this, so that a slow deletion does not
        delay training."""
        try:
            self._run.check()
            commit.sweep(self._ops, self._run.folder, self._has_task.is_set)
        except FolderLost:
            pass  # nothing in the folder belongs to this run any more
        except BaseException as error:  # noqa: BLE001 - the next call will try again
            self.notes.append(f"note: an old checkpoint could not be deleted: {reason_of(error)}")
        finally:
            super()._tidy_up()

    def _commit(self, request: SaveRequest, job: Job, mark: Mark) -> None:
        start, cpu_start = time.perf_counter_ns(), time.thread_time_ns()
        rested_ms = self._rested_ms
        outcome = SaveOutcome(request.step)
        try:
            files = self._paced(job)
            self._rest(background.SPREAD_S / 10)
            self._run.check()
            self._log.flush()  # the log on disk must reach at least to the checkpoint
            state = {**request.state, "log_bytes": mark.position}
            files["state.json"] = Contents.of(json_files.json_bytes(state))
            files["tokenizer.json"] = Contents.of(request.tokenizer)
            reserve = 0 if request.is_last else commit.RESERVE
            folder = self._run.folder
            written = commit.write_checkpoint(
                self._ops, folder, request.step, files, reserve, request.others
            )
            name = written.name
            outcome = replace(outcome, name=name, num_bytes=written.num_bytes)
            if request.best_val_loss is not None:
                self._run.check()  # again, because writing took a while
                commit.mark_best(self._ops, folder, name, request.best_val_loss)
                outcome = replace(outcome, is_best=True)
        except BaseException as error:  # noqa: BLE001 - any error is reported to training
            outcome = replace(outcome, error=reason_of(error))
            if request.others is not None:
                request.others.cancel()
        if outcome.error is None:
            self._set_old_ones_aside()
        took_ms = (time.perf_counter_ns() - start) / 1e6
        self.num_saved += outcome.name is not None
        self.num_failed += outcome.error is not None
        if job.is_background:
            self.background_ms += took_ms
            cpu_ms = (time.thread_time_ns() - cpu_start) / 1e6 / (os.cpu_count() or 1)
            taken_ms = cpu_ms if self._device.type == "cpu" else 0.0
            outcome = replace(
                outcome,
                background_ms=took_ms,
                rested_ms=self._rested_ms - rested_ms,
                taken_ms=taken_ms,
            )
        self.finished.append(outcome)

    def _set_old_ones_aside(self) -> None:
        try:
            self._run.check()
            commit.prune(self._ops, self._run.folder, self._keep, self._verified)
        except BaseException as error:  # noqa: BLE001 - the save itself has succeeded
            self.notes.append(f"note: old checkpoints stay for now: {reason_of(error)}")
