"""`stepglass sample --interactive`: a person types, the model goes on.

A model with a chat template answers, and remembers the conversation. Another one goes on from
everything that was said before and the new line. `/new` forgets it all; Ctrl-C ends a text, and
Ctrl-D the whole.
"""

import sys
from typing import TextIO

from stepglass.data.chat_template import Message, stop_strings
from stepglass.data.marked_text import encode_text
from stepglass.errors import DataError
from stepglass.sample.chat import chat_ids, end_tokens, has_template
from stepglass.sample.completions import Completions, Wanted
from stepglass.sample.load import Sampler
from stepglass.sample.many import draw_of
from stepglass.settings.sample import SampleConfig
from stepglass.units import one_line, printable


def talk(loaded: Sampler, cfg: SampleConfig, stop: tuple[str, ...], typed: TextIO) -> None:
    """Answer each line that is typed, until there are no more."""
    if typed.isatty():
        sys.stderr.write("/new starts over, Ctrl-C ends a text, Ctrl-D ends\n")
    said: list[Message] = []
    num_texts = 0
    while True:
        if typed.isatty():
            sys.stderr.write("> ")
            sys.stderr.flush()
        line = typed.readline()
        if not line:
            return
        line = line.rstrip("\r\n")
        if line == "/new":
            said = []
            continue
        try:
            ids = _ids([*said, {"role": "user", "content": line}], loaded)
        except DataError as error:
            sys.stderr.write(one_line(f"error: {error}") + "\n")
            continue
        draw = draw_of(cfg, num_texts)
        stops = (*stop, *stop_strings(loaded.tokenizer))
        wanted = Wanted(ids, cfg.max_new_tokens, draw, stops, end_tokens(loaded.tokenizer))
        text = _write(loaded, wanted)
        said += [{"role": "user", "content": line}, {"role": "assistant", "content": text}]
        num_texts += 1


def _ids(said: list[Message], loaded: Sampler) -> list[int]:
    tokenizer = loaded.tokenizer
    if has_template(tokenizer):
        return chat_ids(said, tokenizer)
    text = "".join(
        message["content"] + ("\n" if message["role"] == "user" else "") for message in said
    )
    try:
        ids = encode_text(text, tokenizer)
    except DataError:  # a model may not know line ends
        ids = encode_text("".join(message["content"] for message in said), tokenizer)
    if not ids:
        raise DataError("expected at least one character, found none")
    return ids


def _write(loaded: Sampler, wanted: Wanted) -> str:
    """Write a text as it is generated, and return it. Ctrl-C ends it."""
    show = printable if sys.stdout.isatty() else str
    texts, parts = Completions(loaded.model, loaded.tokenizer), []
    try:
        texts.start(wanted)
        while len(texts):
            for _, text in texts.step():
                parts.append(text)
                sys.stdout.write(show(text))
            sys.stdout.flush()
    except KeyboardInterrupt:
        pass
    sys.stdout.write("\n")
    sys.stdout.flush()
    return "".join(parts)
