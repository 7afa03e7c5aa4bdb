"""The progress bar of a run on a terminal, under the lines that scroll.

    ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━  420/833, 50%, 52s so far, 58s left
    loss 1.7506, best val 1.6828, 15.4k tokens/s
    forward_backward 78%  optimizer 13%  start-up 5%  eval 3%

`bar_rows` makes the text for any width. What is less important is left out on a narrow terminal.
`ProgressBar` draws it with rich, which keeps it below everything that is printed meanwhile.

A terminal that becomes narrower breaks the rows on the screen in two, and may tell the program
later, or in the middle of a drawing. So nothing here counts rows that were drawn before: the cursor
waits at the beginning of the first row, where it stays when rows are broken, and everything from
there on is erased. Rows are written with the terminal's own wrapping switched off, so that each
takes one line at any width.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from stepglass import units
from stepglass.measure.ledger import LedgerRow, shown_phase

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, ConsoleRenderable
    from rich.segment import Segment

WIDEST = 76  # columns of a row: longer bars are no easier to read
NARROWEST = 10  # columns of the bar itself
SMALL_SHARE = 0.005
LINE, ASCII_LINE = "━━", "#-"  # what is done, what is left
ERASE_BELOW = "\r\x1b[J"
NO_WRAP, WRAP = "\x1b[?7l", "\x1b[?7h"

Row = list[tuple[str, str]]  # pieces of text, each with its style


@dataclass(frozen=True)
class Moment:
    """What one drawing shows. Times are milliseconds; None is unknown."""

    done: int
    last: int
    spent_ms: float
    left_ms: float | None
    loss: float
    best_val_loss: float | None
    tokens_per_s: float | None
    phases: Sequence[LedgerRow]


def bar_rows(now: Moment, width: int, line: str = LINE) -> list[Row]:
    """The rows of the bar, each at most `width` columns wide."""
    facts = [
        f"loss {units.loss(now.loss)}",
        f"best val {units.loss(now.best_val_loss)}",
        f"{units.compact(now.tokens_per_s)} tokens/s",
    ]
    largest = sorted(now.phases, key=lambda row: -row.share)
    shares = [
        f"{shown_phase(row.phase)} {units.percent(row.share, 0)}"
        for row in largest
        if row.share >= SMALL_SHARE
    ]
    return [
        _bar(now, width, line),
        [(_fitting(facts, width, ", "), "")],
        [(_fitting(shares, width, "  "), "dim")],
    ]


def _bar(now: Moment, width: int, line: str) -> Row:
    share = min(1.0, now.done / max(now.last, 1))
    percent, left = units.percent(share, 0), f"{_clock(now.left_ms)} left"
    count = f"{now.done}/{now.last}"
    ways = (
        f"{count}, {percent}, {_clock(now.spent_ms)} so far, {left}",
        f"{count}, {percent}, {left}",
        f"{count}, {left}",
        left,
    )
    for text in ways:
        columns = width - len(text) - 2
        if columns >= NARROWEST:
            filled = int(columns * share)
            done, rest = line[0] * filled, line[1] * (columns - filled)
            return [(done, "green"), (rest, "dim"), (f"  {text}", "")]
    return [(_fitting([percent, left], width, ", "), "")]


def _fitting(parts: list[str], width: int, between: str) -> str:
    """As many of the parts, from the first one on, as the width allows."""
    for count in range(len(parts), 0, -1):
        text = between.join(parts[:count])
        if len(text) <= width:
            return text
    return ""


def _clock(ms: float | None) -> str:
    """A duration in whole seconds: tenths would only flicker."""
    return f"{ms / 1000:.0f}s" if ms is not None and ms < 59_500 else units.duration(ms)


# -- on the terminal ----------------------------------------------------------------------------


def terminal_size(stream: TextIO) -> tuple[int, int]:
    """Columns and rows of the terminal itself. `COLUMNS` would be wrong after it is resized."""
    try:
        columns, rows = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        columns, rows = 0, 0
    return columns or 80, rows or 24


class ProgressBar:
    """Draws the bar, and prints lines above it."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console  # noqa: PLC0415
        from rich.live import Live  # noqa: PLC0415

        self._stream = stream
        self._console = Console(file=stream, emoji=False, markup=False, highlight=False)
        self._moment: Moment | None = None
        self._live = Live(self, console=self._console, auto_refresh=False, transient=True)
        self._live.start()
        # This hook is called for everything that is printed, after Live's own.
        self._console.push_render_hook(self)  # type: ignore[arg-type]

    def draw(self, moment: Moment, lines: Sequence[str] = ()) -> None:
        """Draw the bar anew, with these lines above it."""
        self._moment = moment
        if lines:
            self.print(lines)
        else:
            self._live.refresh()

    def print(self, lines: Sequence[str]) -> None:
        """Print lines above the bar. The terminal wraps what is too long for it."""
        self._console.print("\n".join(lines), soft_wrap=True)

    def stop(self) -> None:
        """Remove the bar."""
        self._moment = None
        self._live.stop()

    # -- for rich -------------------------------------------------------------------------------

    def process_renderables(
        self, renderables: list["ConsoleRenderable"]
    ) -> list["ConsoleRenderable"]:
        """The first one is Live's own way back to the first row, which counts rows."""
        from rich.segment import Segments  # noqa: PLC0415

        self._console.size = terminal_size(self._stream)
        return [Segments([_control(ERASE_BELOW)]), *renderables[1:]]

    def __rich_console__(
        self, console: "Console", options: "ConsoleOptions"
    ) -> Iterator["Segment"]:
        from rich.segment import Segment  # noqa: PLC0415
        from rich.style import Style  # noqa: PLC0415

        rows: list[Row] = []
        if self._moment is not None:
            line = ASCII_LINE if options.ascii_only else LINE
            columns, height = options.size
            rows = bar_rows(self._moment, min(WIDEST, columns), line)[: max(1, height - 1)]
        yield _control(NO_WRAP)
        for number, row in enumerate(rows):
            if number:
                yield Segment.line()
            for text, style in row:
                yield Segment(text, Style.parse(style))
        back_up = f"\x1b[{len(rows) - 1}A" if len(rows) > 1 else ""
        yield _control(f"{WRAP}\r{back_up}")


def _control(codes: str) -> "Segment":
    """Codes for the terminal, which rich counts as no text."""
    from rich.segment import ControlType, Segment  # noqa: PLC0415

    return Segment(codes, None, [(ControlType.CARRIAGE_RETURN,)])
