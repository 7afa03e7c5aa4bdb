"""Prints a run while it is in progress.

Plain lines are printed: nanoGPT's lines, so that tools for its log can read them, and more lines of
our own. On a terminal, they scroll above a progress bar (train/progress_bar.py).

This module turns records into text. It computes nothing that the run log does not have. The lines
that `explain` reads back are made in measure/console_lines.py.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TextIO

from stepglass import units
from stepglass.measure.clock import Lap
from stepglass.measure.console_lines import (
    evaluation_line,
    iteration_line,
    losses_line,
    saved_line,
)
from stepglass.measure.ledger import ledger_lines, ledger_rows
from stepglass.measure.records import Background, CheckpointRecord, EvalRecord, IterRecord
from stepglass.train.progress_bar import Moment, ProgressBar

if TYPE_CHECKING:
    from rich.console import Console as RichConsole

REFRESH_S = 0.25


class Console:
    """Prints a run: lines and, on a terminal, a bar below them."""

    def __init__(
        self, stream: TextIO | None = None, now: Callable[[], float] = time.perf_counter
    ) -> None:
        self._stream: TextIO | None = stream or sys.stdout  # None: it was closed meanwhile
        self._now = now  # seconds
        self._bar: ProgressBar | None = None
        self._above: RichConsole | None = None  # prints above the clock of `waiting`
        self._last_iter: Callable[[], int] = lambda: 0
        self._left_ms: Callable[[], float | None] = lambda: None
        self._best_val_loss: float | None = None
        # Since the bar was last drawn:
        self._drawn_at = 0.0
        self._unprinted: list[str] = []
        self._tokens, self._steps_ms = 0, 0.0

    def say(self, line: str) -> None:
        """Print a text as one line, even if it contains line ends or control characters."""
        line = units.one_line(line)
        try:
            if self._bar is not None:
                self._bar.print([*self._take_unprinted(), line])
            elif self._above is not None:
                self._above.print(line, soft_wrap=True)
            elif self._stream is not None:
                print(line, file=self._stream, flush=True)
        except OSError:
            self._fall_silent()

    def _take_unprinted(self) -> list[str]:
        lines, self._unprinted = self._unprinted, []
        return lines

    def _fall_silent(self) -> None:
        """Stop printing, because the output is closed. The run log still gets everything."""
        self._unprinted.clear()
        self.stop_progress()
        self._stream = None

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """Print what takes so long; on a terminal, with a clock that moves."""
        self.say(what)
        terminal = self._terminal()
        if terminal is None:
            yield
            return
        from rich.console import Console as RichConsole  # noqa: PLC0415
        from rich.progress import Progress, SpinnerColumn, TimeElapsedColumn  # noqa: PLC0415

        columns = (SpinnerColumn(), TimeElapsedColumn())
        console = RichConsole(file=terminal, emoji=False, markup=False, highlight=False)
        with Progress(*columns, console=console, transient=True, refresh_per_second=4) as progress:
            progress.add_task(what, total=None)
            self._above = console
            try:
                yield
            finally:
                self._above = None

    def _terminal(self) -> TextIO | None:
        """The output, if a bar can be drawn on it."""
        is_plain = os.environ.get("TERM") in ("dumb", "unknown")
        if self._stream is None or is_plain or not self._stream.isatty():
            return None
        return self._stream

    def start_progress(
        self,
        last_iter: Callable[[], int],
        left_ms: Callable[[], float | None],
        best_val_loss: float | None = None,
    ) -> None:
        """Start the progress bar, if the output is a terminal. `left_ms` says how long the rest of
        the run will take."""
        terminal = self._terminal()
        if terminal is not None:
            self._last_iter, self._left_ms = last_iter, left_ms
            self._best_val_loss = best_val_loss
            self._bar = ProgressBar(terminal)

    def stop_progress(self) -> None:
        bar, self._bar = self._bar, None
        if bar is not None:
            with suppress(OSError):  # the terminal may be gone
                if self._unprinted:
                    bar.print(self._take_unprinted())
                bar.stop()

    def iteration(
        self,
        record: IterRecord,
        step_ms: float,
        is_logged: bool,
        total: Lap,
        flops: float | None = None,
    ) -> None:
        """One training iteration. While there is a bar, the lines of iterations wait for the next
        drawing: a terminal takes far longer for a line than a file does."""
        line = iteration_line(record, step_ms, flops) if is_logged else None
        if self._bar is None:
            if line is not None:
                self.say(line)
            return
        if line is not None:
            self._unprinted.append(line)
        self._tokens += record.tokens or 0
        self._steps_ms += step_ms
        if self._now() - self._drawn_at >= REFRESH_S:
            try:
                self._draw(self._bar, record, total)
            except OSError:
                self._fall_silent()

    def _draw(self, bar: ProgressBar, record: IterRecord, total: Lap) -> None:
        speed = 1000 * self._tokens / self._steps_ms if self._steps_ms else None
        moment = Moment(
            done=record.iter + 1,
            last=self._last_iter(),
            spent_ms=total.wall_ms,
            left_ms=self._left_ms(),
            loss=record.loss,
            best_val_loss=self._best_val_loss,
            tokens_per_s=speed,
            phases=ledger_rows(total),
        )
        self._tokens, self._steps_ms = 0, 0.0
        bar.draw(moment, self._take_unprinted())
        self._drawn_at = self._now()

    def evaluation(self, record: EvalRecord) -> None:
        if self._best_val_loss is None or record.val_loss < self._best_val_loss:
            self._best_val_loss = record.val_loss
        self.say(losses_line(record))
        self.say(evaluation_line(record))

    def checkpoint(self, record: CheckpointRecord) -> None:
        self.say(saved_line(record))

    def ledger(self, total: Lap, background: Background) -> None:
        for line in ledger_lines(total, background):
            self.say(line)
