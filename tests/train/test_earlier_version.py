"""A run that an earlier version wrote (0.1 before its code was moved into rooms) is still a run.

`run_of_an_earlier_version` was written by it: `train_tiny(max_iters=6, dropout=0.1,
sample_tokens=10)` on the text of `prepare_tiny`.
"""

import json
import re
import shutil
from pathlib import Path

import pytest

from helpers import prepare_tiny, story, tiny_args
from stepglass.cli import main

OLD = Path(__file__).parent / "run_of_an_earlier_version"


@pytest.fixture(autouse=True)
def old_run() -> None:
    prepare_tiny()
    shutil.copytree(OLD, "out")


def test_its_checkpoint_resumes_and_learns_what_an_unbroken_run_does():
    assert main(["train", "--out_dir=out", "--init_from=resume", "--max_iters=9"]) == 0
    model = json.loads((OLD / "config.json").read_text())["model"]
    whole = tiny_args(max_iters=9, dropout=0.1, model=model, out_dir="whole")
    assert main(["train", *whole]) == 0
    losses = [[r["loss"] for r in story("iter", out_dir)] for out_dir in ("out", "whole")]
    assert len(losses[0]) == 9
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)  # other processors round differently


def test_its_log_is_explained(capsys):
    assert main(["explain", "out", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["format"] == "stepglass"
    assert [segment["last_iter"] for segment in found["segments"]] == [5]


def test_it_is_listed_verified_sampled_and_reported(capsys):
    assert main(["runs", "--verify"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^out  +tiny .* 6/6  +\d\.\d{4}  +n/a  finished$", out, re.M)
    assert "newest, best, verified" in out
    assert main(["sample", "out", "--max_new_tokens=5"]) == 0
    assert main(["report", "out"]) == 0
    assert "out/report.html" in capsys.readouterr().out
