"""Cuts text into pieces that have the same tokens as the whole. Where a tokenizer allows a cut is
its own affair: `may_cut(text, place)` says so."""

from collections.abc import Callable, Iterator

PIECE_CHARS = 1 << 16  # small enough to use every core and little memory

MayCut = Callable[[str, int], bool]


def cut_text(text: str, may_cut: MayCut, size: int | None = None) -> Iterator[str]:
    """Pieces of at least `size` characters, but for the last; PIECE_CHARS if it is not given."""
    start = 0
    while start < len(text):
        end = min(start + (size or PIECE_CHARS), len(text))
        while end < len(text) and not may_cut(text, end):
            end += 1
        yield text[start:end]
        start = end


def last_cut(text: str, may_cut: MayCut) -> int:
    """The last place to cut a text that may continue later, or 0 if there is none."""
    return next((cut for cut in range(len(text) - 1, 0, -1) if may_cut(text, cut)), 0)
