"""Ctrl-C and SIGTERM ask a run to stop; the run looks at its own pace.

The handler only sets a flag: saving inside a handler could meet a half-updated model. A second
signal means now, and leaves without another word.
"""

import signal
from types import FrameType, TracebackType
from typing import Self


class StopRequest:
    """Context manager: while it is active, signals set `name` instead of ending the process."""

    def __init__(self) -> None:
        self.name: str | None = None
        self._before: dict[signal.Signals, object] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM):
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
        for again in (signal.SIGINT, signal.SIGTERM):
            signal.signal(again, signal.SIG_DFL)  # even a long call into C ends at the second
