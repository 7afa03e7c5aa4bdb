"""Splits the bytes of a log into lines, for any size, encoding or junk, in little memory.

    with open(path, "rb") as file:
        for block in line_blocks(file):  # bytes: whole lines, LF, UTF-8
            ...
    for text in line_pieces(line):       # str: as a terminal shows it, one piece per rewrite

A line ends with a newline. Progress bars rewrite a line with carriage returns: the pieces are read
one by one and share the line's number. A line longer than `LONGEST` is not a log line, so only its
start is kept.
"""

import codecs
import re
from collections.abc import Callable, Iterator
from typing import BinaryIO, Protocol

BLOCK = 1 << 22
LONGEST = 1 << 16
BOMS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}

ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\-_]"
    r"|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
)
# How `cat -v` and log collectors spell a carriage return and an escape.
SPELLED = ((b"^M", b"\r"), (b"#015", b"\r"), (b"^[[", b"\x1b["), (b"#033[", b"\x1b["))
LAUNCHER = re.compile(r"^\[\d+,[^\]]{1,60}\]<std(?:out|err)>:")  # of mpirun
QUOTES = re.compile(r"^(?:\s*>)+\s?")


class Readable(Protocol):
    """A file or pipe opened in binary mode."""

    def read(self, size: int, /) -> bytes | None: ...


def line_blocks(file: Readable | BinaryIO) -> Iterator[bytes]:
    """The file as blocks of whole lines. The last line may lack its newline."""
    head = file.read(BLOCK) or b""
    decode = _decoder(head)
    rest = b""
    data = head
    while data:
        rest += decode(data) if decode else data
        end = rest.rfind(b"\n") + 1
        if end:
            yield _unix(rest[:end])
            rest = rest[end:]
        elif len(rest) > BLOCK + LONGEST:
            end = rest.rfind(b"\r") + 1
            if end:  # a progress bar without a newline: treat its rewrites as lines
                yield rest[:end] + b"\n"
                rest = rest[end:]
            else:
                rest = rest[:LONGEST]  # an endless line: keep only its start
        data = file.read(BLOCK) or b""
    if rest:
        yield _unix(rest)


def _unix(block: bytes) -> bytes:
    return block.replace(b"\r\n", b"\n") if b"\r" in block else block


def _decoder(head: bytes) -> Callable[[bytes], bytes] | None:
    """A function that converts the log to UTF-8, or None if it is UTF-8 already. PowerShell's `>`
    writes UTF-16."""
    encoding = next((name for bom, name in BOMS.items() if head.startswith(bom)), None)
    if encoding is None:
        start = head[:4096]
        if start.count(0) < len(start) // 3 or not start:
            return None
        encoding = "utf-16-le" if start[1:2] == b"\0" else "utf-16-be"
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")

    def decode(data: bytes) -> bytes:
        return decoder.decode(data).replace("\ufeff", "").encode("utf-8", "replace")

    return decode


def line_pieces(line: bytes) -> list[str]:
    """The text of a line without colour codes and quote marks, one piece per rewrite."""
    if b"^" in line or b"#0" in line:
        for spelled, meant in SPELLED:
            line = line.replace(spelled, meant)
    parts = line.split(b"\r") if b"\r" in line else [line]
    return [clean(part[:LONGEST].decode("utf-8", "replace")) for part in parts]


def clean(text: str) -> str:
    """
    >>> clean("> \\x1b[32m[rank0]:\\x1b[0m step: 1\\0 ")
    '[rank0]: step: 1'
    """
    if not text.isprintable():
        text = ESCAPES.sub("", text)
    if "\xa0" in text:
        text = text.replace("\xa0", " ")  # web pages indent with it
    if "\\|" in text:
        text = text.replace("\\|", "|")  # Markdown writes bars in tables so
    if ">" in text[:8]:
        text = QUOTES.sub("", text)
    if "`" in (text[:1], text[-1:]) or text.endswith("` "):
        text = text.strip("` ")  # Markdown's mark for code
    if "]<std" in text:
        text = LAUNCHER.sub("", text)
    return text.strip()
