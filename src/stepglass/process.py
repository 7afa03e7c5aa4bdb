"""This process: the signals that ask it to stop, its garbage collector, and its memory."""

import ctypes
import gc
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Self

ALWAYS = (signal.SIGINT, signal.SIGTERM)  # a shell has background jobs ignore Ctrl-C
SIGNALS = ALWAYS if os.name == "nt" else (*ALWAYS, signal.SIGHUP)  # which nohup has them ignore


class StopRequest:
    """Context manager: while it is active, signals set `name` instead of ending the process."""

    def __init__(self) -> None:
        self.name: str | None = None
        self._before: dict[signal.Signals, object] = {}

    def __enter__(self) -> Self:
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

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.name = signal.Signals(number).name
        for again in self._before:
            signal.signal(again, signal.SIG_DFL)  # even a long call into C ends at the second


# -- reference cycles ---------------------------------------------------------------------------

# torch and a long log are a great many objects with hardly a reference cycle among them. Python's
# search for cycles would find nothing, and take a third of a second of every start.


def collect_rarely() -> None:
    """Search for reference cycles after many more new objects than by default."""
    gc.set_threshold(200_000)


def freeze_collector() -> None:
    """No search for cycles from now on, and never again among the objects that exist now."""
    gc.freeze()
    gc.disable()


def thaw_collector() -> None:
    """Search for cycles as before."""
    gc.enable()
    gc.unfreeze()


@contextmanager
def collector_paused() -> Iterator[None]:
    """No search for cycles in this block."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


# -- memory -------------------------------------------------------------------------------------


def keep_freed_memory() -> None:
    """Keep freed memory for the next use, where glibc would give it back to the system.

    By default every large block goes back to the system, which then clears each page again for
    the next one: 4 % to 13 % of a step on a CPU, and more after an evaluation; a tenth of the time
    a long log takes to read (docs/decisions.md).
    """
    if is_glibc():
        libc = ctypes.CDLL(None)
        libc.mallopt(-4, 0)  # M_MMAP_MAX: no mapping of its own for a large block
        libc.mallopt(-1, -1)  # M_TRIM_THRESHOLD: never give the top of the heap back


def is_glibc() -> bool:
    try:
        return (os.confstr("CS_GNU_LIBC_VERSION") or "").startswith("glibc")
    except (AttributeError, ValueError):  # Windows has no confstr, other libraries no such name
        return False
