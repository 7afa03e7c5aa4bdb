"""The settings of `stepglass sample`."""

import json
from dataclasses import dataclass
from typing import Literal

from stepglass.errors import ConfigError
from stepglass.settings.schema import Config, Settings, setting


@dataclass(frozen=True, kw_only=True)
class SampleConfig(Config):
    """All settings of `stepglass sample`."""

    out_dir: str = setting(
        "out",
        "the run directory, as nanoGPT names it; or give it as the first word",
        is_path=True,
    )
    prompt: str = setting("\n", "text to go on from; FILE:name reads it from a file")
    start: str = setting("", "nanoGPT's name for prompt")
    num_samples: int = setting(1, "how many texts", minimum=1)
    max_new_tokens: int = setting(500, "length of each text in tokens", minimum=1)
    temperature: float = setting(
        0.8, "below 1: safer, above 1: wilder, 0: always the likeliest", minimum=0
    )
    top_k: int = setting(200, "choose among this many likeliest tokens; 0: all", minimum=0)
    top_p: float = setting(
        1.0,
        "choose among the likeliest tokens that together have this probability",
        above=0,
        maximum=1,
    )
    stop: str = setting("", 'end a text before this; several: a JSON list such as ["A:","B:"]')
    interactive: bool = setting(
        False, "read prompts as you type; a model with a chat template answers them"
    )
    prompts: str = setting(
        "",
        "a file with a prompt per line (.jsonl: a JSON text or object); writes JSONL",
        is_path=True,
    )
    out: str = setting("-", "with --prompts: the file to write; -: standard output", is_path=True)
    seed: int = setting(1337, "same seed, same text", minimum=0, maximum=2**63 - 1)
    device: str = setting("auto", "auto, cpu, cuda, cuda:1, mps")
    init_from: Literal["resume"] = setting("resume", "taken from nanoGPT's command lines")
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = setting(
        "auto", "taken from nanoGPT's command lines; sampling is in float32"
    )
    compile: bool = setting(False, "taken from nanoGPT's command lines; nothing is compiled")

    def check(self) -> None:
        if self.start and self.prompt != "\n":
            raise ConfigError("--prompt and --start mean the same; keep one")
        if self.interactive and self.prompts:
            raise ConfigError("--interactive and --prompts do not go together: leave one out")
        self.stop_strings()

    def stop_strings(self) -> tuple[str, ...]:
        """The texts before which a sample ends.

        >>> SampleConfig(stop="END").stop_strings()
        ('END',)
        >>> SampleConfig(stop='["A:", "B:"]').stop_strings()
        ('A:', 'B:')
        """
        if not self.stop.startswith("["):
            return (self.stop,) if self.stop else ()
        try:
            texts = json.loads(self.stop)
        except ValueError:
            return (self.stop,)
        if not all(isinstance(text, str) for text in texts):
            raise ConfigError(f"--stop expects a text or a JSON list of texts, found {self.stop}")
        return tuple(texts)


USAGE = """\
usage: stepglass sample RUN [--key=value ...]

RUN is the folder of a run (out, if it is left out). Its best checkpoint writes the text.
"""
SAMPLE_SETTINGS = Settings(SampleConfig)
