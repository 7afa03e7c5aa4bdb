"""docs/config.md, written from the settings themselves.

python docs/config_page.py > docs/config.md
"""

import sys

from stepglass.advise.command import SETTINGS as ADVISE_SETTINGS
from stepglass.data.prepare import PREPARE_SETTINGS
from stepglass.explain.command import SETTINGS as EXPLAIN_SETTINGS
from stepglass.serve.serve_config import SERVE_SETTINGS
from stepglass.settings.sample import SAMPLE_SETTINGS
from stepglass.settings.schema import Settings
from stepglass.settings.train import TRAIN_SETTINGS

INTRO = """\
# Settings

This page is generated from the program. Settings are written `--key=value` on the command line
(`--batch-size 32` works too), `key = value` in a TOML file, or as in nanoGPT's `.py` files, which
are read and never run. Later ones win: defaults, then the recipe (or, when resuming, the run's own
settings), then config files in order, then flags.
"""


def page() -> str:
    """The whole page."""
    sections = {
        "stepglass train": TRAIN_SETTINGS,
        "stepglass prepare": PREPARE_SETTINGS,
        "stepglass sample": SAMPLE_SETTINGS,
        "stepglass serve": SERVE_SETTINGS,
        "stepglass explain": EXPLAIN_SETTINGS,
        "stepglass advise": ADVISE_SETTINGS,
    }
    return INTRO + "".join(_section(title, settings) for title, settings in sections.items())


def _section(title: str, settings: Settings) -> str:
    rows = [
        f"| `{name}` | `{default}` | {expected} | {help} |"
        for name, expected, default, help in settings.table()
    ]
    head = ["", f"## {title}", "", "| setting | default | expects | |", "|---|---|---|---|"]
    return "\n".join([*head, *rows, ""])


if __name__ == "__main__":
    sys.stdout.write(page())
