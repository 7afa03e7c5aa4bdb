"""Stepglass from Python, as a notebook or a program calls it."""

import ast
import json
import subprocess
import sys
import threading
import typing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepglass
from helpers import TINY, records
from stepglass import api
from stepglass.cli import COMMANDS, main
from stepglass.errors import ConfigError, LogError, MissingPackage
from stepglass.explain.render.languages import Language
from stepglass.logs.table import CAPACITY
from stepglass.settings.sample import SampleConfig

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "python.md").read_text()
LOG = "".join(f"iter {n}: loss {3 - n / 50:.4f}, time 33.20ms, mfu 11.00%\n" for n in range(40))
OVERFITTED = LOG + "step 40: train loss 0.6224, val loss 1.7044\n"


def cells() -> list[str]:
    notebook = json.loads((ROOT / "docs" / "python.ipynb").read_text())
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def executed(code: str, names: dict[str, Any]) -> Any:
    """Run a cell, and return the value of its last line if that is an expression."""
    tree = ast.parse(code)
    last = tree.body[-1]
    if not isinstance(last, ast.Expr):
        exec(compile(tree, "cell", "exec"), names)
        return None
    exec(compile(ast.Module(tree.body[:-1], []), "cell", "exec"), names)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names)


def test_the_notebook_runs_from_its_first_cell_to_its_last(capsys):
    names: dict[str, Any] = {}
    _, trained, text, several, frame, found, _ = (executed(code, names) for code in cells())
    num, first, last = trained
    assert num in (20, 40, 60)  # the callback may end it after an evaluation
    assert last < first
    assert len(text) <= 40
    assert "\n" not in text
    assert len(several) == 2
    assert list(frame.columns) == ["iter", "loss", "step_ms", "lr"]
    assert found == ("nanogpt", pytest.approx(2.22), [1.7044])
    out = capsys.readouterr().out
    assert "Problem: The validation loss is far above the training loss: overfitting" in out
    assert out.count("'overfitting'") == 4


def test_the_page_shows_only_names_that_exist():
    blocks = PAGE.split("```python\n")[1:]
    used = {
        node.attr
        for block in blocks
        for node in ast.walk(ast.parse(block.split("```")[0]))
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "api"
    }
    assert used <= set(api.__all__)
    assert {"train", "sample", "explain", "read", "load", "prepare"} <= used


def test_names_are_those_of_the_command_line():
    assert {"prepare", "train", "sample", "explain"} <= set(COMMANDS) & set(api.__all__)
    assert typing.get_args(Language) == typing.get_args(api.Language)
    kinds = typing.get_type_hints(SampleConfig)
    for name, kind in typing.get_type_hints(api.SampleOptions).items():
        assert name in kinds
        assert name == "stop" or kind is kinds[name]


