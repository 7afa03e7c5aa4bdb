"""What the page is given: every row, in little space, the same from a file and from a server."""

import base64
import json
import os
import re
import zlib
from bisect import bisect_right
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nanogpt_run import Run
from stepglass.cli import main
from stepglass.explain.render.words import LANGUAGES
from stepglass.explain.study import study
from stepglass.logs import detect
from stepglass.logs.bulk import run_log_lines
from stepglass.measure import run_log
from stepglass.report import pack, page, story, stream
from stepglass.report.live import LiveRun
from stepglass.report.rows import AllRows, LiveRows
from stepglass.report.stream import Place


def iteration(number: int, **changes) -> dict:
    phases = {"data": 1.0, "forward_backward": 20.0, "optimizer": 4.0}
    figures = {"loss": 3.0 - number / 1000, "lr": 1e-3, "grad_norm": 1.0, "tokens": 32}
    return {"kind": "iter", "iter": number, "wall_ms": 25.0, "phases": phases, "mfu": 0.5,
            **figures, **changes}  # fmt: skip


def encoded(records: list[dict]) -> bytes:
    return b"".join(map(run_log.encode, records))


def read(data: bytes) -> "detect.Log":
    Path("run.jsonl").write_bytes(data)
    with open("run.jsonl", "rb") as file:
        return detect.read(file, "run.jsonl", AllRows)


def page_numbers(packed: dict[str, str], count: int) -> list[float]:
    """What the page makes of a column, one that is a rule among them."""
    if "from" in packed:
        return [float(packed["from"]) + n * float(packed["step"]) for n in range(count)]
    return plain_numbers(packed).tolist()


def plain_numbers(packed: dict[str, str]) -> np.ndarray:
    """What the page makes of a column."""
    if "from" in packed:
        raise AssertionError("a row count is needed")
    kind, text = next(iter(packed.items()))
    data = base64.b64decode(text)
    size = int(kind[1:]) // 8
    if kind[0] == "z":
        by_weight = np.frombuffer(zlib.decompress(data), np.uint8).reshape(size, -1)
        data = by_weight.T.tobytes()
    return np.frombuffer(data, f"<f{size}")


# -- reading ------------------------------------------------------------------------------------


def line_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_log_lines, "WORTH_IT", 10**9)


ODD = [
    {"loss": None},
    {"loss": float("nan")},
    {"loss": 1e300},
    {"mfu": None},
    {"grad_norm": None},
    {"wall_ms": -1.0},
    {"phases": {}},
    {"phases": {"eval": 500.0, "data": 1.0}},
    {"phases": {"data": -1.0}},
    {"phases": {"data": "x"}},
    {"phases": None},
    {"phases": {"new": 3.0}},
    {"iter": 5},
    {"iter": "7"},
    {"iter": True},
    {"extra": 1},
    {"memory_bytes": 1e9},
    {"memory_bytes": None},
    {"device_phases": {"forward_backward": 7.0}},
    {"lr": True},
]


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: json.dumps(odd))
def test_a_stretch_of_iterations_reads_as_its_lines_do(odd, monkeypatch):
    records = [iteration(n) for n in range(60)]
    records[30] |= odd
    start = {"kind": "start", "schema": 1, "config": {"max_iters": 60}}
    data = "".join(json.dumps(r, separators=(",", ":")) + "\n" for r in [start, *records]).encode()
    quick = read(data)
    line_by_line(monkeypatch)
    slow = read(data)
    assert described(quick) == described(slow)


def described(log: "detect.Log") -> str:
    """Everything that was understood, as text: NaN is equal to itself there."""
    parts = [log.format, log.num_lines, log.num_understood]
    for segment in log.segments:
        columns = segment.table.slice(0, segment.table.num_rows())
        rows = {k: np.round(v.astype(float), 6).tolist() for k, v in columns.items()}
        thin = {k: segment.table.column(k).tolist() for k in ("n", "line", "iter", "loss", "mfu")}
        known = {name: column for name, column in rows.items() if np.isfinite(column).any()}
        phases = {name: round(ms, 6) for name, ms in segment.phases.items()}
        parts += [sorted(known.items()), thin, sorted(phases.items()), segment.num_nan,
                  segment.first_iter, segment.last_iter, segment.last_line,
                  segment.last_finite, segment.is_measured]  # fmt: skip
    return repr(parts)


