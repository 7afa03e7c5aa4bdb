"""The run log: written behind the trainer's back, read while it grows."""

import json
import math
from pathlib import Path

from stepglass.files import Folder
from stepglass.measure import run_log
from stepglass.measure.records import IterRecord
from stepglass.measure.run_log import RunLogWriter


def test_records_come_back_in_order():
    log = RunLogWriter(Folder.open(Path()))
    for number in range(100):
        log.write(IterRecord.from_dict({"iter": number}))
    log.close()
    assert [r["iter"] for r in run_log.read_records(Path("run.jsonl"))] == list(range(100))


def test_numbers_that_are_not_json_become_null():
    line = run_log.encode(
        {"kind": "iter", "loss": math.nan, "phases": {"data": math.inf}, "ok": 1.5}
    )
    assert json.loads(line) == {"kind": "iter", "loss": None, "phases": {"data": None}, "ok": 1.5}


def test_half_a_line_is_passed_over_and_the_next_record_starts_on_its_own():
    path = Path("run.jsonl")
    path.write_text('{"kind":"iter","iter":1}\n{"kind":"it')
    log = RunLogWriter(Folder.open(Path()))
    log.write(IterRecord.from_dict({"iter": 2}))
    log.close()
    assert [r["iter"] for r in run_log.read_records(path)] == [1, 2]


def test_foreign_lines_are_passed_over():
    Path("run.jsonl").write_bytes(b'\xff\xfe\n[1]\n{"no":"kind"}\n{"kind":"end"}\n')
    assert list(run_log.read_records(Path("run.jsonl"))) == [{"kind": "end"}]


def test_a_flush_puts_everything_on_disk_at_once():
    log = RunLogWriter(Folder.open(Path()))
    log.write(IterRecord.from_dict({"iter": 1}))
    log.flush()
    assert [r["iter"] for r in run_log.read_records(Path("run.jsonl"))] == [1]
    log.close()


def test_a_disk_that_fails_is_remembered_and_does_not_raise():
    Path("run.jsonl").mkdir()
    log = RunLogWriter.__new__(RunLogWriter)
    log._heal_torn_line = lambda: None  # type: ignore[method-assign]
    log.__init__(Folder.open(Path()))  # type: ignore[misc]
    log.write(IterRecord.from_dict({}))
    log.close()
    assert log.failure == "run.jsonl: is a directory"


def test_history_replaces_what_a_resumed_run_did_again():
    path = Path("run.jsonl")
    records = [
        {"kind": "iter", "iter": 3},
        {"kind": "eval", "iter": 4},
        {"kind": "checkpoint", "iter": 4},
        {"kind": "iter", "iter": 4, "try": 1},
        {"kind": "eval", "iter": 5},
        {"kind": "event", "name": "resume", "iter": 4},
        {"kind": "iter", "iter": 4, "try": 2},
    ]
    path.write_bytes(b"".join(map(run_log.encode, records)))
    story = run_log.history(path)
    assert [(r["kind"], r["iter"], r.get("try")) for r in story] == [
        ("iter", 3, None),
        ("eval", 4, None),
        ("checkpoint", 4, None),
        ("event", 4, None),
        ("iter", 4, 2),
    ]
