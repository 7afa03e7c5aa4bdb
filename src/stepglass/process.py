"""Settings of this process: signals that stop it, the garbage collector, and memory."""

import ctypes
import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Self

# Handle these even if they are ignored: a shell makes background jobs ignore SIGINT.
ALWAYS = (signal.SIGINT, signal.SIGTERM)
# SIGHUP is not handled if it is ignored, because nohup makes a process ignore it on purpose.
SIGNALS = ALWAYS if os.name == "nt" else (*ALWAYS, signal.SIGHUP)


PR_SET_PDEATHSIG = 1  # from <sys/prctl.h>


class Interrupted(BaseException):
    """A signal arrived during `StopRequest.interrupting`. It is no Exception, so that libraries do
    not take it for an error of their own."""


class StopRequest:
    """Context manager: while it is active, the first signal sets `name` and does not end the
    process. A second signal ends it."""

    def __init__(self) -> None:
        self.name: str | None = None
        self._is_interrupting = False
        self._before: dict[signal.Signals, object] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is not threading.main_thread():
            return self  # Python lets only the main thread handle signals
        for number in SIGNALS:
            if number in ALWAYS or signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def is_set(self) -> bool:
        return self.name is not None

    def request(self, name: str) -> None:
        """Ask to stop without a signal."""
        self.name = self.name or name

    @contextmanager
    def interrupting(self) -> Iterator[None]:
        """While this is active, a signal also raises Interrupted, for work that takes minutes and
        has nothing to save."""
        self._is_interrupting = True
        try:
            if self.is_set():  # the signal arrived just before
                raise Interrupted
            yield
        finally:
            self._is_interrupting = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.name = signal.Signals(number).name
        forget_parent()
        for again in self._before:
            signal.signal(again, signal.SIG_DFL)  # a second signal ends even a long C call
        if self._is_interrupting:
            # A compiler leaves a million objects behind. It searches them for cycles on its way
            # out, and so do we, for up to four seconds on a busy machine.
            gc.freeze()
            raise Interrupted


def end_with_parent() -> None:
    """Get a SIGTERM when the parent process ends, even if that was killed. Only Linux can do it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def forget_parent() -> None:
    """Get no signal when the parent ends. Linux sends one for each of the parent's threads that it
    takes to be the new parent, so the first one may not be the last."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, 0)


# -- reference cycles ---------------------------------------------------------------------------

# Python's garbage collector searches for reference cycles. torch and a long log consist of very
# many objects with almost no cycles, so the search finds nothing. It takes a third of a second at
# every start.


def collect_rarely() -> None:
    """Run the garbage collector much less often than by default."""
    gc.set_threshold(200_000)


def freeze_collector() -> None:
    """Turn the garbage collector off. All objects that exist now are also excluded from later
    collections."""
    gc.freeze()
    gc.disable()


def thaw_collector() -> None:
    """Undo `freeze_collector`."""
    gc.enable()
    gc.unfreeze()


@contextmanager
def collector_paused() -> Iterator[None]:
    """Context manager: no garbage collection inside the block."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


# -- memory -------------------------------------------------------------------------------------


def keep_freed_memory() -> None:
    """Make glibc keep freed memory for reuse.

    By default glibc returns every large block to the operating system, which then has to clear the
    pages of the next block again. That takes 4 % to 13 % of a step on a CPU, and more after an
    evaluation. It also takes a tenth of the time to read a long log (docs/decisions.md).
    """
    if is_glibc():
        libc = ctypes.CDLL(None)
        libc.mallopt(-4, 0)  # M_MMAP_MAX: never use a separate mapping for a large block
        libc.mallopt(-1, -1)  # M_TRIM_THRESHOLD: never return the top of the heap


def is_glibc() -> bool:
    try:
        return (os.confstr("CS_GNU_LIBC_VERSION") or "").startswith("glibc")
    except (AttributeError, ValueError):  # Windows has no confstr, other C libraries not this name
        return False


def let_segments_grow(environment: MutableMapping[str, str]) -> None:
    """Let torch's memory on a CUDA GPU grow in place: pieces that are freed can then be joined, and
    memory runs out later. Call this before torch is imported. A setting that exists is kept."""
    is_set = {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"} & environment.keys()
    if sys.platform == "linux" and not is_set:  # other systems cannot do it, and torch would warn
        environment["PYTORCH_ALLOC_CONF"] = "expandable_segments:True"
