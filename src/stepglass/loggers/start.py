"""From a `log_to` setting to loggers that run, each behind a feed of its own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from stepglass.errors import ConfigError
from stepglass.loggers.feed import LoggerFeed, close
from stepglass.loggers.packages import reason_of
from stepglass.loggers.tensorboard import TensorBoard
from stepglass.loggers.trackio import Trackio
from stepglass.loggers.wandb import Wandb

HINTS = {"wandb": "type `wandb login`, or set WANDB_MODE=offline to keep it on this machine"}


def start(
    names: list[str],
    run_dir: Path,
    project: str,
    run_name: str,
    config: dict[str, Any],
    log_interval: int,
) -> list[LoggerFeed]:
    """The loggers, each with its thread. What cannot be started is an error: nobody should find
    out after the run that nothing was sent.
    """
    opened: dict[str, Callable[[], Any]] = {
        "tensorboard": lambda: TensorBoard(run_dir / "tensorboard"),
        "wandb": lambda: Wandb(project, run_name, config, log_interval),
        "trackio": lambda: Trackio(project, run_name, config, log_interval),
    }
    feeds: list[LoggerFeed] = []
    for name in names:
        try:
            feeds.append(LoggerFeed(name, opened[name]()))
        except Exception as error:
            close(feeds, lambda line: None)
            hint = HINTS.get(name, "leave it out of --log_to")
            raise ConfigError(
                f"logging to {name}: cannot be started: {reason_of(error)}; {hint}"
            ) from error
    return feeds
