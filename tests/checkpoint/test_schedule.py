"""When to save: iterations, durations, and the balance of `auto`."""

import pytest

from stepglass.checkpoint.schedule import SaveSchedule
from stepglass.errors import ConfigError
from stepglass.settings.interval import Interval, parse_interval

MINUTE = 60_000.0
HOUR = 60 * MINUTE


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("auto", Interval()),
        (500, Interval(iters=500)),
        ("500", Interval(iters=500)),
        ("90s", Interval(seconds=90)),
        ("10m", Interval(seconds=600)),
        ("1.5h", Interval(seconds=5400)),
    ],
)
def test_an_interval_is_iterations_a_duration_or_auto(given, expected):
    assert parse_interval(given) == expected


@pytest.mark.parametrize("given", ["", "0", 0, -5, "-5m", "10 m", "m", "1.5", "ten", "0s", "1e3"])
def test_anything_else_is_refused(given):
    with pytest.raises(ConfigError, match="expects auto, iterations"):
        parse_interval(given)


def test_iterations_count_from_the_start_of_the_run():
    schedule = SaveSchedule(parse_interval(4), keep_every=0)
    assert [step for step in range(1, 13) if schedule.is_due(step, 0.0)] == [4, 8, 12]


def test_a_duration_counts_from_the_last_save_whatever_it_was_for():
    schedule = SaveSchedule(parse_interval("10m"), keep_every=0)
    assert not schedule.is_due(1, 9 * MINUTE)
    assert schedule.is_due(1, 10 * MINUTE)
    schedule.began(7 * MINUTE)
    assert not schedule.is_due(1, 16 * MINUTE)
    assert schedule.is_due(1, 17 * MINUTE)


def test_pinned_steps_are_saved_whatever_the_interval():
    schedule = SaveSchedule(parse_interval("10m"), keep_every=5)
    assert [step for step in range(1, 12) if schedule.is_due(step, 0.0)] == [5, 10]


def test_auto_risks_two_minutes_of_a_short_run():
    schedule = SaveSchedule(parse_interval("auto"), keep_every=0)
    schedule.measured(stall_ms=15, write_ms=5000)
    assert schedule.every_ms(30 * MINUTE) + 5000 == 2 * MINUTE


def test_auto_risks_a_hundredth_of_a_long_run_and_never_more_than_a_quarter_of_an_hour():
    schedule = SaveSchedule(parse_interval("auto"), keep_every=0)
    assert schedule.every_ms(10 * HOUR) == 6 * MINUTE
    assert schedule.every_ms(500 * HOUR) == 15 * MINUTE


def test_auto_keeps_stalls_under_one_percent():
    schedule = SaveSchedule(parse_interval("auto"), keep_every=0)
    schedule.measured(stall_ms=6000, write_ms=100)
    assert 6000 / schedule.every_ms(0) <= 0.01


def test_auto_keeps_what_the_writer_takes_from_training_under_one_percent():
    schedule = SaveSchedule(parse_interval("auto"), keep_every=0)
    schedule.measured(stall_ms=1, write_ms=30_000, taken_ms=2000)
    assert 2000 / schedule.every_ms(0) <= 0.01


def test_auto_gives_a_slow_disk_time_to_rest():
    schedule = SaveSchedule(parse_interval("auto"), keep_every=0)
    schedule.measured(stall_ms=1, write_ms=20 * MINUTE)
    assert schedule.every_ms(0) == 40 * MINUTE


def test_the_bound_is_printed_in_words():
    schedule = SaveSchedule(parse_interval("auto"), keep_every=0)
    assert schedule.bound(0) == (
        "auto: every 2m 00s and at each best evaluation, at most 2m 00s of work at risk"
    )
    schedule.measured(stall_ms=1.0, write_ms=30_000)
    assert "every 1m 30s and at each best evaluation, at most 2m 00s" in schedule.bound(0)
    assert SaveSchedule(parse_interval("10m"), 0).bound(0) == (
        "every 10m 00s and at each best evaluation, at most 10m 00s of work at risk"
    )
    assert SaveSchedule(parse_interval(50), 0).bound(0) == (
        "every 50 iterations and at each best evaluation"
    )
