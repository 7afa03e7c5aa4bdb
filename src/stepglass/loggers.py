"""Loggers for people who live elsewhere: TensorBoard, wandb, trackio.

    --log_to=tensorboard,wandb

run.jsonl stays the one place with every number. These get its records from the run log's writer,
each through a `Feed`: a queue and a thread of its own, so that no step waits for a disk or a
network, and no logger for another. One that cannot be had ends the command before the run has
begun; one that fails later is dropped, and the run goes on.

The tags are documented in docs/loggers.md. The packages are optional and imported by name, when
they are asked for.
"""

import difflib
import importlib
import math
import os
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

from stepglass.clock import PHASES, STEP_PHASES
from stepglass.errors import ConfigError, os_reason
from stepglass.runlog import Record
from stepglass.units import finite

# What is imported, and a name that it must have: wandb leaves a folder ./wandb behind, which Python
# takes for an empty package where the real one is missing.
PACKAGES = {
    "tensorboard": ("tensorboard.summary.writer.record_writer", "RecordWriter"),
    "wandb": ("wandb", "init"),
    "trackio": ("trackio", "init"),
}
HINTS = {"wandb": "type `wandb login`, or set WANDB_MODE=offline to keep it on this machine"}
CLOSE_S = 30.0  # how long the end of a run waits for what is not sent yet
PATIENCE_S = 1.0  # a wait longer than this is announced
ROW_GAP_MS = 100.0
MAX_BEHIND = 50_000  # records: some 100 MB


class Logger(Protocol):
    """A place that numbers go to. It may be slow and it may raise: a `Feed` stands before it."""

    def write(self, records: list[Record]) -> None: ...

    def close(self) -> None: ...


# -- numbers ------------------------------------------------------------------------------------


def table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def scalars(record: Record, last_iter: Record) -> dict[str, float]:
    """The numbers in a record, by tag. An evaluation has nanoGPT's wandb keys; their `lr` and `mfu`
    are those of `last_iter`, the iteration before it.

    >>> scalars({"kind": "eval", "iter": 5, "train_loss": 2.5, "val_loss": None}, {"lr": 0.1})
    {'iter': 5.0, 'train/loss': 2.5, 'lr': 0.1}
    """
    if record["kind"] == "iter":
        found = _of_iteration(record)
    elif record["kind"] == "eval":
        found = {
            "iter": record["iter"],
            "train/loss": record.get("train_loss"),
            "val/loss": record.get("val_loss"),
            "lr": last_iter.get("lr"),
            "mfu": _percent(last_iter.get("mfu")),
        }
    elif record["kind"] == "checkpoint":
        found = {
            "checkpoint/stall_ms": record.get("stall_ms"),
            "checkpoint/background_ms": record.get("background_ms"),
        }
    else:
        found = {}
    return {tag: known for tag, value in found.items() if (known := finite(value)) is not None}


def _of_iteration(record: Record) -> dict[str, Any]:
    phases = table(record.get("phases"))
    # A GPU's own clock says what a step took; the host's says what it took to queue it.
    timed = table(record.get("device_phases")) or phases
    step_ms = sum(finite(timed.get(name)) or 0.0 for name in STEP_PHASES)
    tokens = finite(record.get("tokens"))
    return {
        "loss": record.get("loss"),
        "lr": record.get("lr"),
        "grad_norm": record.get("grad_norm"),
        "mfu": _percent(record.get("mfu")),
        "tokens_per_s": tokens / step_ms * 1000 if tokens and step_ms else None,
        "time/wall_ms": record.get("wall_ms"),
        "time/step_ms": step_ms or None,
        **{f"time/{phase}_ms": phases.get(phase) for phase in PHASES},
    }


def _percent(share: Any) -> float | None:
    known = finite(share)
    return None if known is None else 100 * known


class TimeOfDay:
    """When a record was made. The log has one time of day for each process and durations after it:
    iterations follow each other without a gap, from the moment the process's clock started.
    """

    def __init__(self) -> None:
        self._last_iter_at = time.time()
        self._since_s = 0.0  # in the window of the iteration that is still going on

    def of(self, record: Record) -> float:
        """Call with every record, in order."""
        seconds = (finite(record.get("wall_ms")) or 0.0) / 1000
        if record["kind"] == "start":
            self._last_iter_at = finite(record.get("time")) or self._last_iter_at
            self._since_s = 0.0
        elif record["kind"] == "event" and record.get("name") == "warmup":
            # Iteration 0's window holds the start-up, which was over when the log's time was read.
            startup_ms = finite(table(record.get("detail")).get("startup_ms")) or 0.0
            self._last_iter_at -= startup_ms / 1000
        elif record["kind"] == "iter":
            self._last_iter_at += seconds
            self._since_s = 0.0
        elif record["kind"] == "eval":
            self._since_s = seconds
        return self._last_iter_at + self._since_s


