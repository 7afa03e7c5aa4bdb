"""The schema of run.jsonl: what is written, what is read, and what the documentation says."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from helpers import prepare_tiny, records, train_tiny
from stepglass.logs.bulk import run_log_lines
from stepglass.logs.formats.run_log_reader import RunLogReader
from stepglass.measure import run_log
from stepglass.measure.event_details import EVENTS, MovedEvent, WarmUpEvent, event_record
from stepglass.measure.records import (
    BAD_ENDINGS,
    GOOD_ENDINGS,
    KINDS,
    Background,
    EndRecord,
    IterRecord,
    LedgerTotals,
    meanings,
    parse_line,
    record_from,
    required_keys,
)
from stepglass.run_dir import listing
from stepglass.run_dir.run_facts import run_facts

PAGE = Path(__file__).parents[2] / "docs" / "run-log.md"


def iteration(**more: Any) -> IterRecord:
    phases = {"data": 1.0, "forward_backward": 20.0}
    return IterRecord(
        iter=3, loss=2.5, lr=0.1, grad_norm=None, tokens=32, wall_ms=21.0, phases=phases, mfu=0.5,
        **more,
    )  # fmt: skip


# -- writing ------------------------------------------------------------------------------------


def test_a_record_has_its_kind_first_and_its_keys_in_the_order_of_the_file():
    assert run_log.encode(iteration().as_dict()) == (
        b'{"kind":"iter","iter":3,"loss":2.5,"lr":0.1,"grad_norm":null,"tokens":32,'
        b'"wall_ms":21.0,"phases":{"data":1.0,"forward_backward":20.0},"mfu":0.5}\n'
    )


def test_an_optional_key_is_there_when_it_has_a_value():
    written = iteration(device_phases={"optimizer": 1.0}, memory_bytes=0).as_dict()
    assert list(written)[-2:] == ["device_phases", "memory_bytes"]
    assert required_keys(IterRecord) == list(written)[:-2]


def test_a_dict_is_made_without_copying_what_it_holds():
    record = iteration()
    assert record.as_dict()["phases"] is record.phases


def test_an_event_has_its_name_and_the_keys_of_its_details():
    assert event_record(7, MovedEvent(from_="a", to="b")).as_dict() == {
        "kind": "event",
        "name": "moved",
        "iter": 7,
        "detail": {"from": "a", "to": "b"},
    }
    assert WarmUpEvent(startup_ms=1.0, compile_ms=None, first_batch_ms=2.0).as_dict() == {
        "startup_ms": 1.0,
        "compile_ms": None,
        "first_batch_ms": 2.0,
    }


def test_a_run_writes_the_keys_of_the_schema_in_their_order():
    prepare_tiny()
    assert train_tiny(sample_tokens=4) == 0
    for kind, cls in KINDS.items():
        for record in records(kind):
            assert list(record_from(record).as_dict().items()) == list(record.items()), kind
            assert set(required_keys(cls)) <= set(record)
    for record in records("event"):
        assert list(record["detail"]) == required_keys(EVENTS[record["name"]])
    [end] = records("end")
    assert list(end["ledger"]) == required_keys(LedgerTotals)
    assert list(end["background"]) == required_keys(Background)


# -- reading ------------------------------------------------------------------------------------


@pytest.mark.parametrize("line", [b'{"kind":"it', b"[1]", b'{"no":"kind"}', b'{"kind":3}', b"\xff"])
def test_a_line_that_is_no_record_is_none(line):
    assert parse_line(line) is None


def test_a_record_of_a_kind_that_is_not_known_is_none():
    assert record_from({"kind": "other", "iter": 1}) is None


def test_a_missing_key_is_none_and_an_unknown_one_is_dropped():
    record = record_from({"kind": "end", "reason": "signal", "later": 1})
    assert record == EndRecord(reason="signal", iter=None, ledger=None, background=None)


def with_extra_keys(path: Path) -> bytes:
    """The log with a key in every record that a later version might write. `global_iter` and
    `max_iters` mean something in other programs' logs."""
    extra = {"extra": 1.5, "global_iter": 10**6, "max_iters": 9, "more": {"a": [1]}}
    lines = [json.loads(line) | extra for line in path.read_bytes().splitlines()]
    return b"".join(map(run_log.encode, lines))


@pytest.mark.finished_run
def test_an_unknown_key_in_every_record_changes_nothing_that_is_read():
    path = Path("out/run.jsonl")
    plain, extended = path.read_bytes(), with_extra_keys(path)
    read = [[RunLogReader().read(line.decode()) for line in text.splitlines()]
            for text in (plain, extended)]  # fmt: skip
    assert read[0] == read[1]
    summary = run_facts(Path("out"))
    path.write_bytes(extended)
    assert run_facts(Path("out")) == summary


def test_an_unknown_key_does_not_keep_iterations_from_being_read_at_once():
    """They were read one by one, which took six times as long."""
    lines = [run_log.encode(iteration().as_dict() | {"iter": n, "extra": 1}) for n in range(40)]
    [(first, end, stretch)] = run_log_lines.split([line.rstrip() for line in lines])
    assert (first, end) == (0, 40)
    assert stretch is not None
    assert sorted(stretch.columns) == sorted(
        ["iter", "loss", "lr", "grad_norm", "time_ms", "mfu", "step_ms"]
    )


def test_every_ending_has_words():
    assert set(listing.ENDINGS) == {*GOOD_ENDINGS, *BAD_ENDINGS}


# -- docs/run-log.md ----------------------------------------------------------------------------


def rows(cls: type) -> str:
    """The table of a class as the page has it."""
    lines = [f"| `{key}` | {meaning} |" for key, meaning in meanings(cls).items()]
    return "\n".join(["| key | meaning |", "|---|---|", *lines])


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_has_the_keys_of_every_kind_of_record(kind):
    section = re.split(r"^### ", PAGE.read_text(), flags=re.MULTILINE)
    [text] = [part for part in section if part.startswith(f"`{kind}`")]
    assert rows(KINDS[kind]) in text, f"expected this table:\n{rows(KINDS[kind])}"


def event_rows() -> str:
    lines = [
        f"| `{name}` | {cls.__doc__} | "
        + "; ".join(f"`{key}`: {meaning}" for key, meaning in meanings(cls).items())
        + " |"
        for name, cls in EVENTS.items()
    ]
    return "\n".join(["| name | what happened | detail |", "|---|---|---|", *lines])


def test_the_page_has_the_details_of_every_event():
    assert event_rows() in PAGE.read_text(), f"expected this table:\n{event_rows()}"
