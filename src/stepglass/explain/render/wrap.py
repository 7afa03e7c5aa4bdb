"""Wraps sentences for a terminal or a file."""

import shutil
import textwrap

WIDEST = 96  # columns; longer lines are hard to read
NARROWEST = 40


def text_width() -> int:
    """The width for text: that of the terminal, within limits."""
    columns = shutil.get_terminal_size((WIDEST, 24)).columns
    return max(NARROWEST, min(WIDEST, columns))


def wrapped(text: str, first: str, rest: str, width: int) -> list[str]:
    # textwrap breaks only at ASCII spaces, so a no-break space keeps a number with its unit.
    return textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
