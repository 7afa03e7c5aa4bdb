"""This process: the signals that ask it to stop, and how it holds on to memory."""

import ctypes
import os
import signal
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


# -- memory ---


def keep_freed_memory() -> None:
    """By default every large block goes back to the system, which then clears each page again for
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
