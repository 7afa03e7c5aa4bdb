"""Evaluation keeps to its budget, and stops a run at its target."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from helpers import prepare_tiny, records, train_tiny
from stepglass.cli import main
from stepglass.data.dataset import load_dataset
from stepglass.hardware.choose import pick_device
from stepglass.run_dir import checkpoints
from stepglass.settings.train import TrainConfig
from stepglass.train.eval_schedule import BADLY, EvalSchedule
from stepglass.train.evaluate import Windows, evaluate, rows_at_once
from stepglass.train.evaluation import Evaluation


def schedule(**changes) -> EvalSchedule:
    settings = {
        "interval": None,
        "budget": 0.05,
        "max_iters": 5000,
        "tokens": 40_000,
        "tokens_per_iter": 1000,
    }
    return EvalSchedule(**(settings | changes))


def run(
    plan: EvalSchedule, iter_ms: float, eval_ms: float, said: list[str] | None = None
) -> tuple[list[int], float]:
    """The steps at which a run evaluates, the end included, and the share of time that took."""
    steps, lines = [], []
    for step in range(plan.max_iters + 1):
        known = iter_ms if step >= 10 else None
        lines.append(plan.decide(known))
        if plan.is_due(step) or step == plan.max_iters:
            steps.append(step)
            lines.append(plan.measured(eval_ms, known))
    if said is not None:
        said += [line for line in lines if line is not None]
    spent = len(steps) * eval_ms
    return steps, spent / (spent + plan.max_iters * iter_ms)


@pytest.mark.slow
@pytest.mark.parametrize("off", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("tokens", [500, 40_000, 1_000_000])
@pytest.mark.parametrize("max_iters", [100, 1200, 5000, 40_000])
def test_auto_keeps_to_the_budget_and_uses_it(off, tokens, max_iters):
    """`off`: how far the guess of an evaluation's time, made before the first, is off."""
    plan, iter_ms = schedule(max_iters=max_iters, tokens=tokens), 30.0
    eval_ms = plan.expected_ms(iter_ms) * off
    steps, share = run(plan, iter_ms, eval_ms)
    assert steps[-1] == max_iters
    if len(steps) > 1:  # one at the end there always is, whatever it costs
        too_early = eval_ms / (max_iters * iter_ms) if off > 1 else 0.0
        assert share <= 0.05 * BADLY + too_early
    affordable = 0.05 * max_iters * iter_ms / (eval_ms * max(1.0, 1 / off))
    assert len(steps) >= min(affordable, max_iters, 200) / 3 - 1, (
        "rounding up must not waste it all"
    )


def test_auto_evaluates_at_round_numbers_and_not_at_the_start():
    steps, _ = run(schedule(), iter_ms=30.0, eval_ms=400.0)
    assert steps[:3] == [500, 1000, 1500]


def test_auto_waits_until_it_knows_what_an_iteration_takes():
    plan = schedule()
    assert plan.decide(None) is None
    assert not any(plan.is_due(step) for step in range(100))


def test_a_number_is_obeyed_from_the_start():
    plan = schedule(interval=250)
    assert [step for step in range(1001) if plan.is_due(step)] == [0, 250, 500, 750, 1000]


def test_a_number_that_costs_much_is_noted_once_with_what_would_not():
    plan = schedule(interval=250)
    assert plan.measured(4000.0, 30.0) == (
        "note: eval_interval=250 costs 4.0s each, 34.8% of the time; eval_interval=auto keeps "
        "to 5% where the run is long enough"
    )
    assert plan.measured(4000.0, 30.0) is None
    assert schedule(interval=250).measured(100.0, 30.0) is None


@pytest.mark.parametrize("eval_ms", [150.0, 400.0, 550.0])
def test_the_interval_that_is_announced_is_kept_whatever_an_evaluation_takes(eval_ms):
    """A measured time within the budget, or a little above it, changes nothing."""
    plan, said = schedule(eval_ms=400.0), []
    steps, _ = run(plan, iter_ms=30.0, eval_ms=eval_ms, said=said)
    assert said == [
        "evaluations: auto: every 500 iterations, about 400.00ms each, 2.6% of the time"
    ]
    assert steps == list(range(500, 5001, 500))


def test_a_budget_that_is_badly_missed_changes_the_interval_once_and_says_so():
    plan, said = schedule(eval_ms=400.0), []
    steps, _ = run(plan, iter_ms=30.0, eval_ms=3000.0, said=said)
    assert said == [
        "evaluations: auto: every 500 iterations, about 400.00ms each, 2.6% of the time",
        "evaluations: auto: now every 2500 iterations: they take longer, 3.0s each, 3.8% of the "
        "time",
    ]
    assert steps == [500, 2500, 5000]
    assert plan.measured(90_000.0, 30.0) is None
    assert plan.every == 2500


def test_a_run_too_short_for_more_is_evaluated_at_the_end():
    assert (
        schedule(max_iters=20, eval_ms=400.0)
        .decide(30.0)
        .startswith("evaluations: auto: at the end, about 400.00ms each")
    )


def test_a_resumed_run_keeps_the_interval():
    plan = schedule()
    assert plan.keep(250) == "evaluations: auto: every 250 iterations, as before"
    assert plan.decide(30.0) is None
    assert plan.measured(9000.0, 30.0) is None
    assert [step for step in range(1, 1001) if plan.is_due(step)] == [250, 500, 750, 1000]


