"""What a live page is sent: every row once, in little space, whatever happens to the file."""

import json
import os
from bisect import bisect_right
from pathlib import Path

import pytest

from page_data import encoded, iteration, page_numbers
from stepglass.cli import main
from stepglass.report.chart_table import LiveChartTable
from stepglass.report.live import LiveRun


class Reader:
    """A page that follows a run: what it has received, put together as the script does."""

    def __init__(self) -> None:
        self.id: str | None = None
        self.segments: list[list[float]] = []
        self.lines: list[list[float]] = []
        self.evals: list[list] = []
        self.story: dict = {}
        self.num_rows_sent = 0

    def receive(self, run: LiveRun) -> None:
        while run.advance():
            pass
        while events := run.events(self.id):
            for event in events:
                self.take(event.name, json.loads(event.data))
                self.id = event.id

    def take(self, name: str, data: dict) -> None:
        if name == "reset":
            self.segments, self.lines, self.evals = [], [], []
        elif name == "story":
            self.story = data
        else:
            self.num_rows_sent += data["count"]
            del self.segments[data["segment"] + 1 :]
            while len(self.segments) <= data["segment"]:
                self.segments.append([])
                self.lines.append([])
                self.evals.append([])
            number, after, count = data["segment"], data["after"], data["count"]
            rows = bisect_right(self.lines[number], after)
            for name, known in (("iter", self.segments[number]), ("line", self.lines[number])):
                known[rows:] = page_numbers(data["columns"][name], count) if count else []
            kept = [done for done in self.evals[number] if done[5] <= after]
            self.evals[number] = kept + data["evals"]


@pytest.fixture
def run_dir() -> Path:
    folder = Path("out")
    folder.mkdir()
    return folder


def append(run_dir: Path, data: bytes) -> None:
    with open(run_dir / "run.jsonl", "ab") as file:
        file.write(data)


def test_rows_come_as_the_file_grows_and_none_twice(run_dir):
    run, reader = LiveRun(run_dir), Reader()
    reader.receive(run)
    assert reader.story["state"]["name"] == "waiting"
    for first in range(0, 300, 100):
        append(run_dir, encoded([iteration(n) for n in range(first, first + 100)]))
        reader.receive(run)
        assert reader.segments == [list(range(first + 100))]
    assert reader.num_rows_sent == 300


def test_a_glance_tells_whether_there_is_something_to_read(run_dir):
    run, reader = LiveRun(run_dir), Reader()
    assert run.has_news(reader.id)  # nothing has been told yet
    reader.receive(run)
    assert not run.has_news(reader.id)
    append(run_dir, encoded([iteration(0)]))
    assert run.has_news(reader.id)
    reader.receive(run)
    assert not run.has_news(reader.id)
    (run_dir / "run.jsonl").unlink()
    assert run.has_news(reader.id)


def test_half_a_line_waits_for_its_other_half(run_dir):
    run, reader = LiveRun(run_dir), Reader()
    line = encoded([iteration(0)])
    append(run_dir, line[:20])
    reader.receive(run)
    assert reader.segments in ([], [[]])
    append(run_dir, line[20:])
    reader.receive(run)
    assert reader.segments == [[0]]


def test_a_new_server_goes_on_where_the_page_was(run_dir):
    reader = Reader()
    append(run_dir, encoded([iteration(n) for n in range(50)]))
    run = LiveRun(run_dir)
    reader.receive(run)
    append(run_dir, encoded([iteration(n) for n in range(50, 80)]))
    reader.receive(LiveRun(run_dir))
    assert reader.segments == [list(range(80))]


def test_an_evaluation_a_resume_and_a_restart_reach_the_page_in_order(run_dir):
    run, reader = LiveRun(run_dir), Reader()
    start = {"kind": "start", "schema": 1, "config": {"max_iters": 60, "init_from": "scratch"}}
    evaluation = {"kind": "eval", "iter": 0, "wall_ms": 9.0, "val_loss": 3.0, "train_loss": 2.9,
                  "val_se": 0.1, "windows": 4}  # fmt: skip
    append(run_dir, encoded([start, evaluation, *(iteration(n) for n in range(40))]))
    reader.receive(run)
    again = {**start, "config": {"max_iters": 60, "init_from": "resume"}}
    append(run_dir, encoded([again, *(iteration(n) for n in range(30, 60))]))
    reader.receive(run)
    assert reader.segments == [list(range(40)), list(range(30, 60))]
    assert reader.evals[0] == [[0, 3.0, 0.1, 2.9, 9.0, 2]]
    fresh = Reader()
    fresh.receive(run)
    assert fresh.segments == reader.segments


