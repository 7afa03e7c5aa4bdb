"""Memory does not grow with a log, whatever its lines are; and figures of a long log stay right.

Each case runs in a process of its own, on a short log and then on one several times as long: the
second must not need more memory than the first. Bounds are lowered there, so that they are met by
logs of a few megabytes.
"""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from nanogpt_run import Run
from stepglass.explain import limits
from stepglass.explain.rules import all_rules
from stepglass.explain.study import study
from stepglass.logs import detect, segment
from stepglass.logs.log import Log
from stepglass.logs.table import Table
from stepglass.report import stream
from stepglass.report.chart_table import ChartTable
from stepglass.report.columns import NUM, NUM_LOSSES
from stepglass.report.thinning import thinned

MOST_GROWTH_MB = 4.0
CHILD = """
import sys
from stepglass import cli
from stepglass.logs.bulk import boundaries
from stepglass.logs import detect
from stepglass.logs import lines
from stepglass.logs import table
from stepglass.report import live
from stepglass.report import chart_table

lines.BLOCK = live.PIECE = 1 << 17
detect.MOST_WAITING_BYTES = 1 << 22
table.CAPACITY, boundaries.MOST_ITERS, table.Table.most_notes = 1024, 2048, 500
for kind in (chart_table.ChartTable, chart_table.LiveChartTable):
    kind.most_rows, kind.most_notes = 4000, 500

def explain(path):
    assert cli.main(["explain", path, "--json"]) == 0

def report(path):
    assert cli.main(["report", path, "-o", path + ".html"]) == 0

def watch(path):
    from pathlib import Path
    run = live.LiveRun(Path(path).parent)
    while run.advance():
        run.events(None)

def peak_kb():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if "VmHWM" in line)

peaks = []
for path in sys.argv[2:]:
    globals()[sys.argv[1]](path)
    peaks.append(peak_kb())
print(peaks[0], peaks[1], file=sys.stderr)
"""


