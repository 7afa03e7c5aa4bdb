"""A clock whose phases add up to the wall clock.

Every nanosecond since the clock started belongs to exactly one phase. Phases can be nested: time
inside the inner phase does not count for the outer one. Time outside of all phases is `other`.
`lap()` ends a time window and returns its phases, so the windows of a run add up too:

    clock = PhaseClock()
    with clock.phase("data"):
        x, y = batch(step)
    lap = clock.lap()
    assert lap.wall_ns == sum(lap.phases.values())

The clock measures time on the host. If the device works asynchronously, that is only the time to
queue the work. A `DeviceTimer` therefore puts marks into the device's queue at the start and end of
each phase. The marks are read later, when the device has passed them. The clock never waits for a
device.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from types import TracebackType
from typing import Any, Protocol, TypeVar

# Every phase, in the order of the ledger, and its meaning.
PHASE_MEANINGS = {
    "warmup": "imports, model, compile, first batch",
    "data": "reading batches",
    "forward_backward": "the model, forwards and backwards",
    "optimizer": "clipping and the weight update",
    "eval": "evaluations",
    "checkpoint": "waiting for checkpoints",
    "log": "console and run log",
    "gc": "Python's garbage collector",
    "other": "claimed by no phase",
}
PHASES = tuple(PHASE_MEANINGS)
STEP_PHASES = ("data", "forward_backward", "optimizer")  # what `time` in the console means

Time = TypeVar("Time")  # milliseconds, or a column of them


def step_time(
    phases: Mapping[str, Time], device_phases: Mapping[str, Time] | None = None
) -> Time | None:
    """The time of the training step alone. Uses the device's times if there are any, because the
    host only measures the time to queue the work. None if there is no phase of a step.

    >>> step_time({"data": 1.0, "forward_backward": 20.0, "eval": 500.0})
    21.0
    """
    timed: Mapping[str, Any] = device_phases or phases
    parts = [timed[name] for name in STEP_PHASES if name in timed]
    return sum(parts[1:], start=parts[0]) if parts else None


class DeviceTimer(Protocol):
    """Puts marks into a device's work queue, and measures the time between two marks."""

    def mark(self) -> Any:
        """Queue a mark and return at once."""

    def is_passed(self, mark: Any) -> bool:
        """True if the device has reached the mark. Does not wait."""

    def is_readable(self, mark: Any) -> bool:
        """True if the times of this mark and of those before may be read now."""

    def elapsed_ms(self, start: Any, end: Any) -> float:
        """Device time between two neighbouring marks that are readable. No mark is given as `end`
        twice: an Apple GPU would be waited for without end."""

    def recycle(self, mark: Any) -> None:
        """Return a mark that will not be read again, so that it can be reused."""


@dataclass
class Lap:
    """One time window: `wall_ns` is exactly the sum of `phases`, including `other`."""

    wall_ns: int
    phases: dict[str, int]  # nanoseconds; only phases that occurred
    # Milliseconds; only for devices with their own timer.
    device_phases: dict[str, float] | None = None
    # Had the device not begun the last part of the step when the host had queued all of it, or had
    # to wait for it? For a whole run, the share of its windows.
    behind: float | None = None
    _marks: list[tuple[Any, str]] = field(default_factory=list, repr=False)
    _timer: DeviceTimer | None = field(default=None, repr=False)

    @property
    def wall_ms(self) -> float:
        return self.wall_ns / 1e6

    def phases_ms(self) -> dict[str, float]:
        return {name: ns / 1e6 for name, ns in self.phases.items()}

    def step_ms(self) -> float:
        """The training step alone: no evaluation, no checkpoint, no warm-up."""
        return step_time(self.phases_ms(), self.device_phases) or 0.0

    def is_settled(self) -> bool:
        """True once the device has finished the work of this window. Then `device_phases` is set,
        if the device has a timer."""
        if self._timer is None or self.device_phases is not None:
            return True
        if not self._timer.is_readable(self._marks[-1][0]):
            return False
        device_phases: dict[str, float] = {}
        for (start, name), (end, _) in pairwise(self._marks):
            elapsed = self._timer.elapsed_ms(start, end)
            device_phases[name] = device_phases.get(name, 0.0) + elapsed
        for mark, _ in self._marks[:-1]:  # the last mark is the first of the next window
            self._timer.recycle(mark)
        self.device_phases = device_phases
        self._marks = []
        return True


