"""Conversations as the text that a model was trained on, by the chat template of its tokenizer.

A template is a Jinja program that came with a model, so it runs in Jinja's sandbox. A tokenizer
with an attribute `chat_template` has one; `special_tokens` has the texts of `bos_token` and others.
A model without a template gets the messages as plain text, and goes on from there.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypedDict

from stepglass.data.tokenizer import Tokenizer
from stepglass.errors import DataError
from stepglass.sample.text import encode_text
from stepglass.units import one_line

LONGEST = 1 << 22  # characters that a template may write


class Message(TypedDict):
    """What somebody says in a conversation."""

    role: str
    content: str


def has_template(tokenizer: Tokenizer) -> bool:
    return bool(getattr(tokenizer, "chat_template", None))


def chat_ids(messages: list[Message], tokenizer: Tokenizer) -> list[int]:
    """The tokens of a conversation, up to the place where the model answers."""
    template: str | None = getattr(tokenizer, "chat_template", None)
    if not template:
        return encode_text("\n".join(message["content"] for message in messages), tokenizer)
    special: Mapping[str, str] = getattr(tokenizer, "special_tokens", {})
    return encode_text(rendered(template, messages, special), tokenizer)


def end_tokens(tokenizer: Tokenizer) -> frozenset[int]:
    """The tokens at which an answer ends."""
    ends: frozenset[int] | None = getattr(tokenizer, "end_tokens", None)
    if ends:
        return ends
    return frozenset(() if tokenizer.end_of_text is None else (tokenizer.end_of_text,))


def rendered(template: str, messages: list[Message], special: Mapping[str, str]) -> str:
    """The text of a conversation. Raises DataError if the template refuses it or is broken."""
    import jinja2  # noqa: PLC0415 - takes a moment, and most models have no template
    from jinja2.sandbox import ImmutableSandboxedEnvironment  # noqa: PLC0415

    def refuse(reason: Any) -> None:
        raise DataError(f"the chat template refuses this conversation: {one_line(str(reason))}")

    # These options and names are what templates of the transformers library are written for.
    world = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    world.globals["raise_exception"] = refuse
    world.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    try:
        parts, length = [], 0
        for part in world.from_string(template).generate(
            messages=messages, add_generation_prompt=True, **special
        ):
            parts.append(part)
            length += len(part)
            if length > LONGEST:
                raise DataError(f"the chat template writes more than {LONGEST:,} characters")
    except (jinja2.TemplateError, TypeError, ValueError, ArithmeticError) as error:
        reason = one_line(str(error))[:200]
        raise DataError(f"the model's chat template cannot be used: {reason}") from error
    return "".join(parts)
