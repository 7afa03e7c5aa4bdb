"""Starts the loggers of the `log_to` setting, each with its own feed."""

from importlib import import_module
from pathlib import Path
from typing import Any

from stepglass.errors import ConfigError
from stepglass.loggers.feed import LoggerFeed, close_feeds
from stepglass.loggers.logger import LoggedRun, failure_text


def logger_module(name: str) -> Any:
    """The module of a logger in `log_to`. logger.py says what it must define."""
    return import_module(f"stepglass.loggers.{name}")


def check_packages(names: list[str]) -> None:
    """Raise ConfigError if the package of one of the loggers cannot be imported."""
    for name in names:
        logger_module(name).PACKAGE.load()


def start(
    names: list[str],
    run_dir: Path,
    project: str,
    run_name: str,
    config: dict[str, Any],
    log_interval: int,
) -> list[LoggerFeed]:
    """Start the loggers, each with its own thread. Raises ConfigError if one cannot be started, so
    that the user does not find out only after the run that nothing was sent.
    """
    run = LoggedRun(
        run_dir=run_dir, project=project, name=run_name, config=config, log_interval=log_interval
    )
    feeds: list[LoggerFeed] = []
    for name in names:
        module = logger_module(name)
        try:
            feeds.append(LoggerFeed(name, module.start(run)))
        except Exception as error:
            close_feeds(feeds, lambda line: None)
            raise ConfigError(
                f"logging to {name}: cannot be started: {failure_text(error)}; {module.HINT}"
            ) from error
    return feeds
