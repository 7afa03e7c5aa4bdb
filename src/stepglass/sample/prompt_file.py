"""Prompts from a file, and the texts that go on from them as JSON lines."""

import json
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

from stepglass.data import sources
from stepglass.errors import ConfigError, DataError
from stepglass.sample.load import Sampler
from stepglass.sample.many import complete_all, wanted_text
from stepglass.settings.sample import SampleConfig
from stepglass.units import shown


def complete_file(
    loaded: Sampler, cfg: SampleConfig, stop: tuple[str, ...], should_stop: Callable[[], bool]
) -> None:
    """Write a line for each text: `{"prompt": ..., "text": ...}`, in the order of the prompts. All
    prompts are checked before the first line is written."""
    path = Path(cfg.prompts)
    prompts = [prompt for prompt in read_prompts(path) for _ in range(cfg.num_samples)]
    wanted = []
    for number, prompt in enumerate(prompts):
        try:
            wanted.append(wanted_text(loaded, prompt, cfg, stop, number))
        except DataError as error:
            raise DataError(f"{path}: prompt {shown(prompt)}: {error}") from error
    is_same = cfg.out != "-" and Path(cfg.out).exists() and path.samefile(cfg.out)
    if is_same:
        raise ConfigError(f"--out={cfg.out}: is the file with the prompts; choose another")
    with nullcontext(sys.stdout) if cfg.out == "-" else open(cfg.out, "w", encoding="utf-8") as out:
        for prompt, text in zip(prompts, complete_all(loaded, wanted), strict=True):
            out.write(json.dumps({"prompt": prompt, "text": text}, ensure_ascii=False) + "\n")
            out.flush()
            if should_stop():
                return


def read_prompts(path: Path) -> list[str]:
    """One prompt per line. A .jsonl file has a JSON text in each line, or an object with a
    `prompt`, so that prompts can have several lines."""
    text = sources.whole_text(sources.file_document(path))
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if not lines:
        raise DataError(f"{path}: expected a prompt in each line, found none")
    if path.suffix != ".jsonl":
        return [line.removesuffix("\r") for _, line in lines]
    return [_json_prompt(line, f"{path}: line {number}") for number, line in lines]


def _json_prompt(line: str, place: str) -> str:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        value = None
    prompt = value.get("prompt") if isinstance(value, dict) else value
    if not isinstance(prompt, str) or not prompt:
        raise DataError(f'{place}: expected {{"prompt": "..."}}, found {shown(line)}')
    return prompt
