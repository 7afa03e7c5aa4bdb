"""Opens the log to explain: a file, a pipe, or the log in a folder."""

import os
import stat
import sys
from pathlib import Path
from typing import BinaryIO

from stepglass.errors import LogError, file_kind, os_reason
from stepglass.measure import devices

# Log files that a folder may contain, the best first.
LOGS_IN_A_FOLDER = ("run.jsonl", "trainer_state.json", "metrics.jsonl", "metrics.csv", "main.log")


class NoLogYet(LogError):
    """The folder has an imported model that was not trained here yet."""


def checked_device(name: str) -> str | None:
    """The whole name of the device that a person means, or None for the one in the log."""
    return devices.device_named(name).name if name else None


def opened(target: str) -> tuple[str, BinaryIO]:
    """The name of the log for messages, and the file, opened in binary mode."""
    if target == "-":
        if sys.stdin is None:
            raise LogError("-: nothing is piped in; expected a log on standard input")
        return "-", sys.stdin.buffer
    path = log_in(Path(target))
    try:
        status = os.stat(path)
        is_stream = stat.S_ISFIFO(status.st_mode)  # as in `explain <(zcat log.gz)`
        if not (stat.S_ISREG(status.st_mode) or is_stream):
            raise LogError(f"{path}: expected a log file, found {file_kind(status.st_mode)}")
        # A system file such as /proc/kmsg has size 0, and reading it may block forever.
        flags = 0 if is_stream or status.st_size else os.O_NONBLOCK
        return str(path), open(os.open(path, os.O_RDONLY | flags), "rb")
    except OSError as error:
        raise LogError(f"{path}: {os_reason(error)}; expected a log file, a run or -") from error


def log_in(path: Path) -> Path:
    """The file itself, or the log in a folder."""
    if not path.is_dir():
        return path
    for name in LOGS_IN_A_FOLDER:
        if (path / name).is_file():
            return path / name
    saved = sorted(path.glob("checkpoint-*/trainer_state.json"), key=lambda p: p.stat().st_mtime)
    if saved:
        return saved[-1]
    from stepglass.run_dir.imported_model import imported_model  # noqa: PLC0415 - seldom needed

    imported = imported_model(path)
    if imported is not None:
        raise NoLogYet(imported.why_no_log())
    raise LogError(
        f"{path}: no log in this folder; expected one of {', '.join(LOGS_IN_A_FOLDER)}, or the "
        f"name of a log file"
    )
