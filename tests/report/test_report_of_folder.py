"""`stepglass report DIR`: a folder of runs becomes a page that compares them."""

import json
from pathlib import Path

import pytest

from helpers import train_tiny
from stepglass.cli import main
from stepglass.report import command
from stepglass.run_dir import checkpoints

pytestmark = pytest.mark.finished_run(out_dir="work/a")


@pytest.fixture(autouse=True)
def names(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The runs that are put into the page. How it looks is not of interest here."""
    read: list[str] = []

    def read_run(target: str, name: str, *rest: object) -> dict[str, object]:
        read.append(target)
        return {"story": {"name": name}, "messages": []}

    monkeypatch.setattr(command, "read_run", read_run)
    monkeypatch.setattr(command.page, "report_pieces", lambda runs, title, lang: [title])
    return read


def fake_run(path: str, val_loss: float | None) -> None:
    run = Path(path)
    run.mkdir(parents=True)
    (run / "run.jsonl").write_text('{"kind":"start"}\n{"kind":"iter","iter":4,"loss":1.0}\n')
    if val_loss is not None:
        best = {"dir": "step-00000004-000001", "val_loss": val_loss}
        best["sha256"] = checkpoints.hash_of_json(best)
        (run / "best.json").write_text(json.dumps(best))


def test_the_runs_in_a_folder_are_compared_in_a_page_there(names, capsys):
    train_tiny(out_dir="work/a", seed=2)  # moves the first one aside
    fake_run("work/deep/b", 1.0)
    capsys.readouterr()
    assert main(["report", "work"]) == 0
    assert names == ["work/a", "work/deep/b"]
    assert Path("work/report.html").read_text() == "a / b · Stepglass"
    assert capsys.readouterr().out.startswith("work/report.html: ")


def test_the_folder_of_a_run_is_that_run_and_not_the_runs_inside(names):
    fake_run("work/a/earlier-1", 1.0)
    fake_run("work/a/b", 1.0)
    assert main(["report", "work/a"]) == 0
    assert names == ["work/a"]


def test_of_too_many_runs_those_with_the_lowest_validation_loss_are_compared(names, capsys):
    for number in range(12):
        fake_run(f"many/{number:02d}", None if number == 0 else 3.0 - number / 10)
    assert main(["report", "many"]) == 0
    assert names == [f"many/{number:02d}" for number in range(4, 12)]
    assert "note: many: the 8 of 12 runs with the lowest validation loss" in capsys.readouterr().out


def test_a_run_without_an_iteration_is_left_out_with_a_note(names, capsys):
    fake_run("work/b", 1.0)
    Path("work/b/run.jsonl").write_text("")
    assert main(["report", "work"]) == 0
    assert names == ["work/a"]
    assert "note: work/b: left out: its log has no iteration\n" in capsys.readouterr().out
    Path("work/a/run.jsonl").unlink()
    assert main(["report", "work"]) == 2
    error = capsys.readouterr().err
    assert error == "error: work: none of the 2 runs in it has an iteration to show\n"


def test_folders_and_runs_can_be_named_together(names):
    fake_run("more/b", 1.0)
    fake_run("more/c", 1.0)
    assert main(["report", "work/a", "more"]) == 0
    assert names == ["work/a", "more/b", "more/c"]
    assert Path("report.html").exists()


def test_a_folder_without_runs_is_refused_in_one_line(capsys):
    assert main(["report", "data"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: data: no log in this folder; expected one of run.jsonl")
    assert error.endswith("or a folder of runs\n")
