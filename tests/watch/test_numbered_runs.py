"""The list of runs that the live page shows."""

import json
from pathlib import Path
from typing import Any

import pytest

from helpers import open_run
from live_server import PAGE, Live, write_run
from stepglass.watch import page_app


def listed(live: Live) -> list[dict[str, Any]]:
    entries = json.loads(live.ask("/runs.json").body)
    assert isinstance(entries, list)
    return entries


def test_a_single_run_is_listed_under_0_even_before_it_exists(live):
    entry = {"id": 0, "name": "out", "state": "unknown"}
    keys = ("step", "max_iters", "best_val_loss", "loss", "tok_s", "changed")
    assert listed(live) == [entry | dict.fromkeys(keys)]
    newest = {"kind": "iter", "iter": 399, "loss": 2.0, "tokens": 30,
              "phases": {"forward_backward": 8.0, "optimizer": 2.0, "eval": 500.0}}  # fmt: skip
    write_run("out", newest, {"kind": "eval", "iter": 400}, max_iters=2000)
    Path("out/best.json").write_text('{"dir": "step-00000400-000001", "val_loss": 1.9}')
    known = {"step": 400, "max_iters": 2000, "best_val_loss": 1.9, "loss": 2.0, "tok_s": 3000.0}
    known["changed"] = Path("out/run.jsonl").stat().st_mtime
    run_lock = open_run(Path("out"))
    assert listed(live) == [entry | known | {"state": "running"}]
    run_lock.close()
    assert listed(live) == [entry | known | {"state": "killed"}]


@pytest.mark.parametrize(
    "reason", ["finished", "target", "patience", "signal", "failed", "oom", "error"]
)
def test_a_run_that_has_ended_says_how(live, reason):
    write_run("out", {"kind": "iter", "iter": 5}, {"kind": "end", "reason": reason})
    assert listed(live)[0]["state"] == reason


def test_runs_keep_their_numbers_and_new_ones_get_new_numbers():
    write_run("runs/b")
    with Live(folder=Path("runs"), is_run=False) as live:
        assert [(entry["id"], entry["name"]) for entry in listed(live)] == [(0, "b")]
        assert live.ask("/run/1").status == 404
        write_run("runs/a/deep")
        assert live.ask("/run/1").status == 200  # listed or not
        assert [(e["id"], e["name"]) for e in listed(live)] == [(1, "a/deep"), (0, "b")]
        with live.stream("/run/1/events") as stream:
            stream.events(1)
        assert list(live.runs) == [Path("runs/a/deep")]


def test_a_folder_that_holds_no_run_yet_is_waited_for():
    Path("later").mkdir()
    with Live(folder=Path("later"), is_run=False) as live:
        assert listed(live) == []
        assert live.ask("/").body == PAGE
        assert live.ask("/run/0").status == 404
        Path("later/run.jsonl").write_text("")
        assert [entry["name"] for entry in listed(live)] == ["later"]


def test_hostile_names_and_values_are_listed_as_what_they_are():
    hostile = "runs/<script>alert(1)<\\script>\x1b[31m\udcff"
    write_run(hostile, {"kind": "end", "reason": ["x"]}, {"kind": "iter", "iter": 10**400})
    (Path(hostile) / "config.json").write_text('{"max_iters": true}')
    (Path(hostile) / "best.json").write_text('{"val_loss": 1e999}')
    with Live(folder=Path("runs"), is_run=False) as live:
        (entry,) = listed(live)
        assert entry["name"] == "<script>alert(1)<\\script>?[31m?"
        assert (entry["step"], entry["max_iters"], entry["best_val_loss"]) == (None, None, None)
        assert live.ask("/runs.json").headers["content-type"] == "application/json"


def test_runs_that_nobody_looks_at_are_dropped_when_there_are_many(monkeypatch):
    monkeypatch.setattr(page_app, "MOST_SHARED_RUNS", 2)
    for name in "abcd":
        write_run(f"runs/{name}")
    with Live(folder=Path("runs"), is_run=False) as live:
        listed(live)
        with live.stream("/run/0/events") as kept:
            kept.events(3)
            for number in (1, 2, 3):
                with live.stream(f"/run/{number}/events") as stream:
                    stream.events(3)
            live.runs[Path("runs/a")].lines.append(b'{"n":3}')
            assert kept.events(1)[0]["id"] == "3"


def test_runs_are_compared_in_one_stream_that_goes_on_where_it_stopped():
    for name in "ab":
        write_run(f"runs/{name}")
    with Live(folder=Path("runs"), is_run=False) as live:
        assert live.ask("/compare/0/1").body == PAGE
        with live.stream("/compare/0/1/events") as stream:
            events = stream.events(6)
            assert {event["event"] for event in events} == {"row-0", "row-1"}
            assert events[-1]["id"] == "2,2"
        live.runs[Path("runs/b")].lines.append(b'{"n":3}')
        with live.stream("/compare/0/1/events?after=2,2") as stream:
            (event,) = stream.events(1)
            assert (event["event"], event["id"], event["data"]) == ("row-1", "2,3", '{"n":3}')


@pytest.mark.parametrize("runs", ["0", "0/0", "0/7", "0/x", "0/1/events/x", "/".join("012345678")])
def test_what_cannot_be_compared_is_not_found(runs):
    for name in "abcdefghi":
        write_run(f"runs/{name}")
    numbers = runs if runs != "0/7" else "0/77"
    with Live(folder=Path("runs"), is_run=False) as live:
        assert live.ask(f"/compare/{numbers}").status == 404
        assert live.ask(f"/compare/{numbers}/events").status == 404


def test_watching_writes_nothing():
    folder = write_run("runs/a", {"kind": "iter", "iter": 1})
    before = {path: path.stat().st_mtime_ns for path in [folder, *folder.iterdir()]}
    with Live(folder=Path("runs"), is_run=False) as live:
        listed(live)
        with live.stream("/run/0/events") as stream:
            stream.events(3)
    assert before == {path: path.stat().st_mtime_ns for path in [folder, *folder.iterdir()]}
