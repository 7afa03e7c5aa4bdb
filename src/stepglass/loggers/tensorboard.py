"""Logs to TensorBoard."""

import importlib
import os
import socket
import time
from pathlib import Path
from typing import Any

from stepglass.loggers.logger import LoggedRun, OptionalPackage
from stepglass.loggers.tags import TimeOfDay, logged_step, scalars
from stepglass.measure.records import RunRecord

PACKAGE = OptionalPackage(
    "tensorboard", module="tensorboard.summary.writer.record_writer", needed="RecordWriter"
)
HINT = "leave it out of --log_to"


def start(run: LoggedRun) -> "TensorBoard":
    return TensorBoard(run.run_dir / "tensorboard")


class TensorBoard:
    """Writes event files to a folder, a new file for each process.

    It uses TensorBoard's own record format and protocol buffers, but not its EventFileWriter. That
    class imports TensorFlow if it is installed, and its extra thread makes it half as fast.
    """

    def __init__(self, folder: Path) -> None:
        record_writer = PACKAGE.load()
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

    def write(self, records: list[RunRecord]) -> None:
        for record in records:
            wall_time = self._time.of(record)
            values = scalars(record)
            values.pop("iter", None)  # its chart would only be a straight line
            if values:
                points = [
                    self._summary.Value(tag=tag, simple_value=value)
                    for tag, value in values.items()
                ]
                summary = self._summary(value=points)
                self._add(
                    self._events.Event(
                        wall_time=wall_time, step=logged_step(record), summary=summary
                    )
                )
                self.num_scalars += len(points)
        self._file.flush()

    def close(self) -> None:
        self._file.close()

    def _add(self, event: Any) -> None:
        self._writer.write(event.SerializeToString())
