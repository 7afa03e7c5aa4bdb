"""Ctrl-C, SIGTERM and a terminal that is closed ask a run to stop; the run looks at its own pace.

The handler only sets a flag: saving inside a handler could meet a half-updated model. A second
signal means now, and leaves without another word.
"""

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
