"""What the page of a report is given: every row, in little space."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nanogpt_run import Run
from page_data import encoded, iteration, plain_numbers, read_drawn
from stepglass.cli import main
from stepglass.explain.render.languages import LANGUAGES
from stepglass.explain.resumed import is_resumed
from stepglass.explain.study import study
from stepglass.logs import detect
from stepglass.logs.bulk import run_log_lines
from stepglass.report import pack, page, story, stream
from stepglass.report.stream import Place

# -- reading ---------------------------------------------------------------------------------------


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
    quick = read_drawn(data)
    line_by_line(monkeypatch)
    slow = read_drawn(data)
    assert described(quick) == described(slow)


def described(log: "detect.Log") -> str:
    """Everything that was understood, as text: NaN is equal to itself there."""
    parts = [log.format, log.num_lines, log.num_understood]
    for segment in log.segments:
        columns = segment.table.drawn.slice(0, len(segment.table.drawn))
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
    log = read_drawn(text.encode())
    rows = log.segments[0].table.drawn.slice(0, 100_000)
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

    anew = read_drawn((lines(first, 2.0) + lines(first, 2.5)).encode())
    assert [is_resumed(anew, number) for number in range(2)] == [False, False]
    assert is_resumed(read_drawn((lines(first, 2.0) + lines(first + 30, 2.5)).encode()), 1)


def test_a_log_that_names_many_phases_does_not_fill_the_memory():
    records = [iteration(n, phases={f"phase {n}": 1.0}) for n in range(1000)]
    segment = read_drawn(encoded(records)).segments[0]
    assert len(segment.table.drawn.slice(0, 1000)) < 60
    assert len(segment.phases) < 100


# -- packing ---------------------------------------------------------------------------------------


@given(st.lists(st.floats(width=32, allow_nan=True, allow_infinity=True), min_size=1, max_size=50))
@settings(max_examples=200)
def test_packed_numbers_are_those_given_to_five_digits(values):
    column = np.array(values, np.float32)
    known = plain_numbers(pack.small(column))
    with np.errstate(over="ignore", invalid="ignore"):
        near = np.isclose(known, column, rtol=2e-5, atol=1e-38, equal_nan=True)
        is_beyond = np.isinf(known) & (np.abs(column) > 3e38)
    assert (near | is_beyond).all()
    assert np.array_equal(plain_numbers(pack.as_is(column)), column, equal_nan=True)


def test_iteration_numbers_are_exact_or_a_rule():
    assert pack.small(np.arange(0.0, 1e6, 10)) == {"from": "0.0", "step": "10.0"}
    odd = np.array([0.0, 1.0, 2.0**40 + 1])
    assert plain_numbers(pack.small(odd)).tolist() == odd.tolist()


# -- the story -------------------------------------------------------------------------------------


OUT_OF_MEMORY = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"


def told(log: "detect.Log", run_dir: Path | None = None) -> dict:
    return story.story_of(study(log), "x", run_dir, story.all_words())


def test_the_phases_of_a_nanogpt_log_add_up_to_its_times():
    run = Run(num_iters=120, eval_interval=25, stalls={40: 300.0}, noise=0.05)
    log = read_drawn(run.text.encode())
    parts = study(log).parts
    [message] = stream.run_messages(log, Place(), stream.place_of(log), pack.as_is, parts)
    columns = {name: plain_numbers(packed) for name, packed in message["columns"].items()}
    phases = [column for name, column in columns.items() if name.startswith("phase:")]
    assert np.allclose(np.sum(phases, axis=0), columns["time_ms"], rtol=1e-5)
    assert columns["phase:stall"].nonzero()[0].tolist() == [40]
    assert columns["phase:eval+checkpoint"].nonzero()[0].tolist() == [25, 50, 75, 100]


@pytest.mark.parametrize(
    ("lines", "level", "text"),
    [
        ("", "good", "No problem found."),
        (OUT_OF_MEMORY, "problem", "out of memory"),
    ],
)  # fmt: skip
def test_health_is_one_line_with_its_reason(lines, level, text):
    run = Run(num_iters=2000, eval_interval=1000, eval_ms=100.0, save_ms=10.0, warmup_ms=10.0)
    health = told(read_drawn((run.text + lines).encode()))["health"]
    assert health["level"] == level
    assert text in health["text"]["en"]
    assert set(health["text"]) == set(LANGUAGES)
    assert len(set(health["text"].values())) == 4


def test_health_is_amber_where_something_can_be_gained():
    health = told(read_drawn(Run(num_iters=200).text.encode()))["health"]
    assert health["level"] == "advice"
    assert "%" in health["text"]["de"]


def test_a_killed_run_is_told_from_one_that_goes_on_and_one_that_ended(tmp_path):
    start = {"kind": "start", "schema": 1, "config": {"max_iters": 60}}
    records = [start, *(iteration(n) for n in range(40))]
    assert told(read_drawn(encoded(records)), tmp_path)["state"]["name"] == "killed"
    end = {"kind": "end", "reason": "signal", "iter": 40, "ledger": {}}
    assert told(read_drawn(encoded([*records, end])), tmp_path)["state"]["name"] == "signal"


# -- the command -----------------------------------------------------------------------------------


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
        (["x.log", "--device=abacus"], "'abacus': not in the table"),
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
    script = "\n".join(page.page_file(name) for name in page.script_names())
    asked = set(re.findall(r"""say\("([a-z][\w-]*)\"""", script))
    asked |= set(re.findall(r'"(page-[a-z-]+)"', script))
    known = page.spoken("en")
    assert {key for key in asked if not key.endswith("-")} - set(known) == set()
    for prefix in ("page-chart-", "page-level-", "page-state-"):
        assert any(key.startswith(prefix) for key in known)


def test_no_sentence_of_the_page_is_left_unsaid():
    script = "\n".join(page.page_file(name) for name in page.script_names())
    kinds = ("chart", "level", "state", "outcome", "peak", "figure", "winner", "axis")
    built = tuple(f"page-{kind}-" for kind in kinds)
    for key in page.spoken("en"):
        if key.startswith("page-") and not key.startswith(built):
            assert f'"{key}"' in script, key