def growth_mb(command: str, lines: Callable[[int], Iterator[str]], small: int, large: int) -> float:
    """How much more memory the larger log takes."""
    paths = []
    for count in (small, large):
        Path(str(count)).mkdir()
        paths.append(Path(str(count), "run.jsonl"))
        with open(paths[-1], "w") as file:
            file.writelines(lines(count))
    done = subprocess.run(
        [sys.executable, "-c", CHILD, command, *map(str, paths)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    first, second = map(int, done.stderr.split()[-2:])
    return (second - first) / 1000


def iterations(count: int, first: int = 0) -> Iterator[str]:
    for n in range(first, first + count):
        yield f"iter {n}: loss 2.{n % 9000 + 1000}, time 33.{n % 90 + 10}ms, mfu 11.00%\n"


def settings(count: int) -> Iterator[str]:
    return chain(iterations(50), (f"Overriding: key_{n} = {n}\n" for n in range(count)))


def evaluations(count: int) -> Iterator[str]:
    numbers = range(50, 50 + count)
    lines = (f"step {n}: train loss 2.1, val loss 2.2\n" for n in numbers)
    return chain(iterations(50), lines)


def boundaries(count: int) -> Iterator[str]:
    for n in range(0, 2 * count, 2):
        yield f"step {n}: train loss 2.1234, val loss 2.2234\nsaving checkpoint to out\n"
        yield from iterations(1, n)


def runs(count: int) -> Iterator[str]:
    return chain.from_iterable(iterations(count) for _ in range(40))


def own(count: int) -> Iterator[str]:
    """run.jsonl, without the pauses that make it long to write."""
    for n in range(count):
        yield (
            f'{{"kind":"iter","iter":{n},"loss":2.{n % 900 + 100},"lr":0.001,"grad_norm":1.5,'
            f'"tokens":32,"wall_ms":25.{n % 90},"phases":{{"data":1.0,"forward_backward":20.5,'
            f'"optimizer":3.5}},"mfu":0.5}}\n'
        )


def samples(count: int) -> Iterator[str]:
    text = "word " * 150
    yield from own(50)
    for n in range(count):
        yield f'{{"kind":"event","name":"sample","iter":{n},"detail":{{"text":"{text}"}}}}\n'


def endings(count: int) -> Iterator[str]:
    yield from own(50)
    for n in range(count):
        yield f'{{"kind":"end","reason":"finished","key{n}":{n}}}\n'


def document(count: int) -> Iterator[str]:
    yield '{"log_history": [\n'
    for n in range(count):
        yield f'  {{"epoch": 0.5, "loss": 2.5, "learning_rate": 1e-4, "step": {n}}},\n'
    yield '  {"loss": 2.5, "epoch": 1.0, "step": 1000000}\n], "max_steps": 7}\n'


def long_lines(count: int) -> Iterator[str]:
    lines = (f"{n} " + "y" * 60_000 + "\n" for n in range(count))
    return chain(lines, iterations(50))


@pytest.mark.parametrize(
    ("lines", "small", "large"),
    [
        (settings, 4000, 45_000),
        (evaluations, 4000, 90_000),
        (boundaries, 10_000, 80_000),
        (runs, 400, 1600),
        (samples, 2500, 6000),
        (endings, 2000, 40_000),
        (document, 4000, 16_000),
        (long_lines, 80, 220),
    ],
)
def test_explaining_a_longer_log_takes_no_more_memory(lines, small, large):
    assert growth_mb("explain", lines, small, large) < MOST_GROWTH_MB


@pytest.mark.parametrize(("lines", "small", "large"), [(iterations, 20_000, 100_000)])
def test_the_page_of_a_longer_log_takes_no_more_memory(lines, small, large):
    assert growth_mb("report", lines, small, large) < MOST_GROWTH_MB


def test_watching_a_longer_run_takes_no_more_memory():
    assert growth_mb("watch", own, 6000, 40_000) < MOST_GROWTH_MB


# -- what is kept is right ------------------------------------------------------------------------


def read(text: str, new_table: Callable[[], Table] = Table) -> Log:
    Path("x.log").write_text(text)
    with open("x.log", "rb") as file:
        return detect.read_log(file, "x.log", new_table)


def test_where_the_time_went_does_not_depend_on_how_many_slow_lines_are_kept(monkeypatch):
    """More boundaries than a table has rows: what they took is still all of it."""
    monkeypatch.setattr("stepglass.logs.table.CAPACITY", 256)
    monkeypatch.setattr(Table, "most_notes", 50)
    run = Run(num_iters=40_000, eval_interval=50, log_interval=10, noise=0.01)
    [part] = study(read(run.text)).parts
    ledger = part.timing.ledger
    assert len(part.timing.spikes) < 256
    found = sum(ms for name, ms in ledger.phases.items() if name not in ("step", "warmup"))
    assert found == pytest.approx(run.spent["eval"] + run.spent["checkpoint"], rel=0.02)
    assert ledger.wall_ms == pytest.approx(run.wall_ms, rel=0.02)


def test_evaluations_that_say_what_they_took_are_all_added_up(monkeypatch):
    monkeypatch.setattr(Table, "most_notes", 20)
    lines = []
    for n in range(500):
        lines.append(f"iter {n}: loss 2.0000, time 10.00ms, mfu 5.00%\n")
        lines.append(f"eval {n}: 3.00ms, val loss 2.0 ± 0.1 (9 windows)\n")
    [part] = study(read("".join(lines))).parts
    assert len(part.segment.evals) <= 21
    assert part.segment.num_evals == 500
    assert part.timing.ledger.phases["eval"] == pytest.approx(1500.0)


def test_what_the_rules_ask_for_is_kept_behind_any_number_of_settings():
    flood = "".join(f"Overriding: key_{n} = {n}\n" for n in range(1500))
    log = read(flood + "Overriding: max_iters = 77\n" + "".join(iterations(20)))
    kept = log.segments[-1]
    assert kept.config["max_iters"] == 77
    assert kept.config["key_0"] == 0
    assert len(kept.config) == segment.MOST_NAMES + 1
    assert limits.left_out(study(log))["settings"] == {"count": 500, "most": 1000}


def test_every_setting_that_a_rule_asks_for_is_one_of_those():
    source = "".join(path.read_text() for path in Path(all_rules.__file__).parent.glob("*.py"))
    asked = set(re.findall(r'(?:\bsetting|number_setting|line_of_setting)\("(\w+)"\)', source))
    assert len(asked) > 15
    assert asked <= segment.ASKED_FOR


def test_the_error_that_ended_a_run_is_seen_behind_any_number_of_warnings():
    warning = "W0110 12:27:06.332000 158 x.py:1] torch._dynamo hit config.recompile_limit (8)\n"
    end = "ValueError: the last word\n"
    log = read("".join(iterations(20)) + (segment.MOST_EVENTS + 100) * warning + end)
    known = study(log)
    assert "the last word" in known.parts[0].error.record["detail"]
    assert limits.left_out(known)["events"] == {"count": 101}


def test_an_iteration_slowed_by_what_the_line_before_says_is_no_stall_however_often(monkeypatch):
    monkeypatch.setattr(segment, "MOST_EVENTS", 10)
    lines = []
    for n in range(400):
        is_slow = n % 10 == 5
        if is_slow:
            lines.append(f"[GC] Performing periodic garbage collection took 0.4 seconds {n}\n")
        lines.append(iteration_of_torchtitan(n, 500 if is_slow else 100))
    log = read("".join(lines))
    assert log.format.name == "torchtitan"
    assert not study(log).parts[0].timing.spikes_of("unexplained")


def iteration_of_torchtitan(n: int, tokens: int) -> str:
    when = f"2024-05-01 10:{n // 60 % 60:02}:{n % 60:02},000"
    return f"[rank0]:{when} - root - INFO - step: {n:2}  loss: 2.5  memory: 1.00GiB(5%)  tps: 100\n"


# -- thinning -------------------------------------------------------------------------------------


def columns(count: int) -> dict[str, np.ndarray]:
    around = np.random.default_rng(0)
    rows = {name: around.normal(2.0, 0.1, count).astype(np.float32) for name in ("loss", "time_ms")}
    rows["loss"][::97] = np.nan
    rows["phase:eval"] = np.where(np.arange(count) % 50 == 0, 7.0, 0.0).astype(np.float32)
    numbers = np.arange(count, dtype=np.float64)
    return {"iter": numbers, "line": numbers + 1, **rows}


def test_thinned_rows_are_real_ones_with_every_extreme_and_all_sums():
    whole = columns(50_000)
    whole["loss"][12_345], whole["time_ms"][40_000] = 9.0, 0.001
    few = whole
    for most in (20_000, 5000, 1000):  # also in several steps
        few = thinned(few, most)
        assert len(few["iter"]) <= most
    rows = few["iter"].astype(int)
    assert {0, 12_345, 40_000, 49_999} <= set(rows.tolist())
    for name in ("loss", "time_ms", "phase:eval", "line"):
        np.testing.assert_array_equal(few[name], whole[name][rows])
    assert few[NUM].sum() == 50_000
    assert few[NUM_LOSSES].sum() == np.isfinite(whole["loss"]).sum()
    assert few["sum:time_ms"].sum() == pytest.approx(whole["time_ms"].sum(), rel=1e-5)
    assert few["sum:phase:eval"].sum() == pytest.approx(7000)
    # Of any part that is wide enough, the lowest and highest are there.
    for start in range(0, 50_000, 5000):
        part = slice(start, start + 5000)
        inside = (rows >= start) & (rows < start + 5000)
        assert np.nanmax(few["loss"][inside]) == np.nanmax(whole["loss"][part])
        assert np.nanmin(few["time_ms"][inside]) == np.nanmin(whole["time_ms"][part])


def test_a_table_with_little_room_keeps_its_spikes_and_counts_all(monkeypatch):
    monkeypatch.setattr(ChartTable, "most_rows", 2000)
    lines = list(iterations(60_000))
    lines[33_333] = "iter 33333: loss 8.7500, time 900.00ms, mfu 11.00%\n"
    table = read("".join(lines), ChartTable).segments[0].table
    assert isinstance(table, ChartTable)
    rows = table.drawn.slice(0, 10**9)
    assert len(rows["iter"]) == len(table.drawn) <= 2000
    assert rows[NUM].sum() == 60_000
    assert rows["loss"].max() == 8.75
    assert rows["iter"][rows["time_ms"].argmax()] == 33_333
    assert rows["iter"][[0, -1]].tolist() == [0, 59_999]


def test_the_phases_of_thinned_rows_add_up_to_the_wall_clock(monkeypatch):
    monkeypatch.setattr(ChartTable, "most_rows", 2000)
    run = Run(num_iters=9000, eval_interval=300, noise=0.01)
    log = read(run.text, ChartTable)
    parts = study(log).parts
    sent: dict[str, np.ndarray] = {}

    def pack(column: np.ndarray) -> dict[str, str]:
        sent[str(len(sent))] = column
        return {"at": str(len(sent) - 1)}

    [message] = stream.run_messages(log, stream.Place(), stream.place_of(log), pack, parts)
    found = {name: sent[packed["at"]] for name, packed in message["columns"].items()}
    phases = {name: c.sum() for name, c in found.items() if name.startswith("sum:phase:")}
    assert sum(phases.values()) == pytest.approx(run.wall_ms, rel=0.01)
    assert phases["sum:phase:eval+checkpoint"] == pytest.approx(
        run.spent["eval"] + run.spent["checkpoint"], rel=0.1
    )
