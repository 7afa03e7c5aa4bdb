"""`stepglass runs`: what there is, how it ended, whether it is whole."""

import json
import math
import re
import threading
from pathlib import Path
from typing import Any

import pytest

from helpers import open_run, train_tiny
from stepglass.cli import main
from stepglass.run_dir import checkpoints, lock
from stepglass.settings.train import TRAIN_SETTINGS

PAGE = Path(__file__).parents[2] / "docs" / "runs.md"
pytestmark = pytest.mark.finished_run(out_dir="work/first")


def listed(capsys, *args: str) -> tuple[int, list[str], str]:
    capsys.readouterr()
    code = main(["runs", *args])
    captured = capsys.readouterr()
    return code, captured.out.splitlines(), captured.err


def json_of(capsys, *args: str) -> list[dict[str, Any]]:
    _, lines, _ = listed(capsys, *args, "--json")
    return json.loads("\n".join(lines))


def fake_run(path: str, val_loss: float | None = None, **more: Any) -> Path:
    """A run that only its small files tell of. `more` is what its log says."""
    run = Path(path)
    run.mkdir(parents=True)
    start = {"kind": "start", "time": 1.7e9, "model": {"parameters": 512_000},
             "data": {"val_bytes_per_token": 2.0}, "config": {"max_iters": 9}}  # fmt: skip
    iteration = {"kind": "iter", "iter": 4}
    records = more.get("records", [start | more.get("start", {}), iteration])
    (run / "run.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    settings = {"max_iters": 5, "dataset": "tiny"} | more.get("settings", {})
    (run / "config.json").write_text(json.dumps(settings))
    if val_loss is not None:
        best = {"dir": "step-00000004-000001", "val_loss": val_loss}
        best["sha256"] = checkpoints.hash_of_json(best)
        (run / "best.json").write_text(json.dumps(best))
    return run


# -- the table ----------------------------------------------------------------------------------


def test_runs_are_a_table_with_what_differs(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    train_tiny(out_dir="work/first", seed=2)  # moves the first one aside
    code, lines, _ = listed(capsys, "work")
    assert code == 0
    assert re.split("  +", lines[0]) == [
        "run", "data", "params", "started", "iters", "val loss", "bits/byte", "state",
        "settings that differ",
    ]  # fmt: skip
    for name, seed in (("work/first", 2), ("work/first/earlier-1", 1337)):
        [line] = [line for line in lines if line.startswith(f"{name} ")]
        assert re.fullmatch(
            rf"{name} +tiny +[\d.]+k  20\d\d-\d\d-\d\d \d\d:\d\d    6/6    \d\.\d{{4}}  "
            rf" +\d\.\d{{4}}  finished  seed={seed}",
            line,
        )
    assert re.fullmatch(
        r"1 earlier run \(earlier-N\) of [\d.]+ kB in all; to delete: stepglass runs prune work",
        lines[-1],
    )


def test_bits_per_byte_are_those_of_the_best_validation_loss(capsys):
    fake_run("other/a", val_loss=2 * math.log(2))
    fake_run("other/b", val_loss=2 * math.log(2), start={"data": {}})
    found = json_of(capsys, "other")
    assert [run["bits_per_byte"] for run in found] == [pytest.approx(1.0), None]
    assert " n/a " in listed(capsys, "other")[1][2]


@pytest.mark.parametrize("width", [40, 50, 80, 120, 200])
def test_the_table_fits_the_terminal_and_cuts_no_name(width, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    names = [f"sweep/learning_rate=0.00{n},n_layer=2" for n in range(1, 4)]
    for n, name in enumerate(names):
        fake_run(name, 1.0 + n, settings={"learning_rate": n / 1000, "n_layer": n, "seed": n})
    _, lines, _ = listed(capsys, "sweep")
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    assert all(name in text for name in names)
    assert all(f"{1 + n}.0000" in text and f"seed={n}" in text for n in range(3))
    dropped = re.findall("no room for: (.*)", text)
    assert bool(dropped) == (width < 120)
    if width == 50:
        assert "started" in dropped[0]
        assert "val loss" not in dropped[0]


def test_a_name_of_wide_characters_keeps_the_columns_in_place(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    fake_run("other/日本語", 1.0)
    fake_run("other/abcdef", 2.0)
    _, lines, _ = listed(capsys, "other")
    assert lines[1].index("tiny") + 3 == lines[2].index("tiny")  # three characters, six columns


def test_only_settings_that_differ_are_shown(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    fake_run("other/a", 1.0, settings={"learning_rate": 0.1, "n_layer": 2, "out_dir": "x"})
    fake_run("other/b", 2.0, settings={"learning_rate": 0.2, "n_layer": 2, "out_dir": "y"})
    fake_run("other/c", 3.0, settings={"n_layer": 2})
    assert [run["differs"] for run in json_of(capsys, "other")] == [
        {"learning_rate": 0.1},
        {"learning_rate": 0.2},
        {"learning_rate": None},
    ]
    assert listed(capsys, "other")[1][3].endswith("learning_rate=n/a")


def test_very_many_differing_settings_are_cut_short(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    names = [key for key in TRAIN_SETTINGS.names() if key not in ("out_dir", "dataset")]
    for n in (1, 2):
        fake_run(f"other/{n}", float(n), settings={name: n * 10**8 for name in names})
    _, lines, _ = listed(capsys, "other")
    assert len(lines) < 16
    assert sum("... (--json has all)" in line for line in lines) == 2


# -- order --------------------------------------------------------------------------------------


def order(capsys, *args: str) -> list[str]:
    return [Path(run["run"]).name for run in json_of(capsys, "other", *args)]


def test_the_lowest_validation_loss_is_first_and_runs_of_a_data_set_stay_together(capsys):
    for name, dataset, loss in (("a", "x", 3.0), ("b", "y", 1.0), ("c", "x", 2.0)):
        fake_run(f"other/{name}", loss, settings={"dataset": dataset})
    fake_run("other/d", None, settings={"dataset": "x"})
    assert order(capsys) == ["c", "a", "d", "b"]
    assert order(capsys, "--sort=bits_per_byte") == ["b", "c", "a", "d"]
    assert order(capsys, "--sort=run") == ["a", "b", "c", "d"]


def test_the_newest_run_is_first_by_date_and_an_unknown_date_last(capsys):
    for name, time in (("a", 1.6e9), ("b", None), ("c", 1.8e9), ("d", 1e300)):
        fake_run(f"other/{name}", start={"time": time})
    assert order(capsys, "--sort=started") == ["c", "a", "b", "d"]


@pytest.mark.parametrize("key", ["dataset", "parameters", "iterations", "state"])
def test_any_column_can_be_sorted_by(key, capsys):
    fake_run("other/a", settings={"dataset": "y"}, start={"model": {"parameters": 7}})
    fake_run("other/b", settings={"dataset": None}, start={"model": None})
    fake_run("other/c", settings={"dataset": "x"}, start={"model": {"parameters": 6}})
    found = [run[key] for run in json_of(capsys, "other", f"--sort={key}")]
    assert found == sorted(found, key=lambda value: (value is None, value or 0))


# -- states and progress ------------------------------------------------------------------------


def test_a_run_going_on_is_told_from_one_that_was_killed(capsys):
    held = open_run(Path("work/first"))
    _, lines, _ = listed(capsys, "work")
    assert " running" in lines[1]
    assert re.fullmatch(r"work/first: running \(process \d+ on .+\)", lines[2])
    held.close()
    log = Path("work/first/run.jsonl")
    log.write_bytes(log.read_bytes().rsplit(b"\n", 2)[0] + b"\n")  # no `end`
    [run] = json_of(capsys, "work")
    assert (run["state"], run["iterations"], run["planned_iterations"]) == ("killed", 6, 6)


@pytest.mark.parametrize(
    ("reason", "shown"),
    [("finished", "finished"), ("signal", "stopped"), ("failed", "failed"), ("oom", "memory"),
     ("error", "error"), ("target", "target"), ("of a later version", "unknown")],
)  # fmt: skip
def test_how_a_run_ended_is_shown(reason, shown, capsys):
    end = {"kind": "end", "reason": reason, "iter": 5}
    fake_run("other/a", records=[{"kind": "start"}, {"kind": "iter", "iter": 4}, end])
    assert shown in listed(capsys, "other")[1][1]


def test_a_resumed_run_that_went_back_has_the_iterations_of_its_last_process(capsys):
    before = [{"kind": "start"}, {"kind": "iter", "iter": 400}, {"kind": "end", "iter": 401}]
    resumed = [{"kind": "start"}, {"kind": "event", "name": "resume", "iter": 300}]
    fake_run("other/a", records=before + resumed)
    [run] = json_of(capsys, "other")
    assert (run["state"], run["iterations"]) == ("killed", 300)


# -- checkpoints --------------------------------------------------------------------------------


def test_damage_is_found_by_size_at_once_and_by_hash_with_verify(capsys):
    newest, older = checkpoints.committed(Path("work/first"))
    data = bytearray((newest / "model.safetensors").read_bytes())
    data[-1] ^= 1
    (newest / "model.safetensors").write_bytes(data)
    assert listed(capsys, "work")[0] == 0
    code, lines, error = listed(capsys, "work", "--verify")
    assert code == 2
    assert lines[2] == "work/first:"
    assert "damaged" in lines[3]
    assert re.fullmatch(r"  step-00000003-000001 +[\d.]+ kB  verified", lines[4])
    assert error == (
        "error: 1 of 2 checkpoints in work are damaged; a run that is resumed passes over them\n"
    )
    (older / "state.json").write_bytes(b"")
    code, lines, _ = listed(capsys, "work")
    assert code == 2
    assert "expected" in lines[2]


def test_verify_lists_the_checkpoints_of_every_run(capsys):
    _, lines, _ = listed(capsys, "work", "--verify")
    assert re.fullmatch(r"  step-00000006-000002 +[\d.]+ kB  newest, best, verified", lines[3])
    assert re.fullmatch(r"  step-00000003-000001 +[\d.]+ kB  verified", lines[4])


def test_json_has_the_keys_that_its_page_documents(capsys):
    text = PAGE.read_text()
    documented = re.findall(r"^\| `(\w+)` \|", text.split("## JSON")[1].split("\n## ")[0], re.M)
    [run] = json_of(capsys, "work")
    assert [*run, *run["checkpoints"][0]] == documented
    checked = [[c["name"][-6:], c["is_newest"], c["is_best"]] for c in run["checkpoints"]]
    assert checked == [["000002", True, True], ["000001", False, False]]


def test_json_is_whole_although_a_checkpoint_is_damaged(capsys):
    newest, _ = checkpoints.committed(Path("work/first"))
    (newest / "state.json").write_bytes(b"")
    capsys.readouterr()
    assert main(["runs", "work", "--json"]) == 2
    captured = capsys.readouterr()
    [run] = json.loads(captured.out)
    assert "expected" in run["checkpoints"][0]["problem"]
    assert captured.err.count("\n") == 1


# -- reading beside a trainer -------------------------------------------------------------------


def test_looking_does_not_keep_a_run_from_beginning():
    """A reader holds the lock for a moment; a trainer that met it was refused."""
    done = threading.Event()

    def look_all_the_time():
        while not done.is_set():
            lock.owner_of(Path("work/first"))

    readers = [threading.Thread(target=look_all_the_time) for _ in range(2)]
    for reader in readers:
        reader.start()
    try:
        for _ in range(100):
            open_run(Path("work/first")).close()
    finally:
        done.set()
        for reader in readers:
            reader.join()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["nowhere"], "error: nowhere: expected a folder, found nothing\n"),
        (["data"], "error: data: no runs here; train one with `stepglass train`\n"),
        (["a", "b"], "error: expected one folder, found ['a', 'b']\n"),
        (["--verfy"], "error: unknown setting --verfy; did you mean verify?\n"),
        (["--yes"], "error: --yes: only `stepglass runs prune` deletes; leave it out\n"),
        (["prune", "--json"], "error: --json: prune has only yes; leave it out\n"),
    ],
)
def test_what_cannot_be_listed_is_one_line(args, message, capsys):
    code, lines, error = listed(capsys, *args)
    assert (code, lines, error) == (2, [], message)


def test_a_hostile_run_directory_is_listed_without_harm(capsys):
    bad = Path("work/\x1b[31mred")
    bad.mkdir()
    (bad / "run.jsonl").write_bytes(b'\xff\xfe{"kind":3}\n[[[[' + b"[" * 100_000 + b"\nnull\n{}")
    (bad / "best.json").write_text('{"val_loss": "x", "dir": "../.."}')
    (bad / "config.json").write_text("[1]")
    code, lines, _ = listed(capsys, "work")
    assert code == 0
    assert "work/?[31mred: its log cannot be read, or has no records" in lines
    assert "work/?[31mred: best.json is damaged" in lines


HUGE = 10**400
HOSTILE_RECORDS = [
    {"kind": "start", "time": HUGE, "model": [1], "data": 3, "config": "x"},
    {
        "kind": "start",
        "time": "x",
        "model": {"parameters": HUGE},
        "data": {"val_bytes_per_token": 0},
    },
    {"kind": "start", "time": -1e18, "model": {"parameters": -3}, "config": {"dataset": [1]}},
    {"kind": "end", "reason": ["finished"], "iter": HUGE},
    {"kind": "end", "reason": None, "iter": True},
]


@pytest.mark.parametrize("number", range(len(HOSTILE_RECORDS)))
def test_what_makes_no_sense_in_a_log_is_unknown(number, capsys):
    record = HOSTILE_RECORDS[number]
    fake_run("other/a", 1.0, records=[record], settings={"max_iters": "x", "seed": {"a": []}})
    fake_run(
        "other/b", 1.0, records=[record], settings={"max_iters": -1, "dataset": "\x1b[2J" * 99}
    )
    for flags in ([], ["--json"], ["--sort=started"], ["--verify"]):
        code, lines, error = listed(capsys, "other", *flags)
        assert (code, error) == (0, "")
        assert "\x1b" not in "".join(lines)
    found = json_of(capsys, "other")
    for key in ("parameters", "started", "iterations", "planned_iterations", "bits_per_byte"):
        assert [run[key] for run in found] == [None, None], key


def test_a_huge_settings_file_is_not_read(capsys):
    run = fake_run("other/a", 1.0)
    with open(run / "config.json", "wb") as file:
        file.truncate(1 << 40)
    assert json_of(capsys, "other")[0]["dataset"] is None


def test_a_log_of_one_endless_line_is_read_in_part(capsys):
    run = fake_run("other/a", 1.0)
    with open(run / "run.jsonl", "wb") as file:
        file.truncate(1 << 40)
    assert json_of(capsys, "other")[0]["state"] == "unknown"
