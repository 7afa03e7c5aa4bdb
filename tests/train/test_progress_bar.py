"""The progress bar: what it shows, how wide it is, and when the run will end."""

from types import SimpleNamespace

import pytest

from stepglass.measure.ledger import LedgerRow
from stepglass.settings.train import TrainConfig
from stepglass.train.eval_schedule import EvalSchedule
from stepglass.train.progress_bar import ASCII_LINE, Moment, bar_rows
from stepglass.train.run import Run, RunState
from stepglass.train.time_budget import END_MS, TimeBudget
from stepglass.train.time_left import expected_last_step, time_left_ms
from stepglass.train.training import Training

PHASES = [
    LedgerRow("warmup", 300.0, 0.3),
    LedgerRow("forward_backward", 600.0, 0.6),
    LedgerRow("optimizer", 96.0, 0.096),
    LedgerRow("log", 4.0, 0.004),
]
MOMENT = Moment(
    done=420,
    last=833,
    spent_ms=75_300,
    left_ms=58_000,
    loss=1.75061,
    best_val_loss=None,
    tokens_per_s=15_432,
    phases=PHASES,
)


def lines(moment: Moment, width: int) -> list[str]:
    return ["".join(text for text, _ in row) for row in bar_rows(moment, width, ASCII_LINE)]


def test_a_wide_terminal_shows_everything():
    assert lines(MOMENT, 76) == [
        "##################-------------------  420/833, 50%, 1m 15s so far, 58s left",
        "loss 1.7506, best val n/a, 15.4k tokens/s",
        "forward_backward 60%  start-up 30%  optimizer 10%",
    ]


def test_a_narrow_terminal_shows_what_matters_most():
    assert lines(MOMENT, 47) == [
        "###########------------  420/833, 50%, 58s left",
        "loss 1.7506, best val n/a, 15.4k tokens/s",
        "forward_backward 60%  start-up 30%",
    ]
    assert lines(MOMENT, 27) == [
        "########---------  58s left",
        "loss 1.7506, best val n/a",
        "forward_backward 60%",
    ]
    assert lines(MOMENT, 12) == ["50%", "loss 1.7506", ""]


@pytest.mark.parametrize("last", [1, 833, 60_000, 600_000])
@pytest.mark.parametrize("left_ms", [None, 0.0, 42_000.0, 36_000_000.0, 4e10])
def test_no_row_is_wider_than_the_terminal(last, left_ms):
    for done in (1, last):
        moment = Moment(done, last, 1e9, left_ms, 12.3456, 1.2345, 12_345_678.0, PHASES)
        for width in range(1, 200):
            assert all(len(line) <= width for line in lines(moment, width)), width


# -- the time left ------------------------------------------------------------------------------


def left_ms(
    schedule: EvalSchedule, steps: int, last: int, eval_ms: float = 0, evaluated_at: int = -1
) -> float | None:
    """The time left of a run whose steps took 10 ms each, beside evaluations and the start-up."""
    spent = {"eval": eval_ms * 1e6, "warmup": 5e9}
    clock = SimpleNamespace(
        spent_ns=spent.__getitem__, elapsed_ms=lambda: 5000 + eval_ms + 10 * steps
    )
    state = RunState(step=steps, evaluated_at=evaluated_at)
    run = Run(*[None] * 4, clock, *[None] * 3, state)  # type: ignore[arg-type]
    return time_left_ms(training(run, schedule, last))


def training(run: Run, schedule: EvalSchedule, last: int) -> Training:
    evals, saves = SimpleNamespace(schedule=schedule), SimpleNamespace(write_ms=100.0)
    return Training(run, evals, saves, None, last)  # type: ignore[arg-type]


def schedule(interval: int | None, eval_ms: float | None, max_iters: int = 100) -> EvalSchedule:
    return EvalSchedule(interval, 0.05, max_iters, tokens=50, tokens_per_iter=1, eval_ms=eval_ms)


def test_the_time_left_includes_every_evaluation_that_is_still_due():
    # 60 steps; evaluations at 50, 75 and 100
    assert left_ms(schedule(25, 1000.0), 40, 100, eval_ms=2000) == pytest.approx(600 + 3000)
    # at 50, which is due now, at 75 and 100
    assert left_ms(schedule(25, 1000.0), 50, 100) == pytest.approx(500 + 3000)
    assert left_ms(schedule(25, 1000.0), 50, 100, evaluated_at=50) == pytest.approx(500 + 2000)
    # at 75, 100 and, in the end, 110
    assert left_ms(schedule(25, 1000.0), 60, 110) == pytest.approx(500 + 3000)


def test_before_the_first_evaluation_its_time_is_estimated():
    assert left_ms(schedule(50, None), 20, 100) == pytest.approx(800 + 2 * (10 * 0.4 * 50))


def test_at_the_end_only_the_last_evaluation_is_left():
    assert left_ms(schedule(None, 1000.0), 100, 100) == pytest.approx(1000)
    assert left_ms(schedule(None, 1000.0), 100, 100, evaluated_at=100) == pytest.approx(0)


def test_nothing_is_said_of_the_time_left_before_the_first_step():
    assert left_ms(schedule(None, None), 0, 100) is None


def test_a_run_with_a_time_budget_ends_with_the_budget():
    """Ten seconds have passed of sixty, in 100 steps. An evaluation, the last checkpoint and the
    end of the process take 2 of them."""
    clock = SimpleNamespace(spent_ns=lambda phase: 0, elapsed_ms=lambda: 10_000.0)
    budget = TimeBudget(60_000, clock.elapsed_ms)
    cfg = TrainConfig(max_iters=700)
    run = Run(cfg, *[None] * 3, clock, *[None] * 3, RunState(step=100), budget=budget)  # type: ignore[arg-type]
    t = training(run, schedule(25, 2000.0 - 100.0 - END_MS), 10**9)
    assert time_left_ms(t) == 50_000
    assert expected_last_step(t) == 580
