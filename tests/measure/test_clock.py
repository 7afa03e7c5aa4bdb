"""The clock adds up."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import FakeTime
from stepglass.measure.clock import PHASES, PhaseClock, cost_per_switch_ns


def test_nested_phase_is_charged_once_and_the_rest_is_other():
    now = FakeTime()
    clock = PhaseClock(now)
    with clock.phase("eval"):
        now.advance(2.0)
        with clock.phase("checkpoint"):
            now.advance(3.0)
        now.advance(0.5)
    now.advance(1.0)
    lap = clock.lap()
    assert lap.phases == {
        "other": 1_000_000_000,
        "eval": 2_500_000_000,
        "checkpoint": 3_000_000_000,
    }
    assert lap.wall_ns == 6_500_000_000


def test_phase_that_raises_is_closed_and_charged():
    now = FakeTime()
    clock = PhaseClock(now)
    try:
        with clock.phase("data"):
            now.advance(1.0)
            raise ValueError
    except ValueError:
        now.advance(2.0)
    assert clock.lap().phases == {"data": 1_000_000_000, "other": 2_000_000_000}


def test_lap_inside_a_phase_splits_it_at_that_instant():
    now = FakeTime()
    clock = PhaseClock(now)
    with clock.phase("log"):
        now.advance(1.0)
        first = clock.lap()
        now.advance(2.0)
    second = clock.lap()
    assert (first.phases["log"], second.phases["log"]) == (1_000_000_000, 2_000_000_000)


def test_step_time_leaves_out_everything_but_the_step():
    now = FakeTime()
    clock = PhaseClock(now)
    for name in PHASES[:-1]:
        with clock.phase(name):
            now.advance(1.0)
    assert clock.lap().step_ms() == 3000.0  # data, forward_backward, optimizer


@given(
    st.lists(
        st.tuples(st.sampled_from(["enter", "leave", "lap", "wait"]), st.sampled_from(PHASES[:-1])),
        max_size=60,
    ),
    st.lists(st.integers(0, 10**12), min_size=61, max_size=61),
)
def test_laps_and_phases_add_up_to_the_wall_clock_whatever_happens(actions, delays):
    now = FakeTime()
    clock = PhaseClock(now)
    started, open_phases, laps = now(), [], []
    for (action, name), delay in zip(actions, delays, strict=False):
        now.now_ns += delay
        if action == "enter":
            open_phases.append(clock.phase(name))
            open_phases[-1].__enter__()
        elif action == "leave" and open_phases:
            open_phases.pop().__exit__(None, None, None)
        elif action == "lap":
            laps.append(clock.lap())
    laps.append(clock.lap())
    assert all(lap.wall_ns == sum(lap.phases.values()) for lap in laps)
    assert sum(lap.wall_ns for lap in laps) == now() - started == clock.total().wall_ns
    assert clock.total().wall_ns == sum(clock.total().phases.values())


def test_a_clock_that_loses_time_is_caught():
    """The identity above can fail: a clock that forgets the open phase breaks it."""
    now = FakeTime()
    clock = PhaseClock(now)
    clock._charge = lambda: setattr(clock, "_last", now())  # type: ignore[method-assign]
    with clock.phase("data"):
        now.advance(1.0)
    assert clock.lap().wall_ns != 1_000_000_000


@dataclass
class FakeTimer:
    """A device that works behind the host: marks are passed when `reach` says so."""

    marks: int = 0
    passed: int = 0
    free: list[int] = field(default_factory=list)
    read: set[int] = field(default_factory=set)

    def mark(self) -> int:
        self.marks += 1
        return self.marks

    def is_passed(self, mark: int) -> bool:
        return mark <= self.passed

    def is_readable(self, mark: int) -> bool:
        return self.is_passed(mark)

    def elapsed_ms(self, start: int, end: int) -> float:
        assert end not in self.read, "an Apple GPU would be waited for without end"
        self.read.add(end)
        return 10.0 * (end - start)

    def recycle(self, mark: int) -> None:
        self.free.append(mark)


def test_device_times_are_read_only_after_the_device_has_passed_them():
    clock, timer = PhaseClock(FakeTime()), FakeTimer()
    clock.attach(timer)
    with clock.phase("data"):
        pass
    with clock.phase("forward_backward"):
        pass
    lap = clock.lap()
    assert not lap.is_settled()
    assert lap.device_phases is None
    timer.passed = timer.marks
    assert lap.is_settled()
    assert lap.device_phases == {"other": 30.0, "data": 10.0, "forward_backward": 10.0}
    assert lap.step_ms() == 20.0


def test_marks_are_used_again_and_none_twice():
    clock, timer = PhaseClock(FakeTime()), FakeTimer()
    clock.attach(timer)
    laps = []
    for _ in range(3):
        with clock.phase("data"):
            pass
        laps.append(clock.lap())
    timer.passed = timer.marks
    assert all(lap.is_settled() for lap in laps)
    assert sorted(timer.free) == list(
        range(1, timer.marks)
    )  # all but the one that opens the next lap


def test_the_clock_can_tell_its_own_cost():
    assert 0 < cost_per_switch_ns(rounds=50) < 1e6


@pytest.mark.parametrize("is_fast", [True, False])
def test_device_times_of_a_run_add_up_and_say_whether_the_device_was_behind(is_fast):
    clock, timer = PhaseClock(FakeTime()), FakeTimer()
    clock.attach(timer)
    for _ in range(4):
        with clock.phase("forward_backward"):
            pass
        with clock.phase("optimizer"):
            if is_fast:
                timer.passed = timer.marks  # it has begun what is being queued
        lap = clock.lap()
        timer.passed = timer.marks
        assert lap.is_settled()
        clock.add_device_times(lap)
    total = clock.total()
    assert total.device_phases == {"other": 120.0, "forward_backward": 40.0, "optimizer": 40.0}
    assert total.behind == (0.0 if is_fast else 1.0)


@pytest.mark.parametrize("looks", [True, False])
def test_a_wait_inside_an_update_does_not_hide_that_the_device_was_behind(looks):
    """Loss scaling with Muon waits for the gradients within the optimizer's part: the device has
    caught up when the lap ends."""
    clock, timer = PhaseClock(FakeTime()), FakeTimer()
    clock.attach(timer)
    for _ in range(4):
        with clock.phase("forward_backward"):
            pass
        with clock.phase("optimizer"):
            if looks:
                clock.look()
            timer.passed = timer.marks  # the host has waited
        clock.add_device_times(clock.lap())
    assert clock.total().behind == (1.0 if looks else 0.0)
