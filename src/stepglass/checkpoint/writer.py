"""Writes checkpoints in a background thread while training goes on.

    writer.reserve(files)         # once: allocates buffers for a snapshot, in the background
    writer.save(files, request)   # returns at once
    ...                           # the next forward and backward pass
    writer.protect_snapshot()     # before the weights change: waits until they are copied
    ...
    while writer.finished:        # saves that succeeded or failed, in order
        outcome = writer.finished.popleft()

There is one set of buffers, so only one save can be in progress: call `wait()` before the next one.
If there is not enough memory for buffers, training waits while a save is written. The thread is not
a daemon, so a process does not exit before its checkpoint is written. The thread catches every
error: a failing disk causes a warning and does not end the run.
"""

import contextlib
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from stepglass import json_files, units
from stepglass.checkpoint import tensors
from stepglass.errors import StepglassError, os_reason
from stepglass.files import FileOps
from stepglass.hardware.device import Device
from stepglass.hardware.host_copy import Copy
from stepglass.hardware.memory import available_host_bytes
from stepglass.measure.run_log import Mark, RunLogWriter
from stepglass.run_dir import commit
from stepglass.run_dir.commit import Contents, Retention
from stepglass.run_dir.folder import FolderLost, RunFolder

LOW_PRIORITY = 5
PIECE = 1 << 18
REST = 15  # the writer pauses 15 times as long as it works, so that it does not slow iterations
SPREAD_S = 1.0  # the minimum time that a save is spread over
MEMORY_MARGIN = 1.2


@dataclass(frozen=True)
class SaveRequest:
    """The parts of a save besides tensors."""

    step: int
    state: dict[str, Any]  # for state.json
    best_val_loss: float | None = None  # set if this is the best so far
    tokenizer: bytes = b"{}\n"  # for tokenizer.json
    is_last: bool = False  # the last save of a run may use the reserved disk space


@dataclass(frozen=True)
class SaveOutcome:
    """The result of a save: `name` is set if it is on disk, `error` if anything failed."""

    step: int
    name: str | None = None
    is_best: bool = False  # best.json points at it
    num_bytes: int = 0
    background_ms: float = 0.0
    taken_ms: float = 0.0  # CPU time divided by the number of cores; 0 if training is on a GPU
    error: str | None = None


@dataclass
class Job:
    """Everything that is needed to write one save."""

    request: SaveRequest
    contents: Callable[[], dict[str, Contents]]
    copy: Copy
    is_background: bool


