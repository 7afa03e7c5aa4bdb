"""Files at random, changed a little, or made to do harm: `make fuzz`.

    python tests/fuzz_files.py                 all kinds
    python tests/fuzz_files.py pickles         one kind
    python tests/fuzz_files.py pickles 123     one input again, in this process, with its traceback

Every input must be taken or refused with an error of ours, within a gigabyte and ten seconds of its
process's own time: a machine may have other work. A kind is a function that takes bytes, and one
that makes them of random numbers. Inputs are read by processes that are used again and again; one
that hangs or dies is replaced by another.
"""

import ctypes
import json
import mmap
import os
import random
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fuzz_checkpoints import forged_checkpoint, take_checkpoint
from fuzz_inputs import config_py, config_toml, meta_pickle
from stepglass.data import nanogpt_meta, tokenizer
from stepglass.errors import StepglassError
from stepglass.run_dir.saved_settings import saved_settings
from stepglass.settings import command_line

SECONDS = 10
WAITING_SECONDS = 60  # on the wall: for what waits, and does no work
MAX_BYTES = 1 << 30
LONGEST_MESSAGE = 1000
PROCESSES = os.cpu_count() or 1


@dataclass(frozen=True)
class Kind:
    """What is tried, how often. `take` works in an empty folder of its own."""

    count: int
    make: Callable[[random.Random], bytes]
    take: Callable[[bytes], None]

    def input(self, name: str, number: int) -> bytes:
        return self.make(random.Random(f"{name} {number}"))


def take_pickle(data: bytes) -> None:
    Path("meta.pkl").write_bytes(data)
    meta = nanogpt_meta.read_meta_pkl(Path("meta.pkl"))
    json.dumps(tokenizer.of_table(meta.table, meta.vocab_size))


def take_toml(data: bytes) -> None:
    Path("c.toml").write_bytes(data)
    command_line.resolve(command_line.read_command_line(["c.toml"]), "none", saved_settings)


def take_py(data: bytes) -> None:
    Path("c.py").write_bytes(data)
    command_line.resolve(command_line.read_command_line(["c.py"]), "none", saved_settings)


KINDS = {
    "pickles": Kind(20_000, meta_pickle, take_pickle),
    "toml": Kind(5_000, config_toml, take_toml),
    "py": Kind(5_000, config_py, take_py),
    "checkpoints": Kind(5_000, forged_checkpoint, take_checkpoint),
}


class Figures(ctypes.Structure):
    """What a process has done so far; its parent looks at them when it is gone."""

    _fields_ = (
        ("number", ctypes.c_int64),  # the input it is at
        ("taken", ctypes.c_int64),
        ("refused", ctypes.c_int64),
        ("slowest_s", ctypes.c_double),
        ("slowest", ctypes.c_int64),
        ("most_bytes", ctypes.c_int64),
        ("most", ctypes.c_int64),
    )


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def work(name: str, numbers: range, figures: Figures, failures: Path) -> None:
    """Try inputs one after the other. Does not return."""
    kind = KINDS[name]
    limit = address_space() + 2 * MAX_BYTES  # a net: what counts is the memory really used
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    base = peak_bytes()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for number in numbers:
            figures.number = number
            data = kind.input(name, number)
            before, began = peak_bytes(), time.process_time()
            set_timers(SECONDS, WAITING_SECONDS)  # their signals end a process that hangs in C too
            problem = tried(kind, data, figures)
            set_timers(0, 0)
            took = time.process_time() - began
            if took > figures.slowest_s:
                figures.slowest_s, figures.slowest = took, number
            if peak_bytes() > max(before, base + figures.most_bytes):
                figures.most_bytes, figures.most = peak_bytes() - base, number
            if peak_bytes() - base > MAX_BYTES:
                problem = problem or f"took {(peak_bytes() - base) / 1e6:.0f} MB"
            if problem:
                with open(failures, "a") as file:
                    file.write(f"{name} {number}: {problem}\n")
            if peak_bytes() - base > MAX_BYTES:
                break  # the figure never falls: a new process goes on
    os._exit(0)


def set_timers(own: float, wall: float) -> None:
    signal.setitimer(signal.ITIMER_PROF, own)
    signal.setitimer(signal.ITIMER_REAL, wall)


def tried(kind: Kind, data: bytes, figures: Figures) -> str:
    """What is wrong with how an input was read; empty if nothing is."""
    try:
        kind.take(data)
        figures.taken += 1
    except StepglassError as error:
        figures.refused += 1
        if len(str(error)) > LONGEST_MESSAGE:
            return f"a message of {len(str(error))} characters"
    except BaseException as error:  # noqa: BLE001  that is what is looked for
        return f"{type(error).__name__}: {str(error)[:200]!r}"
    return ""


def address_space() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * mmap.PAGESIZE


def run(name: str, folder: Path) -> list[str]:
    """Try all inputs of a kind. Returns what went wrong."""
    kind, failures = KINDS[name], folder / name
    failures.touch()
    size = ctypes.sizeof(Figures)
    shared = mmap.mmap(-1, PROCESSES * size)
    figures = [Figures.from_buffer(shared, index * size) for index in range(PROCESSES)]
    began = time.perf_counter()
    to_do = {index: range(index, kind.count, PROCESSES) for index in range(PROCESSES)}
    at_work: dict[int, int] = {}
    while to_do or at_work:
        for index, numbers in to_do.items():
            pid = os.fork()
            if pid == 0:
                work(name, numbers, figures[index], failures)
            at_work[pid] = index
        pid, status = os.wait()
        index = at_work.pop(pid)
        number = figures[index].number
        if status != 0:
            is_late = os.WTERMSIG(status) in (signal.SIGALRM, signal.SIGPROF)
            reason = f"no end within {SECONDS} s" if is_late else f"it ended with status {status}"
            with open(failures, "a") as file:
                file.write(f"{name} {number}: {reason}\n")
        left = range(number + PROCESSES, kind.count, PROCESSES)
        to_do = {index: left} if left else {}
    say(summary(name, kind.count, figures, time.perf_counter() - began))
    return failures.read_text().splitlines()


def summary(name: str, count: int, figures: list[Figures], seconds: float) -> str:
    slowest = max(figures, key=lambda figure: figure.slowest_s)
    largest = max(figures, key=lambda figure: figure.most_bytes)
    return (
        f"{name}: {count} inputs in {seconds:.0f} s: {sum(f.taken for f in figures)} taken, "
        f"{sum(f.refused for f in figures)} refused; "
        f"slowest {slowest.slowest_s:.2f} s (input {slowest.slowest}), "
        f"most memory {largest.most_bytes / 1e6:.0f} MB (input {largest.most})"
    )


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(words: list[str]) -> int:
    if len(words) == 2:
        os.chdir(tempfile.mkdtemp())
        kind = KINDS[words[0]]
        kind.take(kind.input(words[0], int(words[1])))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        problems = [line for name in words or KINDS for line in run(name, Path(folder))]
    for line in problems:
        say(f"FAILED {line}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