def test_a_run_with_defaults_evaluates_at_the_end_at_least(capsys):
    prepare_tiny()
    assert train_tiny(eval_interval="auto", max_iters=12) == 0
    steps = [record["iter"] for record in records("eval")]
    assert steps[-1] == 12
    assert 0 not in steps
    assert re.search(r"evaluations: auto: .*% of the time", capsys.readouterr().out)


# -- the target ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_target_ends_the_run_at_the_first_evaluation_that_reaches_it(capsys):
    prepare_tiny()
    settings = {"eval_interval": 1, "max_iters": 20, "lr_decay_iters": 20}
    assert train_tiny(target_val_loss=1e-9, **settings) == 0
    losses = {record["iter"]: record["val_loss"] for record in records("eval")}
    target = losses[8]
    first = min(step for step, loss in losses.items() if loss <= target)
    assert train_tiny(target_val_loss=target, out_dir="short", **settings) == 0
    assert [record["reason"] for record in records("end", "short")] == ["target"]
    assert [record["iter"] for record in records("eval", "short")] == list(range(first + 1))
    newest = checkpoints.committed(Path("short"))[0]
    assert newest.name.startswith(f"step-{first:08d}")
    assert f"target reached after {first} updates" in capsys.readouterr().out


def test_a_target_is_for_the_whole_validation_split():
    prepare_tiny()
    assert train_tiny(eval_iters=1, target_val_loss=0.001) == 0
    val_tokens = records("start")[-1]["data"]["val"]["tokens"]
    assert {r["windows"] for r in records("eval")} == {(val_tokens - 1) // 8}
    assert [r["reason"] for r in records("end")] == ["finished"]


def test_a_target_that_is_not_reached_is_said(capsys):
    prepare_tiny()
    assert train_tiny(target_val_loss=0.001) == 0
    assert re.search(
        r"target not reached: val loss [\d.]+ > 0.0010 after 6", capsys.readouterr().out
    )


def test_looking_at_a_run_again_says_whether_it_is_at_its_target(capsys):
    prepare_tiny()
    assert train_tiny(eval_interval=1, max_iters=40, target_val_loss=2.9) == 0
    assert main(["train", "--out_dir=out", "--init_from=resume", "--eval_only"]) == 0
    lines = capsys.readouterr().out.splitlines()
    said = [line for line in lines if line.startswith("target reached")]
    assert len(said) == 2
    assert all("val loss n/a" not in line for line in said)


def test_no_target_is_no_target_even_for_a_loss_of_zero(monkeypatch):
    prepare_tiny()
    monkeypatch.setattr(
        "stepglass.train.loop.evaluate", lambda *args: Evaluation(0.0, 0.0, None, 1)
    )
    assert train_tiny() == 0
    assert [record["reason"] for record in records("end")] == ["finished"]


@pytest.mark.parametrize(
    ("device_type", "most", "block_size", "rows"),
    [
        ("cpu", 5000, 64, 128),
        ("cpu", 3, 64, 3),
        ("cuda", 2400, 1024, 32),
        ("mps", 2400, 1024, 32),  # its free memory is unknown
        ("mps", 2400, 100_000, 1),
    ],
)
def test_tokens_at_once_are_limited_on_every_device(device_type, most, block_size, rows):
    device = replace(pick_device(TrainConfig(device="cpu")), torch_device=torch.device(device_type))
    assert rows_at_once(most, block_size, device) == rows


class SmallEngine:
    """Has memory for a few rows. The loss of a window is its first token."""

    def __init__(self, device, most_rows):
        self.device, self.most_rows, self.asked = device, most_rows, []

    def score(self, x, y):
        self.asked.append(len(x))
        if len(x) > self.most_rows:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return x[:, 0].float()


@pytest.mark.parametrize("does_compile", [False, True])
def test_a_batch_that_does_not_fit_is_halved_and_so_are_those_after_it(does_compile):
    prepare_tiny()
    data = load_dataset("tiny", 8)
    device = replace(pick_device(TrainConfig(device="cpu")), compile=does_compile)
    offsets = np.arange(13) * 8
    windows = Windows(data, offsets, offsets, 8, rows=12)
    engine = SmallEngine(device, most_rows=3)
    result = evaluate(engine, windows, lambda: False)
    assert result.windows == 13
    first_tokens = data.val.windows(offsets, 1)[:, 0]
    assert result.val_losses.tolist() == first_tokens.tolist()
    assert windows.rows == 3
    last = 3 if does_compile else 1  # a compiled model gets batches of one size
    assert engine.asked[:7] == [12, 6, 3, 3, 3, 3, last]
    assert max(engine.asked[7:]) == 3


def test_memory_that_one_window_does_not_have_ends_the_run():
    prepare_tiny()
    windows = Windows(load_dataset("tiny", 8), np.arange(3), np.arange(3), 8, rows=2)
    engine = SmallEngine(pick_device(TrainConfig(device="cpu")), most_rows=0)
    with pytest.raises(torch.OutOfMemoryError):
        evaluate(engine, windows, lambda: False)
    assert engine.asked == [2, 1]
