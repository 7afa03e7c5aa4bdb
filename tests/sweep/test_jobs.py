"""How a sweep runs its processes: with processes and a clock that the test moves."""

import signal
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from stepglass.process import StopRequest
from stepglass.settings.command_line import CommandLine
from stepglass.sweep import jobs
from stepglass.sweep.jobs import Jobs
from stepglass.sweep.planned_run import PlannedRun


@dataclass
class FakeProcess:
    """Ends after some seconds of the fake clock, or one second after a signal."""

    ends_s: float
    house: "House"
    code: int = 0
    signals: list[int] = field(default_factory=list)

    def poll(self) -> int | None:
        return self.code if self.house.now_s >= self.ends_s else None

    def send_signal(self, number: int) -> None:
        self.signals.append(number)
        self.ends_s = self.house.now_s + 1


class House:
    """The processes, the clock, the console and the signal of a sweep."""

    def __init__(self, codes: dict[str, int] | None = None) -> None:
        self.now_s = 0.0
        self.codes = codes or {}
        self.stop = StopRequest()
        self.signal_s: float | None = None
        self.processes: dict[str, FakeProcess] = {}
        self.most_at_once = 0
        self.lines: list[str] = []

    def start(self, argv: list[str], log: Path, threads: int | None) -> FakeProcess:
        name = log.stem
        process = FakeProcess(self.now_s + 10, self, self.codes.get(name, 0))
        self.processes[name] = process
        at_once = sum(one.poll() is None for one in self.processes.values())
        self.most_at_once = max(self.most_at_once, at_once)
        return process

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        if self.signal_s is not None and self.now_s >= self.signal_s:
            self.stop.name = "SIGINT"

    def train(self, number: int, at_a_time: int, deadline_s: float | None = None) -> list[str]:
        """The names of the runs that were not started."""
        runs = [
            PlannedRun(f"n={n}", Path("sweep", f"n={n}"), {}, CommandLine({}, {}), [], "tiny")
            for n in range(number)
        ]
        job = Jobs(at_a_time, self.stop, self.lines.append, deadline_s, self.start,
                   lambda: self.now_s, self.sleep)  # fmt: skip
        return [run.name for run in job.train_all(runs)]


@pytest.mark.parametrize(("at_a_time", "took_s"), [(1, 40), (2, 20), (3, 20), (9, 10)])
def test_so_many_runs_go_on_at_a_time_as_were_asked_for(at_a_time, took_s):
    house = House()
    assert house.train(4, at_a_time) == []
    assert len(house.processes) == 4
    assert house.most_at_once == min(at_a_time, 4)
    assert house.now_s == pytest.approx(took_s, abs=1)


def test_a_run_that_fails_or_is_killed_does_not_end_the_others():
    house = House({"n=0": 1, "n=2": -9})
    assert house.train(4, 1) == []
    failed = [line.rpartition(",")[0] for line in house.lines if "failed" in line]
    assert failed == [
        "  n=0: failed with exit code 1: it printed nothing",
        "  n=2: failed with exit code -9: it printed nothing",
    ]


def test_the_reason_of_a_failure_is_the_error_that_was_printed():
    Path("sweep").mkdir()
    Path("sweep/n=0.log").write_bytes(b"x" * 10**6 + b"\nerror: the loss is \x1b[1mnan\nlast\n")
    house = House({"n=0": 1})
    house.train(1, 1)
    assert "exit code 1: error: the loss is \x1b[1mnan" in house.lines[1]  # `say` makes it safe


def test_after_the_minutes_no_run_is_started_and_those_that_go_on_end():
    house = House()
    assert house.train(4, 1, deadline_s=15) == ["n=2", "n=3"]
    assert sum("finished" in line or "unknown" in line for line in house.lines) == 2
    assert all(process.signals == [] for process in house.processes.values())


def test_a_signal_is_passed_on_once_and_no_run_is_started_after_it():
    house = House()
    house.signal_s = 5
    assert house.train(4, 2) == ["n=2", "n=3"]
    assert [process.signals for process in house.processes.values()] == [[signal.SIGTERM]] * 2
    assert house.now_s == pytest.approx(6, abs=1)  # it has waited for both


def test_a_run_that_a_signal_meets_before_it_has_begun_is_not_called_failed():
    house = House({"n=0": -signal.SIGTERM})
    house.signal_s = 1
    house.train(1, 1)
    assert house.lines[-1].startswith("  n=0: stopped before it began to train")


def test_processes_are_stopped_if_the_sweep_itself_fails():
    house = House()

    def fail(seconds: float) -> None:
        raise OSError("no clock")

    house.sleep = fail  # type: ignore[method-assign]
    with pytest.raises(OSError, match="no clock"):
        house.train(2, 2)
    assert [process.signals for process in house.processes.values()] == [[signal.SIGTERM]] * 2


@pytest.mark.parametrize(
    ("number", "asked", "cores", "threads"),
    [
        (1, None, 8, None),
        (2, None, 8, 4),
        (3, None, 8, 2),
        (9, None, 8, 1),
        (2, "4", 8, 2),
        (2, "0", 8, 4),
        (2, "4,2", 8, 4),
    ],
)
def test_runs_at_a_time_share_the_threads(number, asked, cores, threads, monkeypatch):
    monkeypatch.setattr(jobs, "num_cores", lambda: cores)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if asked is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", asked)
    assert jobs.threads_of_each(number) == threads
