"""A run that is resumed with a larger max_iters: its schedule follows, and its rate rises again."""

import re
import shutil
from pathlib import Path

import pytest

from helpers import forge_state, prepare_tiny, story, train_tiny
from runs import digest, stop_after
from stepglass.cli import main
from stepglass.run_dir import checkpoints

SHARES = {
    "max_iters": 20,
    "lr_schedule": "trapezoid",
    "warmup_iters": "10%",
    "cooldown_iters": "50%",
    "lr_decay_iters": "100%",
    "learning_rate": 1e-2,
    "min_lr": 1e-4,
    "eval_interval": 20,
    "log_interval": 50,
}


@pytest.fixture(autouse=True)
def data():
    prepare_tiny()


def rates(out_dir: str = "out") -> dict[int, float]:
    return {record["iter"]: record["lr"] for record in story("iter", out_dir)}


def extend(max_iters: int, *flags: str, out_dir: str = "out") -> int:
    argv = [f"--out_dir={out_dir}", "--init_from=resume", f"--max_iters={max_iters}", *flags]
    return main(["train", *argv])


@pytest.mark.finished_run(**SHARES)
def test_the_rate_of_an_extended_run_rises_again_and_says_so(capsys):
    assert extend(40) == 0
    said = capsys.readouterr().out
    lr = rates()
    assert lr[19] < 0.0012
    assert lr[20] < 0.002  # no jump
    assert lr[31] == pytest.approx(0.004555)  # the schedule of 40 iterations
    assert lr[39] < 0.0007
    assert re.search(
        r"schedule: now for 40 iterations instead of 20: the learning rate rises from 0\.0011 to "
        r"0\.0051 in 10 iterations, and falls again at the end",
        said,
    )
    assert "lr_decay_iters was 20, is 40" in said  # so it is not the run it would have been


@pytest.mark.finished_run(**SHARES)
def test_an_extended_run_that_is_stopped_while_it_warms_up_goes_on_the_same_way(monkeypatch):
    for out_dir in ("whole", "parts"):
        shutil.copytree("out", out_dir)
    extend(40, out_dir="whole")
    with monkeypatch.context() as patch:
        stop_after(patch, 25)
        extend(40, out_dir="parts")
    assert max(rates("parts")) < 39
    extend(40, out_dir="parts")
    assert rates("parts") == rates("whole")
    assert digest("parts") == digest("whole")


def test_a_run_that_is_extended_before_its_rate_falls_has_no_second_warm_up(monkeypatch, capsys):
    with monkeypatch.context() as patch:
        stop_after(patch, 8)
        train_tiny(**SHARES)
    capsys.readouterr()
    extend(40)
    assert "schedule:" not in capsys.readouterr().out
    assert rates()[8] == pytest.approx(1e-2)


def test_a_schedule_in_iterations_is_obeyed(capsys):
    train_tiny(**SHARES | {"lr_decay_iters": 20, "cooldown_iters": 10})
    capsys.readouterr()
    extend(30)
    said = capsys.readouterr().out
    assert (
        "warning: lr_decay_iters=20: the last 10 of 30 iterations train at the lowest rate" in said
    )
    assert rates()[29] == pytest.approx(1e-4)


@pytest.mark.parametrize("forged", [[5], [-1, 0.5], [3, 2.0], ["a", 1], 7, [3, None]])
@pytest.mark.finished_run(**SHARES)
def test_a_forged_rewarming_is_refused(forged, capsys):
    newest = next(iter(checkpoints.committed(Path("out"))))
    forge_state(newest, rewarm=forged)
    capsys.readouterr()
    assert extend(30) == 2
    assert "its state does not fit this run" in capsys.readouterr().err