# -- services -----------------------------------------------------------------------------------


class TensorBoard:
    """Event files in a folder: a new one for each process, side by side.

    TensorBoard's own record format and protocol buffers. Its EventFileWriter is not used: that
    imports TensorFlow where it is installed, and a second thread makes it half as fast.
    """

    def __init__(self, folder: Path) -> None:
        record_writer = load("tensorboard")
        self._events = importlib.import_module("tensorboard.compat.proto.event_pb2")
        self._summary = importlib.import_module("tensorboard.compat.proto.summary_pb2").Summary
        folder.mkdir(parents=True, exist_ok=True)
        place = f"{time.time_ns() // 10**9:010d}.{socket.gethostname()}.{os.getpid()}"
        free = (folder / f"events.out.tfevents.{place}.{n}" for n in range(1000))
        self._file = open(next(path for path in free if not path.exists()), "xb")  # noqa: SIM115
        self._writer = record_writer.RecordWriter(self._file)
        self._time = TimeOfDay()
        self.num_scalars = 0
        self._add(self._events.Event(wall_time=time.time(), file_version="brain.Event:2"))
        self._file.flush()

    def write(self, records: list[Record]) -> None:
        for record in records:
            wall_time = self._time.of(record)
            values = scalars(record, {})
            values.pop("iter", None)  # a chart of it would be a straight line
            if values:
                points = [
                    self._summary.Value(tag=tag, simple_value=value)
                    for tag, value in values.items()
                ]
                summary = self._summary(value=points)
                self._add(
                    self._events.Event(wall_time=wall_time, step=record["iter"], summary=summary)
                )
                self.num_scalars += len(points)
        self._file.flush()

    def close(self) -> None:
        self._file.close()

    def _add(self, event: Any) -> None:
        self._writer.write(event.SerializeToString())


class Rows:
    """What goes to wandb and trackio: every evaluation and checkpoint, and of the iterations those
    that are printed, not more than ten a second. A row costs wandb a third of a millisecond, in the
    process that trains, and its charts show no more.
    """

    def __init__(self, log_interval: int) -> None:
        self._log_interval = log_interval
        self._last_iter: Record = {}
        self._since_row_ms = math.inf

    def of(self, records: list[Record]) -> Iterator[tuple[int, dict[str, float]]]:
        for record in records:
            if record["kind"] == "iter" and not self._is_shown(record):
                continue
            values = scalars(record, self._last_iter)
            if values:
                yield record["iter"], values

    def _is_shown(self, record: Record) -> bool:
        self._last_iter = record
        self._since_row_ms += finite(record.get("wall_ms")) or 0.0
        if record["iter"] % self._log_interval or self._since_row_ms < ROW_GAP_MS:
            return False
        self._since_row_ms = 0.0
        return True


class Wandb:
    """A run on wandb, as nanoGPT makes it."""

    def __init__(self, project: str, name: str, config: dict[str, Any], log_interval: int) -> None:
        settings = {
            "console": "off",  # its copy of the output would be made by the thread that trains
            "finish_timeout": CLOSE_S - 5,  # it gives up first, and says how to send the rest
            "finish_timeout_raises": True,
        }
        self._run = load("wandb").init(project=project, name=name, config=config, settings=settings)
        self._rows = Rows(log_interval)
        self._last_step = 0
        self._exit_code = 1

    def write(self, records: list[Record]) -> None:
        for step, values in self._rows.of(records):
            # Steps must not go back: a checkpoint is logged once it is written, some steps late.
            self._last_step = max(self._last_step, step)
            self._run.log(values, step=self._last_step)
        ends = [record["reason"] for record in records if record["kind"] == "end"]
        if ends and ends[-1] in ("finished", "target", "signal"):
            self._exit_code = 0

    def close(self) -> None:
        self._run.finish(exit_code=self._exit_code)


class Trackio:
    """A run in trackio, which has wandb's way of speaking."""

    def __init__(self, project: str, name: str, config: dict[str, Any], log_interval: int) -> None:
        self._run = load("trackio").init(project=project, name=name, config=config)
        self._rows = Rows(log_interval)

    def write(self, records: list[Record]) -> None:
        for step, values in self._rows.of(records):
            self._run.log(values, step=step)

    def close(self) -> None:
        self._run.finish()


# -- from a setting to a running logger ---------------------------------------------------------


