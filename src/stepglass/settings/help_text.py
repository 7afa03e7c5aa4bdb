"""Lays out help for a terminal: paragraphs, and two columns of which the second explains the first.

--batch_size=12          sequences in a micro-batch
--gradient_accumulation_steps=40
                         micro-batches in one update
"""

import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from stepglass.settings.schema import Settings

WIDEST = 100  # columns; longer lines are hard to read
NARROWEST = 30
LEFT = 26  # columns of the left column; what is longer has a line of its own
INDENT = "  "

Pair = tuple[str, str]  # what to type, and what it means


def help_width() -> int:
    """The width for help: that of the terminal, within limits."""
    columns = shutil.get_terminal_size((WIDEST, 24)).columns
    return max(NARROWEST, min(WIDEST, columns))


def paragraph(text: str, width: int) -> list[str]:
    return list(_wrapped(text, width, ""))


def paragraphs(text: str, width: int) -> list[str]:
    """A text with its paragraphs wrapped anew. Lines that begin with a space have two columns."""
    lines: list[str] = []
    so_far = ""
    for line in (*text.splitlines(), ""):
        columns = re.fullmatch(r" +(\S.*?)(  +)(\S.*)", line)
        if line and not columns and not line.startswith("usage:"):
            so_far = f"{so_far} {line}".strip()
            continue
        lines += _wrapped(so_far, width, "")
        so_far = ""
        if columns:
            left, gap, right = columns.groups()
            lines += two_columns([(left, right)], width, len(left + gap))
        else:
            lines += _wrapped(line, width, "") if line else [""]
    return lines[:-1]


def two_columns(pairs: Iterable[Pair], width: int, left: int = LEFT) -> list[str]:
    """The pairs side by side. On a narrow terminal, the second is below the first."""
    is_narrow = width < 2 * left + 10
    lines: list[str] = []
    for what, meaning in pairs:
        lead = INDENT * 3 if is_narrow else INDENT + " " * left
        explained = list(_wrapped(meaning, width, lead))
        if not is_narrow and len(what) < left and explained:
            explained[0] = INDENT + what.ljust(left) + explained[0].lstrip()
            lines += explained
        else:
            lines += [*_wrapped(what, width, INDENT, INDENT * 3), *explained]
    return lines


def setting_pairs(
    settings: Settings, values: Mapping[str, Any] | None = None, names: Iterable[str] | None = None
) -> list[Pair]:
    """Every setting with its value, or with its default, and its help."""
    table = {name: (default, help) for name, _, default, help in settings.table()}
    chosen = {name: repr(value).strip("'") for name, value in (values or {}).items()}
    return [
        (f"--{name}={chosen.get(name, table[name][0])}", table[name][1])
        for name in (table if names is None else names)
    ]


def _wrapped(text: str, width: int, first: str, rest: str | None = None) -> Iterator[str]:
    import textwrap  # noqa: PLC0415

    yield from textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=first if rest is None else rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