def test_torch_is_imported_only_where_it_is_used():
    Path("train.log").write_text(LOG)
    code = (
        "import sys; sys.modules['torch'] = None; import stepglass\n"
        "log = stepglass.api.read('train.log'); log.explain('de')\n"
        "run = stepglass.api.load('out')\n"
        "for call in (run.sample, lambda: stepglass.api.train('train.log')):\n"
        "    try: call()\n"
        "    except stepglass.api.StepglassError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    line = "this needs torch, which is not installed; type: pip install stepglass\n"
    assert (done.stdout, done.stderr) == (line * 2, "")


def test_the_package_alone_imports_nothing():
    code = "import sys, stepglass; print([m for m in sys.modules if m.startswith('stepglass.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        stepglass.nothing  # noqa: B018


@pytest.mark.finished_run
def test_a_run_says_what_the_command_says(capsys):
    run = api.load("out", device="cpu")
    text = run.sample("To be", max_new_tokens=20, seed=3)
    capsys.readouterr()
    assert main(["sample", "out", "--prompt=To be", "--max_new_tokens=20", "--seed=3"]) == 0
    assert capsys.readouterr().out == f"To be{text}\n"
    assert text == api.sample("out", "To be", max_new_tokens=20, seed=3)
    assert text == "".join(run.stream("To be", max_new_tokens=20, seed=3))
    assert run.samples(["that", "To be"], max_new_tokens=20, seed=2)[1] == text
    assert (
        run.sample("To be", max_new_tokens=20, seed=3, stop=text[5:8])
        == text[: text.index(text[5:8])]
    )
    with pytest.raises(ConfigError, match="temperature must be at least 0"):
        run.sample("To be", temperature=-1.0)


@pytest.mark.finished_run
def test_columns_are_those_of_the_run_log():
    log = api.load("out").read()
    iters = records("iter")
    columns = log.iterations
    assert columns["iter"].tolist() == [record["iter"] for record in iters]
    assert np.allclose(columns["loss"], [record["loss"] for record in iters])
    assert columns["segment"].tolist() == [0.0] * len(iters)
    assert log.evaluations["val_loss"] == [record["val_loss"] for record in records("eval")]
    assert log.settings["max_iters"] == TINY["max_iters"]
    frame = log.evaluations_to_pandas()
    assert frame["iter"].tolist() == [record["iter"] for record in records("eval")]
    assert len(log) == len(iters)
    assert repr(log) == f"ColumnLog('out/run.jsonl', {log.format}, {len(iters)} iterations)"


def test_no_row_of_a_long_log_is_left_out():
    rows = CAPACITY + 5000
    Path("long.log").write_text(
        "".join(f"iter {n}: loss 2.0000, time 3.00ms, mfu 1.00%\n" for n in range(rows))
    )
    assert len(api.read("long.log").iterations["loss"]) == rows


def test_an_explanation_has_the_same_in_every_language():
    Path("train.log").write_text(OVERFITTED)
    found = {lang: api.explain("train.log", lang) for lang in typing.get_args(Language)}
    rules = {tuple(one.rule for one in each.findings) for each in found.values()}
    assert len(rules) == 1
    assert len({each.findings[0].title for each in found.values()}) == len(found)
    first = found["en"].findings[0]
    assert (first.rule, first.level, first.lines) == ("overfitting", "problem", [41])
    assert str(found["en"]).startswith("Problem: The validation loss is far above")


def test_mistakes_are_errors_of_ours():
    with pytest.raises(LogError, match=r"nothing\.log: no such file"):
        api.read("nothing.log")
    with pytest.raises(ConfigError, match="did you mean max_iters"):
        api.train("verse.txt", max_iter=3)


def test_without_pandas_one_line_says_what_to_type(monkeypatch):
    Path("train.log").write_text(LOG)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingPackage, match=r"pip install 'stepglass\[pandas\]'"):
        api.read("train.log").to_pandas()


def tiny(**changes: Any) -> dict[str, Any]:
    return {name: value for name, value in (TINY | changes).items() if name != "dataset"}


def text() -> str:
    Path("verse.txt").write_text("To be, or not to be\n" * 200)
    return "verse.txt"


def test_a_callback_gets_every_record_and_can_end_the_run():
    seen: list[dict[str, Any]] = []

    def stop_at_three(record: dict[str, Any]) -> bool:
        seen.append(record)
        return record["kind"] == "iter" and record["iter"] == 3

    run = api.train(text(), **tiny(max_iters=50), on_record=stop_at_three, quiet=True)
    assert run.path == Path("out")
    logged = [r for kind in ("start", "iter", "eval", "checkpoint", "end") for r in records(kind)]
    assert seen[0] == records("start")[0]
    assert [r for r in seen if r["kind"] == "iter"] == records("iter")
    assert len(records("iter")) == 4
    assert sorted(r["kind"] for r in seen if r["kind"] != "event") == sorted(
        r["kind"] for r in logged
    )
    assert records("end")[0]["reason"] == "signal"


def test_an_error_in_a_callback_ends_the_run_and_is_shown():
    def broken(record: dict[str, Any]) -> None:
        raise ZeroDivisionError("in the callback")

    with pytest.raises(ZeroDivisionError, match="in the callback"):
        api.train(text(), **tiny(), on_record=broken, quiet=True)
    api.train(text(), **tiny(), quiet=True)  # nothing is locked


def test_a_run_may_be_trained_in_a_thread(capsys):
    path = text()
    found: list[api.TrainedRun] = []
    thread = threading.Thread(target=lambda: found.append(api.train(path, **tiny())))
    thread.start()
    thread.join()
    assert found[0].explain("fr").answer
    assert "iter 0: loss" in capsys.readouterr().out
