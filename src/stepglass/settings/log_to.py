"""The `log_to` setting: which services get the numbers of a run."""

import difflib

from stepglass.errors import ConfigError

LOGGERS = ("tensorboard", "wandb", "trackio")


def parse_log_to(log_to: str) -> list[str]:
    """The names in a `log_to` setting.

    >>> parse_log_to("wandb, tensorboard"), parse_log_to("")
    (['wandb', 'tensorboard'], [])
    """
    names = list(dict.fromkeys(name for part in log_to.split(",") if (name := part.strip())))
    for name in names:
        if name not in LOGGERS:
            close = difflib.get_close_matches(name.lower(), LOGGERS, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise ConfigError(f"log_to expects {', '.join(LOGGERS)}, found {name!r}{hint}")
    return names
