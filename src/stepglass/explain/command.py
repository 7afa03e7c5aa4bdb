"""The `explain` command: finds a log, reads it, and prints what it means."""

import os
import stat
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from stepglass.errors import ConfigError, LogError, os_reason
from stepglass.explain.follow import Follower, growing
from stepglass.explain.log_source import checked_device, opened
from stepglass.explain.render import line_by_line, output, show
from stepglass.explain.render.languages import Language, Words, from_environment
from stepglass.explain.render.wrap import text_width
from stepglass.explain.rules import all_rules
from stepglass.explain.study import Study, study
from stepglass.logs import detect
from stepglass.process import keep_freed_memory
from stepglass.settings.schema import Config, Settings, setting


@dataclass(frozen=True, kw_only=True)
class ExplainConfig(Config):
    """Settings of `explain`."""

    lang: Literal["auto", Language] = setting(
        "auto", "language of the answer; auto: the terminal's"
    )
    lines: bool = setting(False, "walk through the log line by line as well")
    all: bool = setting(False, "show every run and all that the log cannot show")
    follow: bool = setting(False, "read on as the log grows, and say findings as they become true")
    json: bool = setting(False, "write JSON (docs/explain.schema.json) instead of text")
    device: str = setting("", "the device the run was on, if the log does not say (RTX 4090)")

    def check(self) -> None:
        if self.follow and self.json:
            raise ConfigError("--follow and --json do not go together: leave one out")


USAGE = "usage: stepglass explain LOG|RUN|- [--key=value ...]\n"
SETTINGS = Settings(ExplainConfig)

Say = Callable[[str], None]


def run(argv: list[str], say: Say) -> None:
    """Explain the log that the command line names."""
    keep_freed_memory()
    words, given = SETTINGS.parse(argv)
    if len(words) != 1:
        found = f"found {words}" if words else "found none"
        raise ConfigError(f"expected one log file, run directory or - for a pipe, {found}")
    # Not `say`: this text is already printable, and JSON has several lines.
    explain(words[0], SETTINGS.build(given), lambda line: print(line))  # noqa: T201


def explain(target: str, cfg: ExplainConfig, say: Say) -> None:
    """Read the log and print what it means."""
    words = Words(from_environment() if cfg.lang == "auto" else cfg.lang)
    device = checked_device(cfg.device)
    if cfg.follow:
        follow(target, cfg, words, device, say)
        return
    name, file = opened(target)
    with file:
        try:
            log = detect.read_log(file, name)
        except OSError as error:
            raise LogError(f"{name}: {os_reason(error)}") from error
    tell(study(log, device), cfg, words, name, say)


def tell(result: Study, cfg: ExplainConfig, words: Words, name: str, say: Say) -> None:
    found = all_rules.findings(result)
    if cfg.json:
        say(output.json_text(output.as_json(result, found, words)))
        return
    width = text_width()
    for line in show.lines(result, found, words, name, width, shows_all=cfg.all):
        say(line)
    if cfg.lines:
        say("")
        for line in line_by_line.walk(result, words, width):
            say(line)


def follow(target: str, cfg: ExplainConfig, words: Words, device: str | None, say: Say) -> None:
    """Print new lines and add findings, until the pipe ends or, for a file, until Ctrl-C."""
    name, file = opened(target)
    is_pipe = target == "-" or not stat.S_ISREG(os.fstat(file.fileno()).st_mode)
    follower = Follower(words, device, lambda line: say(f"| {line}"))

    def pass_through(data: bytes) -> None:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    is_new = is_pipe  # the existing part of a file is read but not printed
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
        raise LogError(detect.nothing_found(follower.log(), name))
    say("")
    tell(result, cfg, words, name, say)
