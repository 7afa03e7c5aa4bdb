"""Commands that need a log, given a model that was imported and not trained here yet."""

import json
from pathlib import Path

import pytest

from exchange import SHAPES, make_run
from stepglass import api
from stepglass.cli import main
from stepglass.report import command
from stepglass.run_dir import checkpoints
from stepglass.run_dir.imported_model import imported_model
from stepglass.watch.numbered_runs import NumberedRuns

LINE = (
    "their model: a model of 62.8k parameters, imported from x and not trained here yet, so there "
    "is no log; next: stepglass sample 'their model', stepglass train DATASET --init_from='their "
    "model' --out_dir=out-tuned, or stepglass explain LOG with the log of the program that trained "
    "it"
)


@pytest.mark.parametrize(
    "argv",
    [
        ["explain"],
        ["explain", "--follow"],
        ["explain", "--json"],
        ["report"],
        ["report", "--to=tensorboard"],
        ["watch"],
        ["advise"],
    ],
    ids=" ".join,
)
def test_a_command_that_needs_a_log_says_what_this_is_and_what_to_type(argv, capsys):
    make_run(SHAPES["llama"], "their model")
    before = sorted(Path().rglob("*"))
    capsys.readouterr()
    assert main([argv[0], "their model", *argv[1:]]) == 2
    found = capsys.readouterr()
    assert (found.err, found.out) == (f"error: {LINE}\n", "")
    assert sorted(Path().rglob("*")) == before


@pytest.mark.parametrize("ask", [api.read, api.explain, lambda run: api.load(run).explain()])
def test_from_python_it_is_the_same_line(ask):
    make_run(SHAPES["llama"], "their model")
    with pytest.raises(api.StepglassError) as error:
        ask("their model")
    assert str(error.value) == LINE


def test_a_page_of_a_folder_leaves_it_out_even_if_another_program_has_counted_updates(
    monkeypatch, capsys
):
    shown = []

    def read_run(target, *rest):
        shown.append(target)
        return {"story": {"name": "a"}, "messages": []}

    monkeypatch.setattr(command, "read_run", read_run)
    monkeypatch.setattr(command.page, "report_pieces", lambda *rest: ["page"])
    make_run(SHAPES["gpt2"], "work/theirs", step=100)
    Path("work/ours").mkdir()
    Path("work/ours/run.jsonl").write_text(
        '{"kind":"start"}\n{"kind":"iter","iter":4,"loss":1.0}\n'
    )
    capsys.readouterr()
    assert main(["report", "work"]) == 0
    assert "work/theirs: left out: an imported model, not trained here" in capsys.readouterr().out
    assert shown == ["work/ours"]


def test_the_table_of_watch_calls_it_what_runs_calls_it():
    make_run(SHAPES["llama"], "work/theirs")
    [entry] = NumberedRuns(Path("work"), is_run=False).entries()
    assert (entry["state"], entry["step"], entry["max_iters"]) == ("imported", None, None)
    Path("work/theirs/run.jsonl").write_text('{"kind":"iter","iter":4,"loss":1.0}\n')
    [entry] = NumberedRuns(Path("work"), is_run=False).entries()
    assert entry["state"] == "killed"  # it was trained here since


def test_the_card_of_an_export_does_not_claim_that_it_was_trained_here():
    make_run(SHAPES["llama"], "theirs")
    assert main(["export", "theirs", "--to=hf"]) == 0
    card = Path("theirs-hf/README.md").read_text()
    assert "imported from x, and not trained further by Stepglass." in card


@pytest.mark.parametrize(
    "state", [[], {"imported_from": "x"}, {"imported_from": "x", "model_config": {"n_layer": -1}}]
)
def test_a_damaged_folder_is_no_imported_model(state, capsys):
    make_run(SHAPES["llama"], "theirs")
    [checkpoint] = checkpoints.committed(Path("theirs"))
    (checkpoint / "state.json").write_text(json.dumps(state))
    assert imported_model(Path("theirs")) is None
    assert main(["explain", "theirs"]) == 2
    assert "no log in this folder" in capsys.readouterr().err


def test_escape_sequences_in_the_name_of_its_file_are_not_shown():
    make_run(SHAPES["llama"], "theirs")
    [checkpoint] = checkpoints.committed(Path("theirs"))
    state = json.loads((checkpoint / "state.json").read_text())
    state["imported_from"] = "a\x1b[31m\n" + "b" * 1000
    (checkpoint / "state.json").write_text(json.dumps(state))
    found = imported_model(Path("theirs"))
    assert found is not None
    assert "\x1b" not in found.source
    assert len(found.source) == 100