def test_a_second_page_is_told_what_the_first_had_read(run_dir):
    run, one, other = LiveRun(run_dir), Reader(), Reader()
    one.receive(run)
    other.receive(run)
    append(run_dir, encoded([iteration(0)]))
    one.receive(run)
    assert run.has_news(other.id)
    assert not run.has_news(one.id)


def test_a_new_run_in_the_place_of_an_old_one_is_not_its_continuation(run_dir):
    run, reader = LiveRun(run_dir), Reader()
    append(run_dir, encoded([iteration(n) for n in range(10)]))
    reader.receive(run)
    with open(run_dir / "run.jsonl", "rb+") as file:  # the same number, other content, and longer
        file.write(encoded([iteration(n, loss=9.0) for n in range(20)]))
    reader.receive(run)
    assert reader.segments == [list(range(20))]


def test_a_sample_with_an_impossible_place_is_still_a_sample(run_dir):
    event = {"kind": "event", "name": "sample", "detail": {"text": "x"}}
    line = json.dumps(event)[:-1] + ', "iter": 1e999}\n'
    append(run_dir, encoded([iteration(0)]) + line.encode() + encoded([iteration(1)]))
    reader = Reader()
    reader.receive(LiveRun(run_dir))
    assert reader.segments == [[0, 1]]
    assert main(["report", "out"]) == 0


@pytest.mark.parametrize("how", ["truncated", "replaced", "removed"])
def test_a_file_that_is_another_one_now_is_shown_from_its_beginning(run_dir, how):
    run, reader = LiveRun(run_dir), Reader()
    append(run_dir, encoded([iteration(n) for n in range(50)]))
    reader.receive(run)
    path = run_dir / "run.jsonl"
    if how == "truncated":
        path.write_bytes(encoded([iteration(n) for n in range(10)]))
    else:
        path.unlink()
        if how == "removed":
            reader.receive(run)
        Path("new").write_bytes(encoded([iteration(n) for n in range(10)]))
        Path("new").rename(path)
    reader.receive(run)
    assert reader.segments == [list(range(10))]


@pytest.mark.parametrize(
    "id_", ["", "x", "1-2", "-1--2-3", "9-9-9-9", "1-99999999999-2", "\u0661-1-1"]
)
def test_whatever_a_page_says_it_has_seen_it_gets_the_run(run_dir, id_):
    append(run_dir, encoded([iteration(n) for n in range(20)]))
    reader = Reader()
    reader.id = id_
    reader.receive(LiveRun(run_dir))
    assert reader.segments == [list(range(20))]


def test_junk_in_the_file_is_passed_over(run_dir):
    append(
        run_dir, b"\0\xff\xfe junk\n{\n[]\n" + encoded([iteration(0)]) + b'{"kind":"iter"}\nNaN\n'
    )
    append(run_dir, encoded([iteration(1)]) + b"x" * (3 << 20) + b"\n" + encoded([iteration(2)]))
    reader = Reader()
    reader.receive(LiveRun(run_dir))
    assert reader.segments == [[0, 1, 2]]


def test_half_a_character_and_a_pipe_in_the_place_of_the_log_do_no_harm(run_dir):
    start = {"kind": "start", "schema": 1, "config": {"dataset": "\ud800"}}
    data = encoded([start, *(iteration(n) for n in range(3))])
    append(run_dir, data)
    run, reader = LiveRun(run_dir), Reader()
    reader.receive(run)
    assert reader.story["config"]["dataset"] == "?"
    assert main(["report", "out"]) == 0
    (run_dir / "run.jsonl").unlink()
    os.mkfifo(run_dir / "run.jsonl")
    assert run.advance() is False


def test_the_rules_look_again_only_after_a_pause_but_the_last_word_is_told_at_once(run_dir):
    now = [0.0]
    run, reader = LiveRun(run_dir, now=lambda: now[0], worked=lambda: 0.0), Reader()
    append(run_dir, encoded([iteration(0)]))
    reader.receive(run)
    assert reader.story["state"]["step"] == 1
    append(run_dir, encoded([iteration(1)]))
    reader.receive(run)
    assert reader.story["state"]["step"] == 1
    now[0] = 100.0
    reader.receive(run)
    assert reader.story["state"]["step"] == 2
    append(run_dir, encoded([{"kind": "end", "reason": "finished", "iter": 2, "ledger": {}}]))
    reader.receive(run)
    assert reader.story["state"]["name"] == "finished"


def test_a_long_log_is_sent_in_pieces_of_bounded_size(run_dir, monkeypatch):
    monkeypatch.setattr("stepglass.report.live.PIECE", 1 << 16)
    append(run_dir, encoded([iteration(n) for n in range(20_000)]))
    run = LiveRun(run_dir)
    while run.advance():
        pass
    first = run.events(None)
    assert 1 << 19 < sum(len(event.data) for event in first) < 4 << 20
    reader = Reader()
    reader.receive(run)
    assert reader.segments == [list(range(20_000))]


