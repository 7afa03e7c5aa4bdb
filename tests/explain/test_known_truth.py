"""On made-up logs of which the truth is known, `explain` is hardly ever wrong. More of them are in
benchmarks/known_truth.py."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import known_truth
from made_up_logs import text_of
from made_up_runs import FORMATS, LOSS_FAULTS, made_up_run

NUM_LOGS = 180


@pytest.fixture(scope="module")
def scores():
    return known_truth.judge(known_truth.made_up_runs(NUM_LOGS, seed=3))


def test_what_is_established_is_true(scores):
    by_rule, totals = scores
    assert totals["logs"] == NUM_LOGS
    assert {rule: score.false for rule, score in by_rule.items() if score.false_share > 0.02} == {}


@pytest.mark.parametrize(
    "rule", ["overfitting", "divergence", "nan-loss", "constant-loss", "loss-spike"]
)
def test_what_is_wrong_is_found(scores, rule):
    score = scores[0][rule]
    assert score.num_with > 0
    assert score.missed == []


@pytest.mark.parametrize("log_format", FORMATS)
def test_a_made_up_log_is_the_same_every_time_and_read_as_its_format(log_format):
    run = made_up_run(11, log_format, "overfitting")
    assert text_of(run) == text_of(made_up_run(11, log_format, "overfitting"))
    log = known_truth.read(run)
    assert log.format.name == log_format
    assert sum(len(s.evals) for s in log.segments) >= len(run.evals) - 1


def test_every_fault_of_the_loss_is_judged():
    for fault in LOSS_FAULTS:
        run = made_up_run(5, "nanogpt", fault)
        rule = "divergence" if fault == "recovered" else fault
        assert known_truth.has_fault(rule, run) is not False
        assert known_truth.has_fault(rule, made_up_run(5, "nanogpt")) is False
