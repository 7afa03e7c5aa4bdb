"""What a request of OpenAI's API asks for, checked: from its JSON to the texts that are wanted.

What we cannot do is refused if leaving it out would change the answer (`tools`, `logprobs`). Other
fields that we do not know are ignored, because clients send many.
"""

import random
from dataclasses import dataclass
from typing import Any

from stepglass.data.chat_template import Message, stop_strings
from stepglass.data.marked_text import encode_text
from stepglass.data.tokenizer import Tokenizer
from stepglass.errors import DataError
from stepglass.models.decoding import Draw
from stepglass.sample.chat import chat_ids, end_tokens
from stepglass.sample.completions import Wanted
from stepglass.sample.text import new_line
from stepglass.units import shown

DEFAULT_TOKENS = 16  # of a completion, as OpenAI documents it
MOST_TOKENS = 1 << 16
MOST_TEXTS = 16  # of one request
MOST_STOPS = 16
MOST_SEED = 2**63 - 1
REFUSED = ("tools", "functions", "logprobs", "top_logprobs", "suffix", "logit_bias", "audio")


class BadRequest(Exception):
    """A request that cannot be answered. `param` names the field."""

    def __init__(self, param: str | None, message: str) -> None:
        super().__init__(message)
        self.param = param


@dataclass(frozen=True)
class Asked:
    """A request that can be answered."""

    wanted: list[Wanted]
    is_chat: bool
    is_streamed: bool
    has_usage: bool  # at the end of a stream
    echo: list[str]  # text to put before each answer

    @property
    def num_prompt_tokens(self) -> int:
        return sum(len(one.ids) for one in self.wanted)


def read_asked(body: Any, tokenizer: Tokenizer, is_chat: bool, block_size: int) -> Asked:
    """Check the JSON of a request. Raises BadRequest."""
    if not isinstance(body, dict):
        raise BadRequest(None, f"expected a JSON object, found {shown(body)}")
    for name in REFUSED:
        if body.get(name):
            raise BadRequest(name, f"{name} is not supported here; leave it out")
    num = _whole(body, "n", 1, 1, MOST_TEXTS)
    if body.get("best_of") not in (None, num):
        raise BadRequest("best_of", "best_of is not supported here; leave it out")
    length = _length(body, block_size if is_chat else DEFAULT_TOKENS)
    seed = _whole(body, "seed", random.getrandbits(48), -MOST_SEED, MOST_SEED)
    draw = Draw(
        temperature=_number(body, "temperature", 1.0, 0.0, 2.0),
        top_k=_whole(body, "top_k", 0, 0, 1 << 30),
        top_p=max(_number(body, "top_p", 1.0, 0.0, 1.0), 1e-9),
        seed=abs(seed),
    )
    stop = _stops(body) + (stop_strings(tokenizer) if is_chat else ())
    ends = end_tokens(tokenizer)
    try:
        prompts = [_chat_prompt(body, tokenizer)] if is_chat else _prompts(body, tokenizer)
    except DataError as error:
        raise BadRequest("messages" if is_chat else "prompt", str(error)) from error
    if len(prompts) * num > MOST_TEXTS:
        raise BadRequest("n", f"expected at most {MOST_TEXTS} texts, found {len(prompts) * num}")
    wanted = [
        Wanted(ids, length, _seeded(draw, number), stop, ends)
        for number, ids in enumerate(ids for ids in prompts for _ in range(num))
    ]
    options = body.get("stream_options")
    return Asked(
        wanted=wanted,
        is_chat=is_chat,
        is_streamed=_bool(body, "stream"),
        has_usage=isinstance(options, dict) and _bool(options, "include_usage"),
        echo=[tokenizer.decode(one.ids) if _bool(body, "echo") else "" for one in wanted],
    )


def _seeded(draw: Draw, number: int) -> Draw:
    return Draw(draw.temperature, draw.top_k, draw.top_p, (draw.seed + number) % MOST_SEED)


def _length(body: dict[str, Any], default: int) -> int:
    """`max_completion_tokens` is the newer name of `max_tokens`."""
    name = "max_completion_tokens" if body.get("max_completion_tokens") else "max_tokens"
    return _whole(body, name, default, 1, MOST_TOKENS)


def _whole(body: dict[str, Any], name: str, default: int, least: int, most: int) -> int:
    value = body.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        expected = f"a whole number from {least} to {most}"
        raise BadRequest(name, f"{name}: expected {expected}, found {shown(value)}")
    return value


def _number(body: dict[str, Any], name: str, default: float, least: float, most: float) -> float:
    value = body.get(name)
    if value is None:
        return default
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not least <= value <= most:
        expected = f"a number from {least:g} to {most:g}"
        raise BadRequest(name, f"{name}: expected {expected}, found {shown(value)}")
    return float(value)


def _bool(body: dict[str, Any], name: str) -> bool:
    value = body.get(name)
    if value is not None and not isinstance(value, bool):
        raise BadRequest(name, f"{name}: expected true or false, found {shown(value)}")
    return bool(value)


def _stops(body: dict[str, Any]) -> tuple[str, ...]:
    value = body.get("stop")
    texts = [value] if isinstance(value, str) else value or []
    if not _is_list_of(texts, str) or len(texts) > MOST_STOPS:
        expected = f"a text or at most {MOST_STOPS} of them"
        raise BadRequest("stop", f"stop: expected {expected}, found {shown(value)}")
    return tuple(texts)


def _prompts(body: dict[str, Any], tokenizer: Tokenizer) -> list[list[int]]:
    """One prompt or several, each as text or as tokens."""
    value = body.get("prompt")
    if value is None or isinstance(value, str):
        value = [value or ""]
    elif _is_list_of(value, int) and value:
        value = [value]
    if not isinstance(value, list) or not 0 < len(value) <= MOST_TEXTS:
        raise BadRequest("prompt", f"prompt: expected text, found {shown(value)}")
    return [_prompt_ids(one, tokenizer) for one in value]


def _prompt_ids(one: Any, tokenizer: Tokenizer) -> list[int]:
    if isinstance(one, str):
        return encode_text(one, tokenizer) or new_line(tokenizer)
    if _is_list_of(one, int) and one and all(0 <= token < tokenizer.vocab_size for token in one):
        return list(one)
    expected = f"text, or tokens from 0 to {tokenizer.vocab_size - 1}"
    raise BadRequest("prompt", f"prompt: expected {expected}, found {shown(one)}")


def _chat_prompt(body: dict[str, Any], tokenizer: Tokenizer) -> list[int]:
    value = body.get("messages")
    if not _is_list_of(value, dict) or not value:
        raise BadRequest("messages", f"messages: expected a list of them, found {shown(value)}")
    ids = chat_ids([_message(one) for one in value], tokenizer)
    return ids or new_line(tokenizer)


def _message(one: dict[str, Any]) -> Message:
    """A message. Its content is a text, or a list of parts that are texts."""
    role, content = one.get("role"), one.get("content", "")
    if (
        content
        and _is_list_of(content, dict)
        and all(part.get("type") == "text" for part in content)
    ):
        content = "".join(str(part.get("text", "")) for part in content)
    if not isinstance(role, str) or not isinstance(content, str) or "content" not in one:
        raise BadRequest("messages", "messages: expected a role and a text as content in each")
    return {"role": role, "content": content}


def _is_list_of(value: Any, kind: type) -> bool:
    return isinstance(value, list) and all(
        isinstance(item, kind) and not isinstance(item, bool) for item in value
    )
