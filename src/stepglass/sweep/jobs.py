"""Trains the runs of a sweep in processes of their own, one after another or several at a time."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from stepglass import units
from stepglass.files import SAFE_FLAGS
from stepglass.process import StopRequest
from stepglass.run_dir.run_facts import run_facts
from stepglass.sweep.planned_run import PlannedRun

LOOK_EVERY_S = 0.1
TAIL_BYTES = 1 << 14
STOPPED_EARLY = (130, -signal.SIGTERM)  # a signal came while Python was still importing

Say = Callable[[str], None]


class Process(Protocol):
    """The part of `subprocess.Popen` that is needed here."""

    def poll(self) -> int | None: ...

    def send_signal(self, number: int) -> None: ...


Start = Callable[[list[str], Path, int | None], Process]


def start_training(argv: list[str], log: Path, threads: int | None) -> Process:
    """Start `stepglass train` with its output in a file. It is in a process group of its own, so
    that Ctrl-C reaches only the sweep: a second signal would end the run without a checkpoint."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)} if threads else None
    fd = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | SAFE_FLAGS, 0o666)
    try:
        return subprocess.Popen(
            [sys.executable, "-m", "stepglass", "train", *argv],
            stdin=subprocess.DEVNULL,
            stdout=fd,
            stderr=subprocess.STDOUT,
            env=environment,
            process_group=0,
        )
    finally:
        os.close(fd)


def threads_of_each(jobs: int) -> int | None:
    """Threads for each of several runs at a time, so that they do not fight for the cores. None for
    a run by itself, which chooses by itself."""
    if jobs == 1:
        return None
    asked = os.environ.get("OMP_NUM_THREADS", "")
    cores = int(asked) if asked.isdecimal() and int(asked) else num_cores()
    return max(1, cores // jobs)


def num_cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass
class Jobs:
    """Trains the runs of a sweep. From `deadline_s` on the clock `now`, no more are started."""

    number: int
    stop: StopRequest
    say: Say
    deadline_s: float | None = None
    start: Start = start_training
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _running: dict[str, tuple[PlannedRun, Process, float]] = field(default_factory=dict)
    _is_told: bool = False

    def train_all(self, runs: list[PlannedRun]) -> list[PlannedRun]:
        """Train the runs in this order, and return those that were not started. A run that fails
        does not end the others. A signal stops those that are running, with their checkpoints."""
        waiting, total = list(runs), len(runs)
        threads = threads_of_each(self.number)
        try:
            while waiting or self._running:
                while waiting and len(self._running) < self.number and self._may_start():
                    self._begin(waiting.pop(0), f"{total - len(waiting)} of {total}", threads)
                self._pass_the_signal_on()
                self._collect()
                if not self._running and not self._may_start():
                    break
                if self._running:
                    self.sleep(LOOK_EVERY_S)
        finally:
            for _, process, _ in self._running.values():  # only after an error in here
                process.send_signal(signal.SIGTERM)
        return waiting

    def _may_start(self) -> bool:
        is_in_time = self.deadline_s is None or self.now() < self.deadline_s
        return is_in_time and not self.stop.is_set()

    def _begin(self, run: PlannedRun, place: str, threads: int | None) -> None:
        action = run.action()
        if action not in ("new", "resume"):  # it was started from elsewhere meanwhile
            self.say(f"{place}: {run.name}: {action}: passed over")
            return
        self.say(f"{place}: {run.name}: {'resumed' if action == 'resume' else 'started'}")
        process = self.start(run.argv(action), log_of(run), threads)
        self._running[run.name] = run, process, self.now()

    def _pass_the_signal_on(self) -> None:
        if self.stop.is_set() and not self._is_told:
            self._is_told = True
            self.say(f"{self.stop.name}: stopping; the runs that are going on save a checkpoint")
            for _, process, _ in self._running.values():
                process.send_signal(signal.SIGTERM)

    def _collect(self) -> None:
        for run, process, began in list(self._running.values()):
            code = process.poll()
            if code is not None:
                del self._running[run.name]
                took = units.duration((self.now() - began) * 1000)
                self.say(f"  {run.name}: {_result(run, code, self._is_told)}, {took}")


def log_of(run: PlannedRun) -> Path:
    """The file for what a run prints. It is beside the run's folder, which `train` makes."""
    return run.folder.with_name(f"{run.name}.log")


def _result(run: PlannedRun, code: int, is_told: bool) -> str:
    facts = run_facts(run.folder)
    if is_told and code in STOPPED_EARLY:
        return "stopped before it began to train"
    if code == 0:
        return f"{facts.state_shown}, val loss {units.loss(facts.best_val_loss)}"
    return f"failed with exit code {code}: {_last_words(log_of(run))}"


def _last_words(log: Path) -> str:
    """The error that a run has printed, or its last line."""
    try:
        with open(os.open(log, os.O_RDONLY | SAFE_FLAGS), "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL_BYTES))
            lines = file.read(TAIL_BYTES).decode("utf-8", "replace").splitlines()
    except OSError:
        lines = []
    errors = [line for line in lines if line.startswith("error: ")]
    return (errors or [line for line in lines if line.strip()] or ["it printed nothing"])[-1]
