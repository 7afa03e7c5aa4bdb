"""The text output: what the log is, where the time went, findings, and what it cannot show."""

import textwrap
from collections.abc import Iterator

import numpy as np

from stepglass.explain.finding import MOST_CITED, Finding
from stepglass.explain.render.languages import Words
from stepglass.explain.render.output import cannot_texts, error_text, text, title
from stepglass.explain.render.sparkline import sparkline
from stepglass.explain.study import Part, Study
from stepglass.units import printable

WIDTH = 96
MOST_PARTS = 6


def lines(study: Study, found: list[Finding], words: Words, name: str) -> Iterator[str]:
    """The whole explanation."""
    log = study.log
    share = log.num_understood / max(log.num_lines, 1)
    yield words.text(
        "log-is",
        name=printable(name),
        format=log.format.name,
        lines=log.num_lines,
        understood=log.num_understood,
        share=words.share(share),
    )
    if len(study.parts) > 1:
        yield words.text("log-segments", count=len(study.parts))
    shown = study.parts if len(study.parts) <= MOST_PARTS else [*study.parts[:3], study.parts[-1]]
    for part in shown:
        yield from _part(part, words, len(study.parts) > 1)
    yield ""
    yield words.text("findings-title")
    if not found:
        yield "  " + words.text("no-findings")
    for number, finding in enumerate(found, 1):
        yield from finding_lines(finding, words, number)
    cannot = cannot_texts(study, words)
    if cannot:
        yield ""
        yield words.text("cannot-title")
        for line in cannot:
            yield from _wrapped(line, "  - ", "    ")


def _part(part: Part, words: Words, has_title: bool) -> Iterator[str]:
    yield ""
    segment = part.segment
    if has_title and segment.first_iter is not None:
        yield words.text(
            "segment-title",
            number=str(part.number + 1),
            first=str(segment.first_iter),
            last=str(segment.last_iter),
        )
    if part.timing.normal_ms is not None:
        yield words.text("normal-is", normal_ms=part.timing.normal_ms)
    yield from _curves(part, words)
    if part.error is not None:
        yield words.text("ends-with", line=part.error.line, detail=error_text(part.error))
    yield from _ledger(part, words)


def _curves(part: Part, words: Words) -> Iterator[str]:
    _, losses, _ = part.losses
    times = part.timing.times[np.isfinite(part.timing.times)]
    rows = []
    if len(losses) > 2:
        ends = f"{words.loss(float(losses[0]))} → {words.loss(float(losses[-1]))}"
        rows.append((words.text("loss-row"), sparkline(losses), ends))
    if len(times) > 2:
        ends = f"{words.duration(float(times.min()))} - {words.duration(float(times.max()))}"
        rows.append((words.text("time-row"), sparkline(times, log=True), ends))
    width = max((len(row[0]) for row in rows), default=0)
    for label, curve, ends in rows:
        yield f"  {label:<{width}}  {curve}  {ends}"


def _ledger(part: Part, words: Words) -> Iterator[str]:
    ledger = part.timing.ledger
    if ledger is None:
        return
    yield ""
    yield f"{words.text('where-title')} ({words.text('basis-' + ledger.basis)})"
    rows = [
        (phase_name(words, phase), words.seconds(ms), words.share(ms / ledger.wall_ms))
        for phase, ms in sorted(ledger.phases.items(), key=lambda item: -item[1])
    ]
    total = (words.text("wall-clock"), words.seconds(ledger.wall_ms), words.share(1.0))
    widths = [max(len(row[n]) for row in [*rows, total]) for n in range(3)]
    for row in rows:
        yield f"  {row[0]:<{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:>{widths[2]}}"
    yield "  " + "-" * (sum(widths) + 4)
    yield f"  {total[0]:<{widths[0]}}  {total[1]:>{widths[1]}}  {total[2]:>{widths[2]}}"


def phase_name(words: Words, phase: str) -> str:
    key = "phase-" + phase.replace("+", "-")
    return words.text(key) if words.has(key) else phase


def finding_lines(finding: Finding, words: Words, number: int) -> Iterator[str]:
    """One finding: its title, its text, the lines that support it, and what to type."""
    yield ""
    yield from _wrapped(f"{number}. {printable(title(finding, words))}", "  ", "     ")
    yield from _wrapped(printable(text(finding, words)), "     ", "     ")
    grade = f"{words.text('level-' + finding.level)}, {words.text('status-' + finding.status)}"
    yield f"     [{grade}{cited(finding, words)}]"
    if finding.change:
        yield "     " + words.text("change-is", flags=change_flags(finding))


def cited(finding: Finding, words: Words) -> str:
    """The line numbers that support a finding, in short form."""
    if not finding.lines:
        return ""
    shown = ", ".join(str(line) for line in finding.lines[:6])
    if len(finding.lines) > 6:
        more = len(finding.lines) - 6
        is_all = len(finding.lines) < MOST_CITED
        shown = words.text("lines-more", lines=shown, more=more) if is_all else shown + ", …"
    return "; " + words.text("lines-cited", count=len(finding.lines), lines=shown)


def change_flags(finding: Finding) -> str:
    """A change as command-line flags.

    >>> change_flags(Finding("x", "established", "note", change={"dropout": 0.2, "compile": False}))
    '--dropout=0.2 --compile=False'
    """
    return " ".join(f"--{key}={value}" for key, value in finding.change.items())


def _wrapped(text: str, first: str, rest: str) -> list[str]:
    # textwrap breaks only at ASCII spaces, so a no-break space keeps a number with its unit.
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def top(found: list[Finding], words: Words, run: str, most: int = 3) -> list[str]:
    """The most important findings, for the end of a training run."""
    chosen = [f for f in found if f.level != "note"][:most]
    if not chosen:
        return []
    result = [words.text("top-findings", run=run)]
    for finding in chosen:
        change = f" ({change_flags(finding)})" if finding.change else ""
        result += _wrapped(f"- {title(finding, words)}{change}", "  ", "    ")
    return result
