"""Conversations in JSONL files, a data set in which only what an assistant says counts.

    {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello!"}]}

Each line is a conversation. The last `val_fraction` of them is for validation.
"""

import hashlib
import re
from collections.abc import Iterator
from typing import Any

from stepglass import json_files
from stepglass.data import sources, tokenizer
from stepglass.data.chat_template import MARKS, ROLES, Message, parts_of
from stepglass.data.source_text import Progress, Scan
from stepglass.data.sources import Source
from stepglass.data.token_writer import TokenWriter
from stepglass.errors import DataError
from stepglass.units import one_line, shown

ENDING = ".jsonl"
LONGEST_LINE = 1 << 24  # characters
MOST_MESSAGES = 1000  # the template writes all that was said before each answer again
HALF_CHARACTER = re.compile("[\ud800-\udfff]")  # JSON can have it, UTF-8 cannot


def is_chat(words: list[str]) -> bool:
    """Whether the words of a command line name files of conversations."""
    return any(word.endswith(ENDING) for word in words)


class ChatText:
    """The conversations of a source, with the interface of `SourceText`."""

    has_mask = True

    def __init__(self, source: Source, progress: Progress) -> None:
        self._source = source
        self._progress = progress
        for document in source.documents:
            if not document.name.endswith(ENDING):
                raise DataError(
                    f"{document.name}: expected only files of conversations ({ENDING}) beside "
                    "others; prepare text as a data set of its own"
                )

    def conversations(
        self, doing: str, digest: "hashlib._Hash"
    ) -> Iterator[tuple[str, list[Message]]]:
        """Each conversation, with its place for messages."""
        done = 0

        def advance(num_bytes: int) -> None:
            nonlocal done
            done += num_bytes
            self._progress(doing, done, self._source.num_bytes)

        for document in self._source.documents:
            rest, number = "", 0
            for piece in sources.read_text(document, digest, advance):
                *lines, rest = (rest + piece).split("\n")
                if len(rest) > LONGEST_LINE:
                    raise DataError(
                        f"{document.name} line {number + len(lines) + 1}: expected a conversation "
                        f"of at most {LONGEST_LINE:,} characters, found more"
                    )
                for line in lines:
                    number += 1
                    if line.strip():
                        place = f"{document.name} line {number}"
                        yield place, messages_in(line, place)
            if rest.strip():
                place = f"{document.name} line {number + 1}"
                yield place, messages_in(rest, place)

    def scan(self) -> Scan:
        digest = hashlib.sha256()
        alphabet, num_chars, num_conversations = set(MARKS), 0, 0
        for _, messages in self.conversations("reading", digest):
            num_conversations += 1
            for message in messages:
                alphabet |= set(message["content"])
                num_chars += len(message["content"])
        return Scan(num_chars, alphabet, digest.hexdigest(), num_conversations)

    def check(self, scan: Scan, val_fraction: float) -> None:
        """Raise DataError if there are not enough conversations for two splits."""
        if scan.num_conversations < 2:
            name = self._source.documents[0].name
            found = "an empty file" if not self._source.num_bytes else scan.num_conversations
            raise DataError(
                f"{name}: expected at least 2 conversations, one for training and one for "
                f"validation, found {found}"
            )

    def report_learning(self) -> None:
        """Report progress after the text is read and before anything is written."""
        self._progress("learning", self._source.num_bytes, self._source.num_bytes)

    def sample(self, max_bytes: int) -> Iterator[str]:
        """What is said in conversations from all parts, about `max_bytes` in total at most."""
        every = -(-self._source.num_bytes // max_bytes)
        conversations = self.conversations("learning", hashlib.sha256())
        for number, (_, messages) in enumerate(conversations):
            if number % every == 0:
                for message in messages:
                    text = f"<|{message['role']}|>\n{message['content']}\n"
                    yield from tokenizer.safe_pieces(text)

    def encode(self, splits: dict[str, TokenWriter], scan: Scan, val_fraction: float) -> str:
        """Write the tokens of both splits and what counts, and return the sha256 of what was
        read."""
        digest = hashlib.sha256()
        num_train = max(1, int(scan.num_conversations * (1 - val_fraction)))
        for number, (place, messages) in enumerate(self.conversations("encoding", digest)):
            split = splits["train" if number < num_train else "val"]
            try:
                for text, counts in parts_of(messages, split.codec):
                    split.add_part(text, counts)
            except DataError as error:
                raise DataError(f"{place}: {error}") from error
            answers = (m["content"] for m in messages if m["role"] == "assistant")
            split.num_bytes += sum(len(answer.encode()) for answer in answers)
        return digest.hexdigest()


def messages_in(line: str, place: str) -> list[Message]:
    """The messages of a line. Raises DataError."""
    try:
        found = json_files.parse_json(line.encode())
    except ValueError as error:
        reason = one_line(str(error))[:100]
        raise DataError(f"{place}: expected a JSON object, found {shown(line)}: {reason}") from None
    messages = found.get("messages") if isinstance(found, dict) else None
    if not isinstance(messages, list):
        raise DataError(
            f'{place}: expected {{"messages": [...]}}, found {shown(found)}; to train on the lines '
            "as they are, name the file .txt"
        )
    if len(messages) > MOST_MESSAGES:
        raise DataError(
            f"{place}: expected at most {MOST_MESSAGES:,} messages in a conversation, found "
            f"{len(messages):,}; split it"
        )
    checked = [_message(one, f"{place} message {number}") for number, one in enumerate(messages, 1)]
    if not any(message["role"] == "assistant" for message in checked):
        raise DataError(f"{place}: expected a message of the assistant to learn from, found none")
    return checked


def _message(found: Any, place: str) -> Message:
    expected = f"role ({', '.join(ROLES)}) and content"
    if not isinstance(found, dict) or not {"role", "content"} <= found.keys():
        raise DataError(f"{place}: expected {expected}, found {shown(found)}")
    role, content = found["role"], found["content"]
    if role not in ROLES:
        raise DataError(f"{place}: expected the role {' or '.join(ROLES)}, found {shown(role)}")
    if not isinstance(content, str) or HALF_CHARACTER.search(content):
        raise DataError(f"{place}: expected text as content, found {shown(content)}")
    return {"role": role, "content": content}
