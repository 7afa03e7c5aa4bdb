"""From a `log_to` setting to loggers that run, each behind a feed of its own."""

from importlib import import_module
from pathlib import Path
from typing import Any

from stepglass.errors import ConfigError
from stepglass.loggers.feed import LoggerFeed, close_feeds
from stepglass.loggers.logger import LoggedRun, failure_text


def logger_module(name: str) -> Any:
    """The module of a logger that `log_to` names; logger.py says what it has to hold."""
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
    """The loggers, each with its thread. What cannot be started is an error: nobody should find
    out after the run that nothing was sent.
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
