"""Prints a run while it is in progress.

If the output is not a terminal, plain lines are printed: nanoGPT's lines, so that tools for its log
can read them, and more lines of our own. On a terminal, a progress bar with the time per phase
replaces the iteration lines. The remaining time includes evaluations and checkpoints, because it is
estimated from the wall clock.

This module turns records into text. It computes nothing that the run log does not have. The lines
that `explain` reads back are made in measure/console_lines.py.
"""

import os
import sys
import time
from collections.abc import Iterator
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

if TYPE_CHECKING:
    from rich.live import Live

REFRESH_S = 0.25
BAR_WIDTH = 60


class Console:
    """Prints a run: lines, or a bar on a terminal."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stdout
        self._live: Live | None = None
        self._last_refresh = 0.0
        self._first_iter = self._last_iter = 0
        self._started = 0.0

    def say(self, line: str) -> None:
        """Print a text as one line, even if it contains line ends or control characters."""
        line = units.one_line(line)
        try:
            if self._live is not None:
                self._live.console.print(line, markup=False, highlight=False, soft_wrap=True)
            else:
                print(line, file=self._stream, flush=True)
        except OSError:
            self._fall_silent()

    def _fall_silent(self) -> None:
        """Stop printing, because the output is closed. The run log still gets everything."""
        self.stop_progress()
        self._stream = open(os.devnull, "w")  # noqa: SIM115

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """Print what takes so long; on a terminal, with a clock that moves."""
        self.say(what)
        if not self._is_terminal():
            yield
            return
        from rich.console import Console as RichConsole  # noqa: PLC0415
        from rich.progress import Progress, SpinnerColumn, TimeElapsedColumn  # noqa: PLC0415

        columns = (SpinnerColumn(), TimeElapsedColumn())
        with Progress(
            *columns, console=RichConsole(file=self._stream), transient=True, refresh_per_second=4
        ) as progress:
            progress.add_task(what, total=None)
            yield

    def _is_terminal(self) -> bool:
        return self._stream.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")

    def start_progress(self, first_iter: int, max_iters: int) -> None:
        """Start the progress bar, if the output is a terminal."""
        self._first_iter, self._last_iter = first_iter, max_iters
        self._started = time.perf_counter()
        if self._is_terminal():
            from rich.console import Console as RichConsole  # noqa: PLC0415
            from rich.live import Live  # noqa: PLC0415

            self._live = Live(
                console=RichConsole(file=self._stream), auto_refresh=False, transient=True
            )
            self._live.start()

    def stop_progress(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            with suppress(OSError):  # the terminal may be gone
                live.stop()

    def iteration(
        self,
        record: IterRecord,
        step_ms: float,
        is_logged: bool,
        total: Lap,
    ) -> None:
        """One training iteration."""
        text = iteration_line(record, step_ms)
        if self._live is None:
            if is_logged:
                self.say(text)
        elif time.perf_counter() - self._last_refresh >= REFRESH_S:
            self._last_refresh = time.perf_counter()
            try:
                self._draw(record.iter + 1, text, total)
            except OSError:
                self._fall_silent()

    def _draw(self, done: int, text: str, total: Lap) -> None:
        from rich.console import Group  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        assert self._live is not None
        elapsed_ms = (time.perf_counter() - self._started) * 1000
        left_ms = elapsed_ms / (done - self._first_iter) * (self._last_iter - done)
        filled = BAR_WIDTH * done // max(self._last_iter, 1)
        shares = "  ".join(
            f"{row.phase} {units.percent(row.share, 1)}" for row in ledger_rows(total) if row.ms > 0
        )
        self._live.update(
            Group(
                Text.assemble(("━" * filled, "green"), ("━" * (BAR_WIDTH - filled), "dim")),
                Text(f"{text}   {done}/{self._last_iter}, {units.duration(left_ms)} left"),
                Text(f"{units.duration(total.wall_ms)}: {shares}", style="dim"),
            ),
            refresh=True,
        )

    def evaluation(self, record: EvalRecord) -> None:
        self.say(losses_line(record))
        self.say(evaluation_line(record))

    def checkpoint(self, record: CheckpointRecord) -> None:
        self.say(saved_line(record))

    def ledger(self, total: Lap, background: Background) -> None:
        for line in ledger_lines(total, background):
            self.say(line)
