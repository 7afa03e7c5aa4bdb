"""A run that no longer improves is ended by patience, and one that memorises says so."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from helpers import prepare_tiny, records, train_tiny
from hooks import after_each_update
from stepglass.cli import main
from stepglass.run_dir import checkpoints
from stepglass.train.evaluation import Evaluation
from stepglass.train.turning import Turning


@pytest.fixture(autouse=True)
def data():
    prepare_tiny()


def losses_will_be(monkeypatch: pytest.MonkeyPatch, losses: list[float]) -> None:
    """Evaluations find these losses, one after the other."""
    left: Iterator[float] = iter(losses)
    monkeypatch.setattr(
        "stepglass.train.loop.evaluate", lambda *args: Evaluation(1.0, next(left), None, 1)
    )


def steps_of_evals() -> list[int]:
    return [record["iter"] for record in records("eval")]


def test_patience_ends_a_run_after_so_many_evaluations_without_a_new_best(monkeypatch, capsys):
    losses_will_be(monkeypatch, [3.0, 2.0, 2.5, 2.4, 9.0])
    assert train_tiny(eval_interval=1, max_iters=20, patience=2) == 0
    assert steps_of_evals() == [0, 1, 2, 3]
    assert records("end")[-1]["reason"] == "patience"
    said = capsys.readouterr().out
    assert (
        "ended by patience after 3 updates: 2 evaluations without a new best; --patience=0 goes on "
        "to the end"
    ) in said
    assert "best val loss 2.0000 at step 1" in said
    assert checkpoints.best(Path("out")).val_loss == 2.0
    assert main(["runs", "."]) == 0
    assert re.search(r"3/20 .* no more gain", capsys.readouterr().out)
    assert main(["explain", "out"]) == 0


@pytest.mark.parametrize("patience", [0, "auto", 4])
def test_without_patience_or_with_enough_of_it_a_run_is_whole(patience, monkeypatch):
    losses_will_be(monkeypatch, [3.0, 2.0, 2.5, 2.4, 2.3, 1.0, 1.5])
    assert train_tiny(eval_interval=1, max_iters=6, patience=patience) == 0
    assert records("end")[-1]["reason"] == "finished"


def test_patience_that_runs_out_at_the_last_step_is_the_end_of_the_run(monkeypatch):
    losses_will_be(monkeypatch, [1.0, 2.0, 3.0])
    assert train_tiny(eval_interval=1, max_iters=2, patience=2) == 0
    assert records("end")[-1]["reason"] == "finished"


def test_a_run_that_was_stopped_meanwhile_loses_patience_at_the_same_step(monkeypatch):
    losses = [3.0, 2.0, 2.1, 2.2, 2.3, 2.4, 2.5]
    with monkeypatch.context() as patch:
        losses_will_be(patch, losses)
        after_each_update(
            patch, lambda run: run.stop._handle(2, None) if run.state.step == 2 else None
        )
        assert train_tiny(eval_interval=1, max_iters=20, patience=3) == 0
    assert steps_of_evals() == [0, 1, 2]
    losses_will_be(monkeypatch, losses[3:])
    assert main(["train", "--out_dir=out", "--init_from=resume"]) == 0
    assert steps_of_evals() == [0, 1, 2, 3, 4]
    assert records("end")[-1]["reason"] == "patience"


def test_a_run_that_patience_has_ended_goes_on_if_somebody_asks(monkeypatch):
    losses_will_be(monkeypatch, [1.0, 2.0, 2.0, 2.0, 2.0, 2.0])
    assert train_tiny(eval_interval=1, max_iters=20, patience=2) == 0
    assert main(["train", "--out_dir=out", "--init_from=resume"]) == 0
    assert steps_of_evals() == [0, 1, 2, 3, 4]


def test_a_resumed_run_evaluates_at_the_steps_that_were_announced(monkeypatch, capsys):
    flags = {"eval_interval": "auto", "max_iters": 60, "eval_budget": 0.9}
    with monkeypatch.context() as patch:
        after_each_update(
            patch, lambda run: run.stop._handle(2, None) if run.state.step == 30 else None
        )
        assert train_tiny(**flags) == 0
    said = capsys.readouterr().out
    state = json.loads((checkpoints.committed(Path("out"))[0] / "state.json").read_text())
    every = state["eval_every"]
    assert f"evaluations: auto: every {every} iterations" in said
    assert main(["train", "--out_dir=out", "--init_from=resume"]) == 0
    assert f"evaluations: auto: every {every} iterations, as before" in capsys.readouterr().out
    assert all(step % every == 0 for step in steps_of_evals())


# -- the turn ------------------------------------------------------------------------------------


def evaluation(train_loss: float, losses: list[float]) -> Evaluation:
    val = torch.tensor(losses, dtype=torch.float64)
    return Evaluation(train_loss, float(val.mean()), None, len(val), val)


def said(evaluations: list[Evaluation]) -> list[tuple[int, str]]:
    turning = Turning()
    found = [(10 * i, turning.add(10 * i, each)) for i, each in enumerate(evaluations, 1)]
    return [(step, line) for step, line in found if line is not None]


BEST = [3.0, 5.0, 4.0, 2.0]


def risen(by: float) -> list[float]:
    """Every window is worse, though one window differs from another by far more."""
    return [loss + by + 0.01 * i for i, loss in enumerate(BEST)]


def test_the_turn_of_the_validation_loss_is_said_once():
    path = [(2.5, [loss + 1 for loss in BEST]), (2.0, BEST)]
    path += [(1.8, risen(0.1)), (1.6, risen(0.2)), (1.4, risen(0.3)), (1.2, risen(0.4))]
    [(step, line)] = said([evaluation(*each) for each in path])
    assert step == 40
    assert line == (
        "note: the validation loss has been above its best for 2 evaluations (best 3.5000 at step "
        "20), and the training loss still falls: the model begins to memorise; the best checkpoint "
        "is kept"
    )


def test_a_second_turn_is_said_again():
    path = [(2.0, BEST), (1.9, risen(0.1)), (1.8, risen(0.2))]
    path += [(1.7, [loss - 1 for loss in BEST]), (1.6, BEST), (1.5, BEST)]
    steps = [step for step, _ in said([evaluation(*each) for each in path])]
    assert steps == [30, 60]


def test_noise_is_no_turn():
    noisy = [[3.3, 4.8, 4.2, 1.9], [2.8, 5.3, 3.9, 2.2], [3.2, 4.9, 4.1, 2.0]]
    path = [(2.0, BEST), *((1.9 - i / 10, losses) for i, losses in enumerate(noisy))]
    assert said([evaluation(*each) for each in path]) == []


def test_a_run_whose_training_loss_rises_too_does_not_memorise():
    path = [(2.0, BEST), (2.2, risen(0.3)), (2.4, risen(0.5)), (2.6, risen(0.6))]
    assert said([evaluation(*each) for each in path]) == []


def test_a_run_says_that_it_begins_to_memorise(monkeypatch, capsys):
    path = iter([(2.0, BEST), (1.8, risen(0.1)), (1.6, risen(0.2)), (1.4, risen(0.3))])
    monkeypatch.setattr("stepglass.train.loop.evaluate", lambda *args: evaluation(*next(path)))
    assert train_tiny(eval_interval=2, max_iters=6) == 0
    assert capsys.readouterr().out.count("the model begins to memorise") == 1
