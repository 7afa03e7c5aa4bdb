"""Saves without stopping the world: a thread copies the state aside and writes it.

    writer.reserve(files)         # once: room for a snapshot, made in the background
    writer.save(files, request)   # returns at once
    ...                           # the next forward and backward pass
    writer.protect_snapshot()     # before the weights change: waits for what is left to copy
    ...
    while writer.finished:        # committed or failed, in order
        outcome = writer.finished.popleft()

At most one save is in flight, because there is one set of buffers: call `wait()` before the next.
Where memory is short there are no buffers, and a save is written while training waits. The thread
is not a daemon: a process that ends waits for its checkpoint. The thread catches every error, so a
disk that fails costs a warning, never the run.
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
REST = 15  # the writer rests 15 times as long as it works: it slows no iteration noticeably
SPREAD_S = 1.0  # the least time that a save is spread over
MEMORY_MARGIN = 1.2


@dataclass(frozen=True)
class SaveRequest:
    """What a save holds besides tensors."""

    step: int
    state: dict[str, Any]  # for state.json
    best_val_loss: float | None = None  # set if this is the best so far
    tokenizer: bytes = b"{}\n"  # for tokenizer.json
    is_last: bool = False  # the run's last save may use the disk space that others leave free


@dataclass(frozen=True)
class SaveOutcome:
    """How a save ended: `name` if it is on disk, `error` if anything went wrong."""

    step: int
    name: str | None = None
    is_best: bool = False  # best.json points at it
    num_bytes: int = 0
    background_ms: float = 0.0
    taken_ms: float = 0.0  # of all cores, where training needs them
    error: str | None = None


@dataclass
class Job:
    """A save with all it needs."""

    request: SaveRequest
    contents: Callable[[], dict[str, Contents]]
    copy: Copy
    is_background: bool


class CheckpointWriter:
    """Commits checkpoints of one run directory, one after the other."""

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
        self._hurry = threading.Event()  # set while somebody waits for the writer
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
        """Never delete this checkpoint: this process has read it and found it whole, while newer
        ones are only known to have been written."""
        self._verified = name

    def move_to(self, run: RunFolder) -> None:
        """Save into another folder from now on. Call `wait()` first."""
        self.is_tidy.wait()
        self._run = run

    def reserve(self, files: tensors.Files) -> None:
        """Allocate buffers for a snapshot like this one, if memory allows."""
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
            except Exception as error:  # noqa: BLE001 - saves are made without, then
                self.notes.append(
                    f"note: checkpoints will be written while training waits: no room for a copy "
                    f"of {units.size(needed)}: {reason_of(error)}"
                )

        self._hand_over(make_room)

    def save(self, files: tensors.Files, request: SaveRequest) -> None:
        """Have a snapshot taken and written. Call `wait()` first; read `finished` later."""
        assert self._idle.is_set(), "one save at a time"
        mark = self._log.mark()
        if self._buffers is not None and self._buffers.fit(files):
            self._copy = self._buffers.copy(files, self._device)
            job = Job(request, self._buffers.contents, self._copy, is_background=True)
            self._hand_over(lambda: self._commit(job, mark))
        else:
            if self._buffers is not None:  # the state has another shape than it had
                self._buffers, self.is_reserved = None, False
            self._hurry.set()
            self.is_tidy.wait()
            job = Job(request, lambda: tensors.contents_of(files), Copy(), is_background=False)
            self._commit(job, mark)
            self._tidy_up()

    def protect_snapshot(self) -> None:
        """Call before the weights change: they may still be being copied."""
        self._copy.protect()

    def is_busy(self) -> bool:
        return not self._idle.is_set()

    def wait(self) -> None:
        """Wait until nothing is in flight."""
        self._hurry.set()
        self._idle.wait()

    def close(self) -> None:
        """Finish what is in flight and end the thread."""
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
        """Delete what was set aside. Nobody waits for this, so a slow deletion delays no save."""
        try:
            self._run.check()
            commit.sweep(self._ops, self._run.folder, self._has_task.is_set)
        except FolderLost:
            pass  # nothing there is ours to delete
        except BaseException as error:  # noqa: BLE001 - what stays is tried again
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
            self._log.flush()  # a checkpoint must not be ahead of its log
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
                self._run.check()  # writing took a while
                commit.mark_best(self._ops, folder, name, request.best_val_loss)
                outcome = replace(outcome, is_best=True)
        except BaseException as error:  # noqa: BLE001 - whatever it is, training is told
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
        except BaseException as error:  # noqa: BLE001 - the save itself is done
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
    """What went wrong, for a person."""
    if isinstance(error, OSError):
        return os_reason(error)
    return str(error) if isinstance(error, StepglassError) else f"{type(error).__name__}: {error}"


def lower_priority() -> None:
    """This thread gives way to the others of its process. Linux alone takes a thread's number."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LOW_PRIORITY)
