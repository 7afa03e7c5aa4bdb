"""Conversations as the text that a model reads and writes, by the chat template of its tokenizer.

A template is a Jinja program that came with a model, so it runs in Jinja's sandbox, in a process of
its own. A tokenizer with an attribute `chat_template` has one. Data sets of conversations for a
model without one get a plain template of ours:

    <|user|>
    What is 2 + 2?
    <|assistant|>
    4<|endoftext|>

Tokenizers without an end of text, such as characters, have `<|end|>` there.
"""

from collections.abc import Mapping
from typing import TypedDict

from stepglass.data import confined_template, tokenizer
from stepglass.data.library_tokenizer import LibraryTokenizer
from stepglass.data.tokenizer import CharTokenizer, Tokenizer
from stepglass.errors import DataError

ROLES = ("system", "user", "assistant")
END_OF_ANSWER = "<|end|>"  # where the tokenizer has no end of text
MARKS = "".join(f"<|{role}|>\n" for role in ROLES) + END_OF_ANSWER  # of the plain template


class Message(TypedDict):
    """What somebody says in a conversation."""

    role: str
    content: str


Part = tuple[str, bool]  # a text, and whether an assistant says it


def plain_template(end: str) -> str:
    """A template with a line for each role. Answers end with the text `end`."""
    return (
        "{% for message in messages %}"
        "{{ '<|' + message['role'] + '|>\\n' + message['content'] }}"
        f"{{{{ ('{end}' if message['role'] == 'assistant' else '') + '\\n' }}}}"
        "{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}"
    )


def with_chat_template(codec: Tokenizer) -> Tokenizer:
    """The tokenizer, with the plain template if it has none of its own. Raises DataError if it
    cannot write that."""
    if getattr(codec, "chat_template", None):
        return codec
    if isinstance(codec, CharTokenizer):
        missing = sorted(set(MARKS) - codec.to_json()["chars"].keys())
        if missing:
            raise DataError(
                "the model has no chat template, and its characters lack "
                f"{', '.join(map(repr, missing[:8]))} of the plain one. Train a new model: prepare "
                "the conversations with --tokenizer=bpe, and leave out --init_from"
            )
    end = tokenizer.END_OF_TEXT if codec.end_of_text is not None else END_OF_ANSWER
    if isinstance(codec, LibraryTokenizer):
        end = str(codec.to_json().get("end_of_text") or END_OF_ANSWER)
    return tokenizer.of_template(codec, plain_template(end.replace("'", "\\'")))


def stop_strings(codec: Tokenizer) -> tuple[str, ...]:
    """The text at which an answer ends, if no token says so."""
    is_plain = codec.end_of_text is None and bool(getattr(codec, "chat_template", None))
    return (END_OF_ANSWER,) if is_plain else ()


def parts_of(messages: list[Message], codec: Tokenizer) -> list[Part]:
    """The text of a conversation, split where an answer begins and ends. An answer includes its
    end mark, but not the white space after it. Raises DataError if the template does not write
    answers where it asks for them."""
    template = str(getattr(codec, "chat_template", ""))
    special: Mapping[str, str] = getattr(codec, "special_tokens", {})
    parts: list[Part] = []
    done = ""

    def add(text: str, counts: bool) -> None:
        nonlocal done
        if not text.startswith(done):
            raise DataError(
                "the model's chat template writes answers otherwise than it asks for them, or "
                "changes earlier messages, so that answers cannot be told apart"
            )
        parts.append((text[len(done) :], counts))
        done = text

    for number, message in enumerate(messages):
        if message["role"] == "assistant":
            add(rendered(template, messages[:number], special), False)
            answered = rendered(template, messages[: number + 1], special, asks=False)
            add(answered.rstrip(), True)
    add(rendered(template, messages, special, asks=False), False)
    return parts


def rendered(
    template: str, messages: list[Message], special: Mapping[str, str], asks: bool = True
) -> str:
    """The text of a conversation; if it asks for an answer, up to where that begins. Raises
    DataError if the template refuses it, is broken, or takes too long."""
    names = {"messages": messages, "add_generation_prompt": asks, **special}
    return confined_template.PROCESS.text_of(template, names)