LONG = 12_000  # rows, where the bounds are lowered to this
SPIKE = 7777


@pytest.fixture
def long_run(run_dir, monkeypatch) -> Path:
    """A run that is longer than what is sent, and than what is kept."""
    for name, value in (("OVERVIEW_ROWS", 800), ("NEW_ROWS", 50), ("DETAIL_ROWS", 400)):
        monkeypatch.setattr(f"stepglass.report.live.{name}", value)
    monkeypatch.setattr("stepglass.report.live.PIECE", 1 << 16)
    monkeypatch.setattr("stepglass.report.live.MARK_BYTES", 1 << 12)
    monkeypatch.setattr(LiveChartTable, "most_rows", 2000)
    records = [iteration(n, loss=2 + n % 1000 / 1000) for n in range(LONG)]
    records[SPIKE] |= {"loss": 9.0, "wall_ms": 700.0}
    append(run_dir, encoded(records))
    return run_dir


def test_a_long_run_is_sent_as_an_overview_with_its_spikes(long_run):
    run, reader = LiveRun(long_run), Reader()
    while run.advance():
        pass
    reader.receive(run)
    assert reader.num_rows_sent <= 800
    assert SPIKE in reader.segments[0]
    assert [reader.segments[0][0], reader.segments[0][-1]] == [0, LONG - 1]
    append(long_run, encoded([iteration(n) for n in range(LONG, LONG + 30)]))
    reader.receive(run)
    assert reader.segments[0][-31:] == list(range(LONG - 1, LONG + 30))  # what is new is whole


def test_a_page_sees_a_long_run_while_it_is_being_read_and_gets_no_more_for_it(long_run):
    run, reader = LiveRun(long_run), Reader()
    counts = []
    while True:
        is_more = run.advance()
        for event in run.events(reader.id):
            reader.take(event.name, json.loads(event.data))
            reader.id = event.id
        counts.append(reader.num_rows_sent)
        if not is_more:
            break
    assert len(set(counts)) > 5
    assert counts[-1] < 2000
    assert SPIKE in reader.segments[0]
    assert reader.segments[0] == sorted(set(reader.segments[0]))


def test_a_new_server_goes_on_with_a_page_that_has_an_overview(long_run):
    run, reader = LiveRun(long_run), Reader()
    reader.receive(run)
    append(long_run, encoded([iteration(n) for n in range(LONG, LONG + 30)]))
    reader.receive(LiveRun(long_run))
    assert reader.segments[0] == sorted(set(reader.segments[0]))
    assert reader.segments[0][-1] == LONG + 29
    assert SPIKE in reader.segments[0]


def detail_of(run: LiveRun, after: int, until: int) -> dict:
    data = run.detail(0, after, until)
    assert data is not None
    message = json.loads(data)
    packed = message["columns"]
    return {name: page_numbers(column, message["count"]) for name, column in packed.items()}


def test_looking_closer_shows_every_iteration_with_its_own_figures(long_run):
    run = LiveRun(long_run)
    while run.advance():
        pass
    found = detail_of(run, 5000, 5300)  # lines: the iteration before has one less
    assert found["iter"] == list(range(5000, 5300))
    assert found["loss"] == pytest.approx([2 + n % 1000 / 1000 for n in range(5000, 5300)])
    assert found["line"] == list(range(5001, 5301))
    wide = detail_of(run, 5000, 9000)  # more than is sent at once: thinned, but finer than before
    assert 200 < len(wide["iter"]) <= 400
    assert SPIKE in wide["iter"]
    assert sum(wide["num"]) == 4000
    assert run.detail(1, 0, 10) is None
    assert run.detail(0, 10**9, 10**9 + 5) is None


def test_looking_closer_at_a_file_that_is_another_one_now_shows_what_was_kept(long_run):
    run = LiveRun(long_run)
    while run.advance():
        pass
    (long_run / "run.jsonl").write_bytes(encoded([iteration(5)]))
    assert len(detail_of(run, 5000, 5300)["iter"]) < 300


def test_what_is_known_of_a_file_that_grows_for_long_stays_small(run_dir, monkeypatch):
    monkeypatch.setattr("stepglass.report.live.MOST_MARKS", 40)
    run, reader = LiveRun(run_dir), Reader()
    for n in range(400):
        append(run_dir, encoded([iteration(n)]))
        run.advance()
    assert len(run._marks) <= 41
    assert len(run._lines) <= 41
    reader.receive(run)
    assert reader.segments == [list(range(400))]