class CheckpointWriter:
    """Writes the checkpoints of one run directory, one after the other."""

    def __init__(
        self,
        run: RunFolder,
        device: Device,
        log: RunLogWriter,
        keep: Retention,
        ops: FileOps | None = None,
    ) -> None:
        self._run = run
        self._device = device
        self._log = log
        self._keep = keep
        self._ops = ops or FileOps()
        self._verified: str | None = None
        self._buffers: tensors.HostBuffers | None = None
        self._task: Callable[[], None] | None = None
        self._has_task = threading.Event()
        self._idle = threading.Event()
        self._idle.set()
        self.is_tidy = threading.Event()
        self.is_tidy.set()
        self._hurry = threading.Event()  # set while training waits for the writer: do not pause
        self._copy = Copy()
        self.finished: deque[SaveOutcome] = deque()
        self.notes: deque[str] = deque()
        self.num_failed = 0
        self.num_saved = 0
        self.background_ms = 0.0
        self.is_reserved = False
        self._thread = threading.Thread(target=self._work, name="checkpoint-writer", daemon=False)
        self._thread.start()

    # -- called by training ---------------------------------------------------------------------

    def trust(self, name: str) -> None:
        """Never delete this checkpoint. This process has read and verified it, while newer ones
        have only been written."""
        self._verified = name

    def move_to(self, run: RunFolder) -> None:
        """Save to another folder from now on. Call `wait()` first."""
        self.is_tidy.wait()
        self._run = run

    def reserve(self, files: tensors.Files) -> None:
        """Allocate buffers for a snapshot of these tensors, if there is enough memory."""
        self.is_reserved = True
        needed = tensors.num_bytes(files)
        available = available_host_bytes()
        if available is not None and available < MEMORY_MARGIN * needed:
            self.notes.append(
                f"note: checkpoints will be written while training waits: a copy needs "
                f"{units.size(needed)} of memory, and {units.size(available)} are free"
            )
            return

        def make_room() -> None:
            try:
                self._buffers = tensors.HostBuffers(files, self._device)
            except Exception as error:  # noqa: BLE001 - saves then work without buffers
                self.notes.append(
                    f"note: checkpoints will be written while training waits: no room for a copy "
                    f"of {units.size(needed)}: {reason_of(error)}"
                )

        self._hand_over(make_room)

    def save(self, files: tensors.Files, request: SaveRequest) -> None:
        """Start to copy and write a snapshot. Call `wait()` first; read `finished` later."""
        assert self._idle.is_set(), "one save at a time"
        mark = self._log.mark()
        if self._buffers is not None and self._buffers.fit(files):
            self._copy = self._buffers.copy(files, self._device)
            job = Job(request, self._buffers.contents, self._copy, is_background=True)
            self._hand_over(lambda: self._commit(job, mark))
        else:
            if self._buffers is not None:  # they do not fit, because the tensors have changed
                self._buffers, self.is_reserved = None, False
            self._hurry.set()
            self.is_tidy.wait()
            job = Job(request, lambda: tensors.contents_of(files), Copy(), is_background=False)
            self._commit(job, mark)
            self._tidy_up()

    def protect_snapshot(self) -> None:
        """Wait until the tensors are copied. Call this before the weights change."""
        self._copy.protect()

    def is_busy(self) -> bool:
        return not self._idle.is_set()

    def wait(self) -> None:
        """Wait until no save is in progress."""
        self._hurry.set()
        self._idle.wait()

    def close(self) -> None:
        """Finish the save in progress and end the thread."""
        self.wait()
        self._task = None
        self._has_task.set()
        self._thread.join()

    # -- the thread -----------------------------------------------------------------------------

    def _hand_over(self, task: Callable[[], None]) -> None:
        self._idle.wait()
        self._idle.clear()
        self._hurry.clear()
        self._task = task
        self._has_task.set()

    def _work(self) -> None:
        lower_priority()
        while True:
            self._has_task.wait()
            self._has_task.clear()
            task, self._task = self._task, None
            if task is None:
                self._tidy_up()
                return
            self.is_tidy.clear()
            try:
                task()
            finally:
                self._idle.set()
            self._tidy_up()

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
            self.is_tidy.set()

    def _commit(self, job: Job, mark: Mark) -> None:
        start, cpu_start = time.perf_counter_ns(), time.thread_time_ns()
        request = job.request
        outcome = SaveOutcome(request.step)
        try:
            job.copy.wait()
            contents = job.contents()
            num_bytes = sum(file.num_bytes for file in contents.values())
            rest_s = SPREAD_S / (1 + num_bytes / PIECE)
            files = {name: self._in_pieces(file, rest_s) for name, file in contents.items()}
            self._hurry.wait(SPREAD_S / 10)
            self._run.check()
            self._log.flush()  # the log on disk must reach at least to the checkpoint
            state = {**request.state, "log_bytes": mark.position}
            files["state.json"] = Contents.of(json_files.json_bytes(state))
            files["tokenizer.json"] = Contents.of(request.tokenizer)
            reserve = 0 if request.is_last else commit.RESERVE
            folder = self._run.folder
            name = commit.write_checkpoint(self._ops, folder, request.step, files, reserve)
            outcome = replace(
                outcome, name=name, num_bytes=sum(file.num_bytes for file in files.values())
            )
            if request.best_val_loss is not None:
                self._run.check()  # again, because writing took a while
                commit.mark_best(self._ops, folder, name, request.best_val_loss)
                outcome = replace(outcome, is_best=True)
        except BaseException as error:  # noqa: BLE001 - any error is reported to training
            outcome = replace(outcome, error=reason_of(error))
        if outcome.error is None:
            self._set_old_ones_aside()
        took_ms = (time.perf_counter_ns() - start) / 1e6
        self.num_saved += outcome.name is not None
        self.num_failed += outcome.error is not None
        if job.is_background:
            self.background_ms += took_ms
            cpu_ms = (time.thread_time_ns() - cpu_start) / 1e6 / (os.cpu_count() or 1)
            taken_ms = cpu_ms if self._device.type == "cpu" else 0.0
            outcome = replace(outcome, background_ms=took_ms, taken_ms=taken_ms)
        self.finished.append(outcome)

    def _set_old_ones_aside(self) -> None:
        try:
            self._run.check()
            commit.prune(self._ops, self._run.folder, self._keep, self._verified)
        except BaseException as error:  # noqa: BLE001 - the save itself has succeeded
            self.notes.append(f"note: old checkpoints stay for now: {reason_of(error)}")

    def _in_pieces(self, contents: Contents, rest_s: float) -> Contents:
        def parts() -> Iterator[memoryview]:
            for part in contents.parts:
                view = memoryview(part).cast("B")
                for start in range(0, len(view), PIECE):
                    self._hurry.wait(rest_s)
                    before = time.thread_time()
                    yield view[start : start + PIECE]
                    self._hurry.wait(REST * (time.thread_time() - before))

        return Contents(contents.num_bytes, parts())


def reason_of(error: BaseException) -> str:
    """The text of an error, for a message to the user."""
    if isinstance(error, OSError):
        return os_reason(error)
    return str(error) if isinstance(error, StepglassError) else f"{type(error).__name__}: {error}"


def lower_priority() -> None:
    """Lower the priority of this thread. Only Linux can do that for a single thread."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LOW_PRIORITY)