def test_stretches_are_really_read_at_once():
    lines = encoded([iteration(n) for n in range(40)]).splitlines()
    assert [(a, b, len(found)) for a, b, found in run_log_lines.split(lines)] == [(0, 40, 40)]


def test_every_row_of_a_long_log_is_kept_and_its_spikes_with_it():
    text = "".join(
        f"iter {n}: loss {2 + (n == 70_001):.4f}, time 30.00ms, mfu 10.00%\n"
        for n in range(100_000)
    )
    log = read(text.encode())
    rows = log.segments[0].table.slice(0, 100_000)
    assert rows["iter"].tolist() == list(range(100_000))
    assert rows["loss"][70_001] == 3
    assert len(log.segments[0].table.column("iter")) < 100_000  # what `explain` looks at


def test_a_log_with_evaluations_alone_has_a_page():
    Path("x.log").write_text("".join(f"step {n}: train loss 2.0, val loss 2.1\n" for n in range(9)))
    assert main(["report", "x.log"]) == 0


@pytest.mark.parametrize("first", [0, 1, 10])
def test_a_run_that_begins_anew_in_the_same_log_does_not_go_on_with_the_one_before(first):
    def lines(start: int, loss: float) -> str:
        return "".join(f"iter {n}: loss {loss}, time 30.00ms\n" for n in range(start, start + 60))

    anew = read((lines(first, 2.0) + lines(first, 2.5)).encode())
    assert [stream.is_resumed(anew, number) for number in range(2)] == [False, False]
    assert stream.is_resumed(read((lines(first, 2.0) + lines(first + 30, 2.5)).encode()), 1)


def test_a_log_that_names_many_phases_does_not_fill_the_memory():
    records = [iteration(n, phases={f"phase {n}": 1.0}) for n in range(1000)]
    segment = read(encoded(records)).segments[0]
    assert len(segment.table.slice(0, 1000)) < 60
    assert len(segment.phases) < 100


# -- packing ------------------------------------------------------------------------------------


@given(st.lists(st.floats(width=32, allow_nan=True, allow_infinity=True), min_size=1, max_size=50))
@settings(max_examples=200)
def test_packed_numbers_are_those_given_to_five_digits(values):
    column = np.array(values, np.float32)
    known = plain_numbers(pack.small(column))
    with np.errstate(over="ignore", invalid="ignore"):
        near = np.isclose(known, column, rtol=2e-5, atol=1e-38, equal_nan=True)
        is_beyond = np.isinf(known) & (np.abs(column) > 3e38)
    assert (near | is_beyond).all()
    assert np.array_equal(plain_numbers(pack.plain(column)), column, equal_nan=True)


def test_iteration_numbers_are_exact_or_a_rule():
    assert pack.small(np.arange(0.0, 1e6, 10)) == {"from": "0.0", "step": "10.0"}
    odd = np.array([0.0, 1.0, 2.0**40 + 1])
    assert plain_numbers(pack.small(odd)).tolist() == odd.tolist()


# -- the story ----------------------------------------------------------------------------------


OUT_OF_MEMORY = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"


def told(log: "detect.Log", run_dir: Path | None = None) -> dict:
    return story.tell(study(log), "x", run_dir, story.all_words())


def test_the_phases_of_a_nanogpt_log_add_up_to_its_times():
    run = Run(num_iters=120, eval_interval=25, stalls={40: 300.0}, noise=0.05)
    log = read(run.text.encode())
    parts = study(log).parts
    [message] = stream.messages(log, Place(), stream.place_of(log), pack.plain, parts)
    columns = {name: plain_numbers(packed) for name, packed in message["columns"].items()}
    phases = [column for name, column in columns.items() if name.startswith("phase:")]
    assert np.allclose(np.sum(phases, axis=0), columns["time_ms"], rtol=1e-5)
    assert columns["phase:stall"].nonzero()[0].tolist() == [40]
    assert columns["phase:eval+checkpoint"].nonzero()[0].tolist() == [25, 50, 75, 100]


