"""Processes of a run with several, killed at random steps and while a checkpoint is written.
`make torture-ranks` does it 30 times, and asks how long the run stood still."""

import os
import random
import re
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from helpers import prepare_tiny, records, story, tiny_args
from processes import Forked, pid_of_rank, wait_until
from rank_processes import TWO, train_ranks
from runs import are_same, stored_tensors
from stepglass.run_dir import checkpoints

# Of each kind, with each of ddp and fsdp. The runs of `make torture-ranks` have more of them.
KILLS = int(os.environ.get("STEPGLASS_RANK_KILLS", "1"))
WITHIN_S = float(os.environ.get("STEPGLASS_RANK_KILLS_WITHIN_S", "inf"))
PATIENCE_S = 200  # imports take long beside other tests
LAST = 30 + 60 * KILLS
SETTINGS = TWO | {
    "dropout": 0.1,
    "max_iters": LAST,
    "lr_decay_iters": LAST,
    "eval_interval": LAST,
    "checkpoint_interval": 4,
    "log_interval": 1,
}
AGAIN = "note: a process was lost, and all were started again"
ITERATION = re.compile(r"iter (\d+): loss")


class Launched:
    """A run, with the lines that it has printed so far and their times."""

    def __init__(self, process: Forked) -> None:
        self.process = process
        self.lines: list[tuple[float, str]] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append((time.monotonic(), line.rstrip()))

    def iterations(self, restarts: int) -> list[tuple[float, int]]:
        """Those after so many restarts and before the next: their times and their steps."""
        lines = list(self.lines)
        starts = [0, *(number for number, (_, line) in enumerate(lines) if line == AGAIN)]
        if len(starts) <= restarts:
            assert self.process.poll() is None, self.all_output()
            return []
        between = slice(*[*starts, len(lines)][restarts : restarts + 2])
        found = [(at, ITERATION.match(line)) for at, line in lines[between]]
        return [(at, int(match[1])) for at, match in found if match]

    def all_output(self) -> str:
        """All that it has printed, when it has ended."""
        self._reader.join(PATIENCE_S)
        return "\n".join(line for _, line in self.lines) + self.process.stderr.read()


@pytest.fixture(autouse=True)
def data(threads) -> None:
    threads(1)
    prepare_tiny()


def steps_saved() -> list[int]:
    return [checkpoints.step_of(path) for path in checkpoints.committed(Path("out"))]


def half_written() -> list[Path]:
    return list(Path("out/ckpt").glob(".tmp-*"))


def restarts_told() -> list[int]:
    """The restarts in the run's log, and in those of its attempts that ended before the first
    checkpoint: the next attempt is a new run, which moves them aside."""
    aside = [str(path) for path in sorted(Path("out").glob("earlier-*"))]
    events = [event for folder in (*aside, "out") for event in records("event", folder)]
    return [event["detail"]["restarts"] for event in events if event["name"] == "restart"]


def kill(run: Launched, restarts: int, rank: int, *, in_checkpoint: bool) -> float:
    """Kill a process some updates after the last start. Returns the time."""
    after = random.randint(2, 12)
    wait_until(lambda: len(run.iterations(restarts)) >= after, PATIENCE_S)
    pid = pid_of_rank(run.process, rank)
    if in_checkpoint:
        wait_until(half_written, PATIENCE_S, every_s=0.0)
    else:
        time.sleep(random.uniform(0, 0.1))
    os.kill(pid, signal.SIGKILL)
    return time.monotonic()


@pytest.mark.long
@pytest.mark.timeout(600 * KILLS)
@pytest.mark.parametrize(("parallel", "shards"), [("ddp", False), ("fsdp", False), ("fsdp", True)])
def test_processes_killed_at_any_moment_end_with_the_same_weights(fork_server, parallel, shards):
    """DDP loses nothing if rank 0 lives; otherwise the newest checkpoint counts."""
    settings = SETTINGS | {"parallel": parallel, "checkpoint_shards": shards}
    train_ranks(fork_server, **settings, out_dir="whole")
    kinds = [in_checkpoint for _ in range(KILLS) for in_checkpoint in (False, True)]
    args = tiny_args(**settings, nproc=2, max_restarts=len(kinds))
    run = Launched(fork_server.start("train", *args, env={"OMP_NUM_THREADS": "1"}))
    said, stood_still_s = [], []
    for restarts, in_checkpoint in enumerate(kinds):
        rank = random.randrange(2)
        killed_at = kill(run, restarts, rank, in_checkpoint=in_checkpoint)
        saved, torn = max(steps_saved(), default=0), len(half_written())
        wait_until(lambda: run.iterations(restarts + 1), PATIENCE_S)  # noqa: B023
        _, last = run.iterations(restarts)[-1]
        again_at, first = run.iterations(restarts + 1)[0]
        stood_still_s.append(again_at - killed_at)
        said.append(
            f"{parallel}, shards {shards}: rank {rank} killed "
            f"{'while saving' if in_checkpoint else 'at random'} "
            f"({torn} half-written), {saved} saved, {last} the last; again from {first} after "
            f"{stood_still_s[-1]:.1f} s\n"
        )
        assert first >= saved, said
        if parallel == "ddp" and rank == 1:
            assert first == last + 1, said
    output = run.all_output()
    assert run.process.wait() == 0, output
    assert are_same(stored_tensors("out"), stored_tensors("whole")), said
    assert [r["iter"] for r in story("iter")] == list(range(LAST))
    assert not half_written()
    assert restarts_told() == list(range(1, len(kinds) + 1))
    sys.stdout.write("".join(said))
    assert max(stood_still_s) < WITHIN_S, said
