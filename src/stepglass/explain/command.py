"""The `explain` command: finds the log, reads it, and writes what it means."""

import os
import stat
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

from stepglass import devices
from stepglass.errors import ConfigError, LogError, file_kind, os_reason
from stepglass.explain import output, rules, show, walk
from stepglass.explain.follow import Follower, growing
from stepglass.explain.study import Study, study
from stepglass.explain.words import Words, from_environment
from stepglass.logs import recognise
from stepglass.settings import Settings, setting

# What a folder may hold, the best first.
LOGS_IN_A_FOLDER = ("run.jsonl", "trainer_state.json", "metrics.jsonl", "metrics.csv", "main.log")


@dataclass(frozen=True, kw_only=True)
class ExplainConfig:
    """Settings of `explain`."""

    lang: Literal["auto", "en", "de", "es", "fr"] = setting(
        "auto", "language of the answer; auto: the terminal's"
    )
    lines: bool = setting(False, "walk through the log line by line as well")
    follow: bool = setting(False, "read on as the log grows, and say findings as they become true")
    json: bool = setting(False, "write JSON (docs/explain.schema.json) instead of text")
    device: str = setting("", "the device the run was on, if the log does not say (RTX 4090)")

    def used(self) -> list[str]:
        return ["lang", "lines", "follow", "json", "device"]

    def check(self) -> None:
        if self.follow and self.json:
            raise ConfigError("--follow and --json do not go together: leave one out")


EXPLAIN_SETTINGS = Settings(ExplainConfig)

Say = Callable[[str], None]


def explain(target: str, cfg: ExplainConfig, say: Say) -> None:
    """Read the log and say what it means."""
    words = Words(from_environment() if cfg.lang == "auto" else cfg.lang)
    device = checked_device(cfg.device)
    if cfg.follow:
        follow(target, cfg, words, device, say)
        return
    name, file = opened(target)
    with file:
        try:
            log = recognise.read(file, name)
        except OSError as error:
            raise LogError(f"{name}: {os_reason(error)}") from error
    tell(study(log, device), cfg, words, name, say)


def tell(result: Study, cfg: ExplainConfig, words: Words, name: str, say: Say) -> None:
    found = rules.findings(result)
    if cfg.json:
        say(output.written(output.as_json(result, found, words)))
        return
    for line in show.lines(result, found, words, name):
        say(show.plain_spaces(line))
    if cfg.lines:
        say("")
        for line in walk.walk(result, words):
            say(line)


def checked_device(name: str) -> str | None:
    if not name:
        return None
    if devices.find(name) is None:
        raise ConfigError(
            f"--device: {name!r} is not in the table of known devices; expected a name such as "
            f"'RTX 4090', 'A100' or 'M3 Max'; leave it out to get TFLOP/s instead"
        )
    return name


def opened(target: str) -> tuple[str, BinaryIO]:
    """The log's bytes, and the name to call it by."""
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
        # A file of the system's own may have no size and wait for ever to be filled: /proc/kmsg.
        flags = 0 if is_stream or status.st_size else os.O_NONBLOCK
        return str(path), open(os.open(path, os.O_RDONLY | flags), "rb")
    except OSError as error:
        raise LogError(f"{path}: {os_reason(error)}; expected a log file, a run or -") from error


def log_in(path: Path) -> Path:
    """A file is itself; of a folder, the log in it."""
    if not path.is_dir():
        return path
    for name in LOGS_IN_A_FOLDER:
        if (path / name).is_file():
            return path / name
    saved = sorted(path.glob("checkpoint-*/trainer_state.json"), key=lambda p: p.stat().st_mtime)
    if saved:
        return saved[-1]
    raise LogError(
        f"{path}: no log in this folder; expected one of {', '.join(LOGS_IN_A_FOLDER)}, or the "
        f"name of a log file"
    )


def follow(target: str, cfg: ExplainConfig, words: Words, device: str | None, say: Say) -> None:
    """Pass lines through, add findings. A pipe ends; a file is followed until Ctrl-C."""
    name, file = opened(target)
    is_pipe = target == "-" or not stat.S_ISREG(os.fstat(file.fileno()).st_mode)
    follower = Follower(words, device, lambda line: say(f"| {line}"))

    def pass_through(data: bytes) -> None:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    is_new = is_pipe  # what a file held before is read, not shown
    try:
        for data in growing(file, is_pipe, time.sleep):
            if data:
                follower.feed(data, pass_through if is_new else None)
            elif not is_new:
                is_new = True
                follower.look()
    except KeyboardInterrupt:
        pass
    result = follower.finish(pass_through if is_new else None)
    if result is None:
        raise LogError(recognise.nothing_found(follower.log(), name))
    say("")
    tell(result, cfg, words, name, say)
