"""What a page is sent while a run goes on."""

import json
import socket
import time
from pathlib import Path

import pytest

from live_server import FakeRun, Live, Stream, assert_dressed, eventually, iteration, write_run
from stepglass.report.chart_table import LiveChartTable
from stepglass.report.live import LiveRun
from stepglass.watch import event_stream


def test_a_stream_begins_at_the_beginning_and_goes_on_as_the_run_does(live):
    with live.stream() as stream:
        assert stream.block() == ["retry: 1000"]
        assert stream.block() == ["id: 0", "event: row", 'data: {"n":0}']
        assert [event["id"] for event in stream.events(2)] == ["1", "2"]
        live.runs[Path("out")].lines.append(b'{"n":3}')
        assert stream.events(1) == [{"id": "3", "event": "row", "data": '{"n":3}'}]


def test_a_stream_goes_on_after_the_last_event_a_page_has_seen(live):
    with live.stream(Last_Event_ID="1") as stream:
        assert [event["id"] for event in stream.events(1)] == ["2"]
    with live.stream("/run/0/events?after=1") as stream:
        assert [event["id"] for event in stream.events(1)] == ["2"]
    with live.stream("/run/0/events?after=0", Last_Event_ID="1") as stream:  # the newer one
        assert [event["id"] for event in stream.events(1)] == ["2"]
    with live.stream(Last_Event_ID="x" * 500) as stream:  # none of ours
        assert [event["id"] for event in stream.events(1)] == ["0"]


def test_a_stream_without_news_shows_that_it_lives(live, monkeypatch):
    monkeypatch.setattr(event_stream, "HEARTBEAT_S", 0.0)
    with live.stream() as stream:
        blocks = [stream.block() for _ in range(8)]
    assert [":"] in blocks[4:]


def test_a_run_is_read_once_for_all_who_look_and_only_then(live):
    FakeRun.made = 0
    assert live.ask("/run/0").status == 200
    assert live.ask("/run/0/events", "HEAD").status == 200
    assert FakeRun.made == 0
    with live.stream() as one, live.stream() as other:
        assert one.events(3) == other.events(3)
    assert FakeRun.made == 1


def test_nothing_is_read_when_nobody_looks(live):
    with live.stream() as stream:
        stream.events(3)
        run = live.runs[Path("out")]
        before = run.num_glances
        eventually(lambda: run.num_glances > before + 5)

    def is_at_rest() -> bool:
        before = run.num_glances
        time.sleep(20 * event_stream.GLANCE_S)
        return run.num_glances == before

    eventually(is_at_rest)


def test_a_bug_in_reading_ends_the_stream_and_nothing_else(live, caplog):
    with live.stream() as stream:
        stream.events(3)
        live.runs[Path("out")].is_broken = True
        assert stream.events(1) == []
    eventually(lambda: "a bug of ours" in caplog.text)
    assert live.ask("/").status == 200


def test_a_server_that_is_told_to_stop_sends_what_is_left_and_ends():
    with Live() as live, live.stream() as stream:
        stream.events(3)
        live.runs[Path("out")].lines += [b'{"n":%d}' % n for n in range(3, 100)]
        live.stop.set()
        assert [event["id"] for event in stream.events(97)] == [str(n) for n in range(3, 100)]
        assert stream.block() is None
        live.thread.join()


def test_a_caller_that_does_not_read_cannot_keep_the_server_from_ending():
    with (
        Live() as live,
        socket.create_connection(("127.0.0.1", live.port), timeout=20) as sock,
    ):
        sock.sendall(b"GET /run/0/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        eventually(lambda: Path("out") in live.runs)
        live.runs[Path("out")].lines += [b'"' + b"x" * 10_000_000 + b'"'] * 3
        time.sleep(0.2)
        live.stop.set()
        live.thread.join()


def test_a_real_run_is_streamed_as_it_grows():
    folder = write_run("out", {"kind": "start", "schema": 1}, iteration(0))
    with Live() as live:
        live.make_run = LiveRun
        with live.stream() as stream:
            wait_for_rows(stream, 1)
            with open(folder / "run.jsonl", "a") as log:
                log.write(json.dumps(iteration(1)) + "\n")
            wait_for_rows(stream, 1)


def test_a_page_that_looks_closer_gets_the_rows_of_some_lines(live):
    address = "/run/0/rows?segment=0&after=5&until=90"
    assert live.ask(address).status == 404  # it has no stream: nobody looks
    with live.stream() as stream:
        stream.events(1)
        answer = live.ask(address)
        assert (answer.status, answer.body) == (200, b"[0,5,90]")
        assert answer.headers["content-type"] == "application/json"
        assert live.ask(address.replace("segment=0", "segment=7")).status == 404
        assert live.ask(address.replace("run/0", "run/9")).status == 404
        assert live.ask(address, Host="evil.example").status == 403
        assert live.ask(address, Sec_Fetch_Site="cross-site").status == 403
        assert live.ask(address, "POST").status == 405


@pytest.mark.parametrize(
    "query",
    [
        "",
        "segment=0&after=0",
        "segment=0&after=9&until=9",
        "segment=0&after=9&until=1",
        "segment=-1&after=0&until=9",
        "segment=0&after=0&until=1e9",
        "segment=0&after=0&until=" + "9" * 16,
        "segment=x&after=0&until=9",
        "segment=0&after=%D9%A1&until=9",
        "segment=0&after=0&until=9%0A",
    ],
)
def test_rows_are_asked_for_with_numbers_or_not_at_all(live, query):
    with live.stream() as stream:
        stream.events(1)
        answer = live.ask(f"/run/0/rows?{query}")
        assert answer.status == 400
        assert_dressed(answer)


def test_every_iteration_of_a_long_run_can_be_asked_for(monkeypatch):
    monkeypatch.setattr("stepglass.report.live.OVERVIEW_ROWS", 500)
    monkeypatch.setattr("stepglass.report.live.NEW_ROWS", 50)
    monkeypatch.setattr(LiveChartTable, "most_rows", 1000)
    write_run("out", *(iteration(n) for n in range(6000)))
    with Live() as live:
        live.make_run = LiveRun
        with live.stream() as stream:
            event = stream.events(2)[-1]
            assert json.loads(event["data"])["count"] < 600
            answer = live.ask("/run/0/rows?segment=0&after=3000&until=3100")
            found = json.loads(answer.body)
            assert (found["after"], found["until"], found["count"]) == (3000, 3100, 100)
            assert "num" not in found["columns"]  # each stands for itself alone


def wait_for_rows(stream: Stream, count: int) -> None:
    while True:
        (event,) = stream.events(1)
        if event["event"] == "rows" and json.loads(event["data"])["count"] == count:
            return
