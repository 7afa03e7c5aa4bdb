"""What a person sees while a run goes on.

Plain lines, nanoGPT's and ours beside them, whenever the output is not a terminal: tools made for
nanoGPT's log read them. On a terminal the iteration lines become a progress bar with the ledger
beneath it; its remaining time counts evaluations and checkpoints in, because it is measured on
the wall clock.

Records come in, text goes out: nothing is computed here that the run log does not have.
"""

import os
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TextIO

from stepglass import units
from stepglass.measure import ledger
from stepglass.measure.clock import Lap

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
        """A line of its own, whatever is in it."""
        line = units.one_line(line)
        try:
            if self._live is not None:
                self._live.console.print(line, markup=False, highlight=False, soft_wrap=True)
            else:
                print(line, file=self._stream, flush=True)
        except OSError:
            self._fall_silent()

    def _fall_silent(self) -> None:
        """Whoever read along has left; the run log has everything."""
        self.stop_progress()
        self._stream = open(os.devnull, "w")  # noqa: SIM115

    def start_progress(self, first_iter: int, max_iters: int) -> None:
        """From here on there are iterations to show."""
        self._first_iter, self._last_iter = first_iter, max_iters
        self._started = time.perf_counter()
        if self._stream.isatty() and os.environ.get("TERM") not in ("dumb", "unknown"):
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
        self, record: dict[str, Any], step_ms: float, is_logged: bool, total: Lap
    ) -> None:
        """One training iteration."""
        text = (
            f"iter {record['iter']}: loss {units.loss(record['loss'])}, "
            f"time {units.milliseconds(step_ms)}, mfu {units.percent(record['mfu'])}"
        )
        if self._live is None:
            if is_logged:
                self.say(text)
        elif time.perf_counter() - self._last_refresh >= REFRESH_S:
            self._last_refresh = time.perf_counter()
            try:
                self._draw(record["iter"] + 1, text, total)
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
            f"{row.phase} {units.percent(row.share, 1)}" for row in ledger.rows(total) if row.ms > 0
        )
        self._live.update(
            Group(
                Text.assemble(("━" * filled, "green"), ("━" * (BAR_WIDTH - filled), "dim")),
                Text(f"{text}   {done}/{self._last_iter}, {units.duration(left_ms)} left"),
                Text(f"{units.duration(total.wall_ms)}: {shares}", style="dim"),
            ),
            refresh=True,
        )

    def evaluation(self, record: dict[str, Any]) -> None:
        """nanoGPT's line, and what it hides: what the evaluation cost and how sure it is."""
        step, val = record["iter"], units.loss(record["val_loss"])
        self.say(f"step {step}: train loss {units.loss(record['train_loss'])}, val loss {val}")
        self.say(
            f"eval {step}: {units.duration(record['wall_ms'])}, val loss {val} ± "
            f"{units.loss(record['val_se'])} "
            f"({record['windows']} windows)"
        )

    def checkpoint(self, record: dict[str, Any]) -> None:
        best = ", the best so far" if record["is_best"] else ""
        background = f", written in background {units.duration(record['background_ms'])}"
        self.say(
            f"checkpoint {record['iter']}: stalled {units.duration(record['stall_ms'])}"
            f"{background if record['background_ms'] else ''}, {units.size(record['bytes'])}{best}"
        )

    def ledger(self, total: Lap, beside: dict[str, Any]) -> None:
        self.say("where the time went:")
        for line in ledger.table(total):
            self.say(line)
        failed = f", {beside['failed_saves']} failed" if beside["failed_saves"] else ""
        if beside["saves"] or failed:
            self.say(
                f"  beside it, in the background: "
                f"{units.duration(beside['checkpoint_writer_ms'])} of writing checkpoints "
                f"({beside['saves']} saved{failed})"
            )