class _Phase:
    """Re-usable context manager: entering a phase allocates nothing."""

    __slots__ = ("_clock", "_name")

    def __init__(self, clock: "PhaseClock", name: str) -> None:
        self._clock = clock
        self._name = name

    def __enter__(self) -> None:
        self._clock._enter(self._name)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._clock._leave()


class PhaseClock:
    """Assigns every nanosecond to one phase. Not thread-safe: it measures one thread, the one that
    trains."""

    def __init__(self, now: Callable[[], int] = time.perf_counter_ns) -> None:
        self._now = now
        self._phases = {name: _Phase(self, name) for name in PHASES}
        self._stack = ["other"]
        self._window: dict[str, int] = {}
        self._total: dict[str, int] = {}
        self._timer: DeviceTimer | None = None
        self._marks: list[tuple[Any, str]] = []
        self._device_total: dict[str, float] = {}
        self._is_behind: bool | None = None  # in the current window, if `look` was called
        self._behind: list[int] = [0, 0]  # windows in which the device was behind, and all
        self.num_switches = 0
        self._started = self._last = now()

    def phase(self, name: str) -> _Phase:
        """Context manager: time inside it belongs to `name`."""
        return self._phases[name]

    def attach(self, timer: DeviceTimer) -> None:
        """Put marks into the device's queue from now on. Earlier times are host times only."""
        self._timer = timer
        self._marks = [(timer.mark(), self._stack[-1])]

    def lap(self) -> Lap:
        """End the current window and start the next one at the same instant."""
        self._charge()
        window, self._window = self._window, {}
        for name, ns in window.items():
            self._total[name] = self._total.get(name, 0) + ns
        lap = Lap(wall_ns=sum(window.values()), phases=window)
        if self._timer is not None:
            lap._timer, lap._marks = self._timer, self._marks
            mark = self._timer.mark()
            lap._marks.append((mark, "end"))
            self._marks = [(mark, self._stack[-1])]
            self.look(lap._marks)
            lap.behind = None if self._is_behind is None else float(self._is_behind)
            self._is_behind = None
        return lap

    def look(self, marks: list[tuple[Any, str]] | None = None) -> None:
        """Note whether the device is behind the host. `lap` does this, when all of an update is
        queued. If the host has to wait for the device in the last part of a step, call it just
        before: afterwards, the device is never behind."""
        marks = self._marks if marks is None else marks
        last_part = [mark for mark, name in marks if name == STEP_PHASES[-1]]
        if self._timer is not None and last_part and self._is_behind is None:
            self._is_behind = not self._timer.is_passed(last_part[-1])

    def add_device_times(self, lap: Lap) -> None:
        """Add the device's times of a window that is settled to the total."""
        for name, ms in (lap.device_phases or {}).items():
            self._device_total[name] = self._device_total.get(name, 0.0) + ms
        if lap.behind is not None:
            self._behind = [self._behind[0] + int(lap.behind), self._behind[1] + 1]

    def total(self) -> Lap:
        """The whole run so far: all ended windows and the current one."""
        self._charge()
        phases = dict(self._total)
        for name, ns in self._window.items():
            phases[name] = phases.get(name, 0) + ns
        behind, windows = self._behind
        return Lap(
            wall_ns=self._last - self._started,
            phases=phases,
            device_phases=dict(self._device_total) or None,
            behind=behind / windows if windows else None,
        )

    def elapsed_ms(self) -> float:
        """Time since the clock started."""
        return (self._now() - self._started) / 1e6

    def spent_ns(self, name: str) -> int:
        """The total time of a phase since the clock started."""
        self._charge()
        return self._total.get(name, 0) + self._window.get(name, 0)

    def _charge(self) -> None:
        now = self._now()
        name = self._stack[-1]
        self._window[name] = self._window.get(name, 0) + now - self._last
        self._last = now

    def _enter(self, name: str) -> None:
        self._charge()
        self._stack.append(name)
        self._switched()

    def _leave(self) -> None:
        self._charge()
        self._stack.pop()
        self._switched()

    def _switched(self) -> None:
        self.num_switches += 1
        if self._timer is not None:
            self._marks.append((self._timer.mark(), self._stack[-1]))


def cost_per_switch_ns(rounds: int = 200) -> float:
    """The time to enter or leave a phase on this machine, measured with a separate clock."""
    clock = PhaseClock()
    start = time.perf_counter_ns()
    for _ in range(rounds):
        with clock.phase("data"):
            pass
    return (time.perf_counter_ns() - start) / (2 * rounds)
