"""Copies the tensors of a process and writes them to disk in a thread, while training goes on.

There is one set of buffers, so only one save can be in progress: call `wait()` before the next one.
If there is not enough memory for buffers, training waits while a save is written. What is done with
the bytes is up to a subclass: `writer.py` commits checkpoints, and `shard_writer.py` writes what
another process commits.
"""

import contextlib
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from stepglass import units
from stepglass.checkpoint import tensors
from stepglass.errors import StepglassError, os_reason
from stepglass.hardware.device import Device
from stepglass.hardware.host_copy import Copy
from stepglass.hardware.memory import available_host_bytes
from stepglass.run_dir.commit import Contents

LOW_PRIORITY = 5
PIECE = 1 << 18
REST = 15  # the writer pauses 15 times as long as it works, so that it does not slow iterations
SPREAD_S = 1.0  # the minimum time that a save is spread over
MEMORY_MARGIN = 1.2


@dataclass
class Job:
    """The tensors of one save, copied or being copied."""

    contents: Callable[[], dict[str, Contents]]
    copy: Copy
    is_background: bool


class BackgroundWriter:
    """A thread that writes one snapshot after the other."""

    def __init__(self, device: Device, is_daemon: bool = False, sharers: int = 1) -> None:
        """`sharers` processes of this machine make such a copy at the same time."""
        self._device, self._sharers = device, sharers
        self._buffers: tensors.HostBuffers | None = None
        self._task: Callable[[], None] | None = None
        self._has_task = threading.Event()
        self._idle = threading.Event()
        self._idle.set()
        self.is_tidy = threading.Event()
        self.is_tidy.set()
        self._hurry = threading.Event()  # set while training waits for the writer: do not pause
        self._rested_ms = 0.0  # in all pauses so far
        self._copy = Copy()
        self.notes: deque[str] = deque()
        self.is_reserved = False
        self._thread = threading.Thread(
            target=self._work, name="checkpoint-writer", daemon=is_daemon
        )
        self._thread.start()

    # -- called by training ---------------------------------------------------------------------

    def reserve(self, files: tensors.Files) -> None:
        """Allocate buffers for a snapshot of these tensors, if there is enough memory."""
        self.is_reserved = True
        needed = tensors.num_bytes(files)
        available = available_host_bytes()
        if available is not None:
            available //= self._sharers
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

    @property
    def has_room(self) -> bool:
        """True if a save need not be written while training waits. Call `wait()` first."""
        return self._buffers is not None

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

    # -- for subclasses -------------------------------------------------------------------------

    def _start(
        self, files: tensors.Files, write: Callable[[Job], None], waits: bool = False
    ) -> None:
        """Start to copy and write a snapshot. `waits`: without a copy, while training waits."""
        assert self._idle.is_set(), "one save at a time"
        if not waits and self._buffers is not None and self._buffers.fit(files):
            self._copy = self._buffers.copy(files, self._device)
            job = Job(self._buffers.contents, self._copy, is_background=True)
            self._hand_over(lambda: write(job))
        else:
            if not waits and self._buffers is not None:  # the tensors have changed
                self._buffers, self.is_reserved = None, False
            self._hurry.set()
            self.is_tidy.wait()
            write(Job(lambda: tensors.contents_of(files), Copy(), is_background=False))
            self._tidy_up()

    def _paced(self, job: Job) -> dict[str, Contents]:
        """The files of a save, in pieces with rests between them."""
        job.copy.wait()
        contents = job.contents()
        num_bytes = sum(file.num_bytes for file in contents.values())
        rest_s = SPREAD_S / (1 + num_bytes / PIECE)
        return {name: self._in_pieces(file, rest_s) for name, file in contents.items()}

    def _in_pieces(self, contents: Contents, rest_s: float) -> Contents:
        def parts() -> Iterator[memoryview]:
            for part in contents.parts:
                view = memoryview(part).cast("B")
                for start in range(0, len(view), PIECE):
                    self._rest(rest_s)
                    before = time.thread_time()
                    yield view[start : start + PIECE]
                    self._rest(REST * (time.thread_time() - before))

        return Contents(contents.num_bytes, parts())

    def _rest(self, seconds: float) -> None:
        """Leave the processor to training for a while, unless training waits."""
        start = time.perf_counter()
        self._hurry.wait(seconds)
        self._rested_ms += 1000 * (time.perf_counter() - start)

    def _tidy_up(self) -> None:
        """Called after each save. `wait` does not wait for this."""
        self.is_tidy.set()

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
