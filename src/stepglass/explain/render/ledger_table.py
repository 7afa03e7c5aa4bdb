"""The table of where the time went, titled by what it covers."""

from collections.abc import Iterator

import numpy as np

from stepglass.explain.iteration_times import has_process_start, windows_of
from stepglass.explain.render.languages import Words
from stepglass.explain.render.wrap import wrapped
from stepglass.explain.study import Part
from stepglass.explain.timing import Ledger
from stepglass.explain.who_waits import HOLDER

WORTH_SAYING = 0.05  # of the row
LEAST_SHOWN_MS = 10.0  # less than the last digit


def time_table(part: Part, words: Words, width: int) -> Iterator[str]:
    ledger = part.timing.ledger
    if ledger is None:
        return
    yield ""
    title, about = words.text("where-title"), about_text(part, ledger, words)
    heading = words.text("page-labelled", label=title, text=about)
    yield from wrapped(heading, "", "  ", width)
    has_total = len(ledger.phases) > 1
    has_shares = has_total and ledger.covers != "steps"
    rows = []
    for phase, ms in sorted(ledger.phases.items(), key=lambda item: -item[1]):
        share = words.share(ms / ledger.total_ms) if has_shares else ""
        error = _error_text(ledger, phase, words)
        rows.append((phase_name(words, phase), words.seconds(ms), share, error))
        if phase == HOLDER:
            rows += _rows_within(part, ledger, words)
    whole = words.share(1.0) if has_shares else ""
    total = (total_name(ledger, words), words.seconds(ledger.total_ms), whole, "")
    shown = [*rows, total] if has_total else rows
    widths = [max(len(row[n]) for row in shown) for n in range(4)]
    lines = [
        f"  {name:<{widths[0]}}  {time:>{widths[1]}}  {share:>{widths[2]}}  {error}".rstrip()
        for name, time, share, error in shown
    ]
    yield from lines[: len(rows)]
    if has_total:
        yield "  " + "-" * (len(lines[-1]) - 2)
        yield lines[-1]


def _rows_within(part: Part, ledger: Ledger, words: Words) -> list[tuple[str, str, str, str]]:
    """What the row above includes, if several processes train together."""
    return [
        (f"  {within_name(words, name)}", words.seconds(ms), words.share(ms / ledger.total_ms), "")
        for name, ms in part.within_backward.items()
    ]


def within_name(words: Words, name: str) -> str:
    return words.text(f"within-{name}")


def _error_text(ledger: Ledger, phase: str, words: Words) -> str:
    """How far a row may be off, if that is worth mentioning."""
    error = ledger.errors.get(phase, 0.0)
    is_large = error > WORTH_SAYING * ledger.phases[phase] and error >= LEAST_SHOWN_MS
    return "± " + words.seconds(error) if is_large else ""


def about_text(part: Part, ledger: Ledger, words: Words) -> str:
    """What the ledger covers and how that is known."""
    return f"{covers_text(part, ledger, words)} ({basis_text(part, ledger, words)})"


def covers_text(part: Part, ledger: Ledger, words: Words) -> str:
    """Which part of the run the ledger covers."""
    segment = part.segment
    has_numbers = segment.has_iter_numbers and segment.first_iter is not None
    key = f"covers-{ledger.covers}"
    if ledger.covers != "run" and not has_numbers:
        key += "-unnumbered"
    last = segment.last_iter
    if ledger.basis == "clock" and segment.last_elapsed is not None:
        last = segment.last_elapsed.iter
    first = _first_iter(part, ledger)
    span = "one" if first == last else "many"
    return words.text(key, unit=part.unit, span=span, first=str(first), last=str(last))


def _first_iter(part: Part, ledger: Ledger) -> int:
    """The first iteration that the ledger covers."""
    segment, windows = part.segment, windows_of(part.segment)
    is_excerpt = not has_process_start(segment, is_first=True)
    if ledger.basis == "clock" and segment.first_elapsed is not None and is_excerpt:
        return segment.first_elapsed.iter + 1  # the time since that line
    if ledger.basis == "clock" and not is_excerpt:
        return min(1, segment.first_iter or 0)  # all the time since the start
    # A mean includes earlier iterations, but not if the first line has none.
    has_mean = len(windows) > 0 and bool(np.isfinite(part.timing.times[0]))
    before = round(windows[0]) - 1 if has_mean else 0
    return max(0, (segment.first_iter or 0) - before)


def basis_text(part: Part, ledger: Ledger, words: Words) -> str:
    """How the ledger's total is known."""
    if ledger.basis == "clock" and not part.format.elapsed_name:
        return words.text("basis-bar")
    if ledger.basis == "clock":
        return words.text("basis-clock", clock=clock_name(part, words))
    return words.text(f"basis-{ledger.basis}")


def clock_name(part: Part, words: Words) -> str:
    """What the log calls its own clock, and what that clock leaves out."""
    name = part.format.elapsed_name or words.text("clock-of-bar")
    left_out = [phase_name(words, phase) for phase in part.format.elapsed_excludes]
    if not left_out:
        return name
    return words.text("clock-without", clock=name, phases=", ".join(left_out))


def phase_name(words: Words, phase: str) -> str:
    key = "phase-" + phase.replace("+", "-")
    return words.text(key) if words.has(key) else phase


def total_name(ledger: Ledger, words: Words) -> str:
    """Only a clock gives the wall-clock time; a sum of printed times is called a total."""
    is_clock = ledger.basis in ("run-log", "wall-clock", "timestamps")
    return words.text("wall-clock" if is_clock and ledger.wall_ms else "total")