def parse(log_to: str) -> list[str]:
    """The names in a `log_to` setting.

    >>> parse("wandb, tensorboard"), parse("")
    (['wandb', 'tensorboard'], [])
    """
    names = list(dict.fromkeys(name for part in log_to.split(",") if (name := part.strip())))
    for name in names:
        if name not in PACKAGES:
            close = difflib.get_close_matches(name.lower(), PACKAGES, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise ConfigError(f"log_to expects {', '.join(PACKAGES)}, found {name!r}{hint}")
    return names


def load(name: str) -> Any:
    """A logger's package, or an error that says what to type."""
    module, needed = PACKAGES[name]
    try:
        found = importlib.import_module(module)
    except Exception as error:  # a package may fail in every way there is
        is_missing = isinstance(error, ModuleNotFoundError) and _is_part_of(error.name, name)
        if not is_missing:
            raise ConfigError(
                f"logging to {name}: its package cannot be imported: {reason_of(error)}"
            ) from error
        found = None
    if not hasattr(found, needed):
        raise ConfigError(
            f"logging to {name}: its package is not installed; type: "
            f"pip install 'stepglass[{name}]'"
        )
    return found


def _is_part_of(module: str | None, package: str) -> bool:
    return module is not None and module.split(".")[0] == package


def start(
    names: list[str],
    run_dir: Path,
    project: str,
    run_name: str,
    config: dict[str, Any],
    log_interval: int,
) -> "list[Feed]":
    """The loggers, each with its thread. What cannot be started is an error: nobody should find
    out after the run that nothing was sent.
    """
    opened: dict[str, Callable[[], Logger]] = {
        "tensorboard": lambda: TensorBoard(run_dir / "tensorboard"),
        "wandb": lambda: Wandb(project, run_name, config, log_interval),
        "trackio": lambda: Trackio(project, run_name, config, log_interval),
    }
    feeds: list[Feed] = []
    for name in names:
        try:
            feeds.append(Feed(name, opened[name]()))
        except Exception as error:
            close(feeds, lambda line: None)
            hint = HINTS.get(name, "leave it out of --log_to")
            raise ConfigError(
                f"logging to {name}: cannot be started: {reason_of(error)}; {hint}"
            ) from error
    return feeds


class Feed:
    """Hands records to one logger from a thread of its own.

    The thread is a daemon: a logger that hangs does not keep the process.
    """

    def __init__(self, name: str, logger: Logger) -> None:
        self.name = name
        self.failure: str | None = None  # the first one: after it the logger gets nothing
        self._logger = logger
        self._queue: queue.SimpleQueue[list[Record] | None] = queue.SimpleQueue()
        self._num_put = self._num_taken = 0  # each is changed by one thread only
        self._thread = threading.Thread(target=self._run, name=f"log-to-{name}", daemon=True)
        self._thread.start()

    def put(self, records: list[Record]) -> None:
        """Queue records; returns at once. They must not be changed afterwards."""
        if self.failure is not None:
            return
        if self._num_put - self._num_taken > MAX_BEHIND:
            self._fail(f"it is {self._num_put - self._num_taken:,} records behind")
            return
        self._num_put += len(records)
        self._queue.put(records)

    def end(self) -> None:
        """No more will come: finish in the background."""
        self._queue.put(None)

    def wait(self, timeout_s: float) -> bool:
        """Until all is handed over and the logger closed; False if that takes longer."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def give_up(self, waited_s: float) -> None:
        self._fail(f"it was not done {waited_s:g} s after the run")

    def _run(self) -> None:
        try:
            while self.failure is None and (records := self._queue.get()) is not None:
                self._num_taken += len(records)
                self._logger.write(records)
        except Exception as error:  # noqa: BLE001 - whatever it is, training goes on
            self._fail(reason_of(error))
        try:
            self._logger.close()
        except Exception as error:  # noqa: BLE001
            self._fail(reason_of(error))

    def _fail(self, reason: str) -> None:
        self.failure = self.failure or reason


def close(feeds: list[Feed], say: Callable[[str], None], timeout_s: float = CLOSE_S) -> None:
    """End the loggers, all at once, and wait for them: not longer than `timeout_s` in all."""
    until = time.monotonic() + timeout_s
    for feed in feeds:
        feed.end()
    announce_after = min(PATIENCE_S, timeout_s)
    late = [feed for feed in feeds if not feed.wait(announce_after / len(feeds))]
    if late:
        names = " and ".join(feed.name for feed in late)
        say(f"waiting for {names} to take what is left: {timeout_s:g} s at most")
    for feed in late:
        if not feed.wait(max(0.0, until - time.monotonic())):
            feed.give_up(timeout_s)


def reason_of(error: Exception) -> str:
    """What went wrong, in one line."""
    if isinstance(error, OSError):
        return os_reason(error)
    if isinstance(error, ConfigError):
        return str(error)
    first = (str(error).strip().splitlines() or [""])[0][:200]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
