"""Conversations as the tokens that a model goes on from. A model without a chat template gets the
messages as plain text."""

from collections.abc import Mapping

from stepglass.data.chat_template import Message, rendered
from stepglass.data.marked_text import encode_text
from stepglass.data.tokenizer import Tokenizer


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
