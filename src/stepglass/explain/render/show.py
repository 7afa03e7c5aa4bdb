"""The text output: the answer, findings, where the time went, and what the log cannot show."""

from collections.abc import Iterator

import numpy as np

from stepglass.explain.finding import MOST_CITED, Finding
from stepglass.explain.render.answer import answer, change_flags
from stepglass.explain.render.languages import Words
from stepglass.explain.render.ledger_table import time_table
from stepglass.explain.render.output import cannot_texts, error_text, text, title
from stepglass.explain.render.sparkline import sparkline
from stepglass.explain.render.wrap import WIDEST, wrapped
from stepglass.explain.study import Part, Study
from stepglass.logs.segment import Eval
from stepglass.units import printable

MOST_PARTS = 6
MOST_LIMITS = 2  # of what the log cannot show, unless all are asked for


def lines(
    study: Study,
    found: list[Finding],
    words: Words,
    name: str,
    width: int = WIDEST,
    shows_all: bool = False,
) -> Iterator[str]:
    """The whole explanation."""
    for line in answer(study, found, words):
        yield from wrapped(line, "", "  ", width)
    yield ""
    yield from _about(study, words, name, width)
    for number, finding in enumerate(found, 1):
        yield from finding_lines(finding, words, number, width, len(study.parts) > 1)
    is_short = len(study.parts) <= MOST_PARTS or shows_all
    for part in study.parts if is_short else [*study.parts[:3], study.parts[-1]]:
        yield from _part(part, words, len(study.parts) > 1, width)
    yield from _limits(study, words, width, shows_all)


def _about(study: Study, words: Words, name: str, width: int) -> Iterator[str]:
    """Which log this is, and how much of it was understood."""
    log = study.log
    about = words.text(
        "log-is",
        name=printable(name),
        format=log.format.name,
        lines=log.num_lines,
        understood=log.num_understood,
        share=words.share(log.num_understood / max(log.num_lines, 1)),
    )
    yield from wrapped(about, "", "  ", width)
    if len(study.parts) > 1:
        yield from wrapped(words.text("log-segments", count=len(study.parts)), "", "  ", width)
    columns = study.parts[-1].segment.facts.get("columns") if study.parts else None
    if isinstance(columns, dict):
        taken = ", ".join(f"{meaning} = {column}" for meaning, column in columns.items())
        said = words.text("columns-taken", columns=printable(taken))
        yield from wrapped(said, "", "  ", width)


def _part(part: Part, words: Words, has_title: bool, width: int) -> Iterator[str]:
    segment = part.segment
    rows = [*_curves(part, words, width), *_val_losses(part, words, width)]
    if has_title and segment.first_iter is not None:
        yield ""
        yield words.text(
            "segment-title",
            number=str(part.number + 1),
            unit=part.unit,
            span="one" if segment.first_iter == segment.last_iter else "many",
            first=str(segment.first_iter),
            last=str(segment.last_iter),
        )
    elif rows:
        yield ""
    yield from rows
    if part.error is not None:
        ending = words.text("ends-with", line=part.error.line, detail=error_text(part.error))
        yield from wrapped(ending, "  ", "    ", width)
    yield from time_table(part, words, width)


def _curves(part: Part, words: Words, width: int) -> Iterator[str]:
    _, losses, _ = part.losses
    times = part.timing.times[np.isfinite(part.timing.times)]
    rows = []
    if 1 <= len(losses) <= 2:  # too few for a curve
        yield f"  {words.text('loss-row')}  {' → '.join(words.loss(float(x)) for x in losses)}"
    elif len(losses):
        ends = f"{words.loss(float(losses[0]))} → {words.loss(float(losses[-1]))}"
        rows.append((words.text("loss-row"), losses, False, ends))
    if len(times) > 2:
        ends = f"{words.duration(float(times.min()))} - {words.duration(float(times.max()))}"
        rows.append((words.text("time-row"), times, True, ends))
    name_width = max((len(row[0]) for row in rows), default=0)
    room = width - name_width - 6 - max((len(row[3]) for row in rows), default=0)
    for label, values, is_log, ends in rows:
        curve = sparkline(values, log=is_log, width=max(8, min(60, room)))
        yield f"  {label:<{name_width}}  {curve}  {ends}"


def _val_losses(part: Part, words: Words, width: int) -> list[str]:
    best = part.best_eval
    if best is None:
        return []
    last = part.evals[-1]
    first_lines = part.column("line")[:1]

    def is_placed(evaluation: Eval) -> bool:
        """Does the log say when it was? Not if it has no number and precedes the first step."""
        return evaluation.has_number or bool((first_lines < evaluation.line).any())

    said = words.text(
        "val-losses",
        figure="bpb" if best.val_loss is None else "loss",
        which="only" if len(part.evals) == 1 else "best" if last is best else "both",
        best_loss=best.val,
        best_iter=str(best.iter) if is_placed(best) else "none",
        last_loss=last.val,
        last_iter=str(last.iter),
    )
    return wrapped(words.counted(said, part.unit), "  ", "    ", width)


def finding_lines(
    finding: Finding, words: Words, number: int, width: int = WIDEST, names_run: bool = False
) -> Iterator[str]:
    """One finding: its title, its text, the lines that support it, and what to type. Of several
    runs, it names the one that it is about: each has an iteration of the same number."""
    yield ""
    indent = "   " if number < 10 else "    "
    yield from wrapped(f"{number}. {printable(title(finding, words))}", "", indent, width)
    yield from wrapped(printable(text(finding, words)), indent, indent, width)
    run = words.text("grade-run", number=str(finding.part + 1)) + ", " if names_run else ""
    yield from wrapped(f"[{run}{graded(finding, words)}]", indent, indent, width)
    if finding.change:
        tried = words.text("change-is", flags=change_flags(finding))
        yield from wrapped(tried, indent, indent + "  ", width)


def graded(finding: Finding, words: Words) -> str:
    """How sure a finding is, and the numbers of the lines that support it."""
    level, status = words.text(f"level-{finding.level}"), words.text(f"status-{finding.status}")
    if not finding.lines:
        return words.text("grade-is", level=level, status=status)
    shown = ", ".join(str(line) for line in finding.lines[:6])
    if len(finding.lines) > 6:
        more = len(finding.lines) - 6
        is_all = len(finding.lines) < MOST_CITED
        shown = words.text("lines-more", lines=shown, more=more) if is_all else shown + ", …"
    cited = words.text("lines-cited", count=len(finding.lines), lines=shown)
    return words.text("grade-cites", level=level, status=status, cited=cited)


def _limits(study: Study, words: Words, width: int, shows_all: bool) -> Iterator[str]:
    """What the log cannot show."""
    cannot = cannot_texts(study, words)
    if not cannot:
        return
    shown = cannot if shows_all else cannot[:MOST_LIMITS]
    left = len(cannot) - len(shown)
    yield ""
    more = " " + words.text("cannot-more", count=left) if left else ""
    yield words.text("cannot-title") + more
    for line in shown:
        yield from wrapped(line, "  - ", "    ", width)


def top(found: list[Finding], words: Words, run: str, most: int = 3) -> list[str]:
    """The most important findings, for the end of a training run."""
    chosen = [f for f in found if f.level != "note"][:most]
    if not chosen:
        return []
    result = [words.text("top-findings", run=run)]
    for finding in chosen:
        change = f" ({change_flags(finding)})" if finding.change else ""
        result += wrapped(f"- {title(finding, words)}{change}", "  ", "    ", WIDEST)
    return result
