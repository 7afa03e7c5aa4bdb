"""The settings of `stepglass serve`. Without torch, so that its help is fast."""

from dataclasses import dataclass

from stepglass.settings.schema import Settings, setting
from stepglass.web.access import ListenConfig


@dataclass(frozen=True, kw_only=True)
class ServeConfig(ListenConfig):
    """Settings of `serve`."""

    device: str = setting("auto", "auto, cpu, cuda, cuda:1, mps")


USAGE = """\
usage: stepglass serve [RUN] [--key=value ...]

Answers OpenAI's /v1/completions and /v1/chat/completions with the best model of a run. RUN is its
folder (out, if it is left out).
"""
SERVE_SETTINGS = Settings(ServeConfig)