@pytest.mark.parametrize(
    ("lines", "level", "text"),
    [
        ("", "good", "No rule found anything"),
        (OUT_OF_MEMORY, "problem", "out of memory"),
    ],
)  # fmt: skip
def test_health_is_one_line_with_its_reason(lines, level, text):
    run = Run(num_iters=2000, eval_interval=1000, eval_ms=100.0, save_ms=10.0, warmup_ms=10.0)
    health = told(read((run.text + lines).encode()))["health"]
    assert health["level"] == level
    assert text in health["text"]["en"]
    assert set(health["text"]) == set(LANGUAGES)
    assert len(set(health["text"].values())) == 4


def test_health_is_amber_where_something_can_be_gained():
    health = told(read(Run(num_iters=200).text.encode()))["health"]
    assert health["level"] == "advice"
    assert "%" in health["text"]["de"]


def test_a_killed_run_is_told_from_one_that_goes_on_and_one_that_ended(tmp_path):
    start = {"kind": "start", "schema": 1, "config": {"max_iters": 60}}
    records = [start, *(iteration(n) for n in range(40))]
    assert told(read(encoded(records)), tmp_path)["state"]["name"] == "killed"
    end = {"kind": "end", "reason": "signal", "iter": 40, "ledger": {}}
    assert told(read(encoded([*records, end])), tmp_path)["state"]["name"] == "signal"


# -- live ---------------------------------------------------------------------------------------


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
    monkeypatch.setattr(LiveRows, "most_rows", 2000)
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


# -- the command ----------------------------------------------------------------------------------


def test_a_report_is_one_file_that_asks_for_nothing():
    Path("train.log").write_text(Run().text)
    assert main(["report", "train.log"]) == 0
    text = Path("train.log.html").read_text()
    assert "default-src 'none'" in text
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", text)


def test_a_run_gets_its_report_beside_it_and_a_report_is_replaced():
    Path("out").mkdir()
    Path("out/run.jsonl").write_bytes(encoded([iteration(n) for n in range(30)]))
    assert main(["report", "out"]) == 0
    first = Path("out/report.html").read_text()
    assert main(["report", "out/run.jsonl"]) == 0
    assert Path("out/report.html").read_text() == first


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], "expected a run directory or a log file"),
        (["nothing.log"], "nothing.log: no such file or directory"),
        (["empty.log"], "the file is empty"),
        (["x.log", "-o", "no/folder/x.html"], "--out=no/folder/x.html: cannot be written"),
        (["x.log", "-o", "."], "--out=.: expected the name of a file"),
        (["x.log", "--device=abacus"], "'abacus' is not in the table"),
        (["x.log", "--lang=xx"], "lang expects auto or en or de or es or fr"),
        (["x.log"] * 9, "at most 8 runs"),
        (["--to=tensorboard", "x.log"], "x.log: expected a run log"),
        (["--to=tensorboard", "a", "b"], "expects one run, found 2"),
        (["x.log", "-o"], "--out expects text, found nothing"),
        (["x.log", "-o", "./x.log"], "is the log itself"),
        (["x.log", "-o", "/dev/null"], "found a device or a pipe"),
    ],
)  # fmt: skip
def test_what_cannot_be_reported_is_refused_in_one_line(words, expected, capsys):
    Path("x.log").write_text(Run().text)
    Path("empty.log").write_text("")
    before = sorted(Path().iterdir())
    assert main(["report", *words]) == 2
    error = capsys.readouterr().err
    assert expected in error
    assert error.count("\n") == 1
    assert sorted(Path().iterdir()) == before


def test_every_word_the_script_asks_for_is_in_the_catalogue():
    script = "\n".join(page.read(name) for name in page.SCRIPTS)
    asked = set(re.findall(r"""say\("([a-z][\w-]*)\"""", script))
    asked |= set(re.findall(r'"(page-[a-z-]+)"', script))
    known = page.spoken("en")
    assert {key for key in asked if not key.endswith("-")} - set(known) == set()
    for prefix in ("page-chart-", "page-level-", "page-state-"):
        assert any(key.startswith(prefix) for key in known)


def test_no_sentence_of_the_page_is_left_unsaid():
    script = "\n".join(page.read(name) for name in page.SCRIPTS)
    built = ("page-chart-", "page-level-", "page-state-", "page-outcome-", "page-peak-")
    for key in page.spoken("en"):
        if key.startswith("page-") and not key.startswith(built):
            assert f'"{key}"' in script, key
