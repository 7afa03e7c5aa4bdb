"""The first three lines of an explanation: is anything wrong, what does a step take, what to type.

Problem: overfitting since step 1750
A training step takes 168.0 ms.
Try: --max_iters=1750 --lr_decay_iters=1750
"""

from stepglass.explain.finding import Finding
from stepglass.explain.render.languages import Words
from stepglass.explain.render.ledger_table import clock_name
from stepglass.explain.render.output import error_text, title
from stepglass.explain.spent import states_whole_run
from stepglass.explain.study import Part, Study
from stepglass.units import finite, printable


def answer(study: Study, found: list[Finding], words: Words) -> list[str]:
    return [_verdict(study, found, words), _step(study, words), _advice(found, words)]


def _verdict(study: Study, found: list[Finding], words: Words) -> str:
    first = found[0] if found else None
    error = study.parts[-1].error if study.parts else None
    is_interrupted = error is not None and error.name == "interrupted"
    # Who has stopped a run knows it, and wants to know what could be better.
    says_more = first is not None and first.level in ("problem", "advice")[: 1 + is_interrupted]
    if error is not None and not says_more:
        key = "answer-interrupted" if is_interrupted else "answer-error"
        return words.text(key, line=error.line, detail=error_text(error))
    if first is None:
        return words.text("answer-fine")
    return words.text(f"answer-{first.level}", title=printable(title(first, words)))


def _step(study: Study, words: Words) -> str:
    timed = [part for part in study.parts if part.timing.normal_ms is not None]
    if timed:
        # Of several runs, the longest is the one that people mean.
        longest = max(timed, key=lambda part: part.timing.num_iters or 0)
        counts, normal_ms = longest.format.counts, longest.timing.normal_ms
        return words.text("answer-step", counts=counts, normal_ms=normal_ms)
    clocked = [part for part in study.parts if part.timing.mean_ms is not None]
    if clocked:
        return words.text(
            "answer-mean", mean_ms=clocked[-1].timing.mean_ms, clock=clock_name(clocked[-1], words)
        )
    means = [part.timing.lone_mean_ms for part in study.parts]
    if means and means[-1] is not None:
        counts = study.log.format.counts
        return words.text("answer-run-mean", counts=counts, mean_ms=means[-1])
    return _mean_of_the_run(study.parts, words) or words.text("answer-no-step")


def _mean_of_the_run(parts: list[Part], words: Words) -> str | None:
    """The mean over a whole run whose length is stated, everything included."""
    for part in reversed(parts):
        rate = finite(part.segment.end.get("steps_per_s"))
        if rate and states_whole_run(part.segment):
            return words.text("answer-run-mean", counts="steps", mean_ms=1000 / rate)
        first, last, wall_ms = part.segment.first_iter, part.segment.last_iter, part.wall_ms
        is_run = part.timing.ledger is not None and part.timing.ledger.covers == "run"
        if is_run and wall_ms and part.max_iters == last and first is not None and last:
            return words.text("answer-run-mean", counts="steps", mean_ms=wall_ms / last)
    return None


def _advice(found: list[Finding], words: Words) -> str:
    acting = [finding for finding in found if finding.level != "note"]
    for finding in acting or found[:1]:
        if finding.change:
            return words.text("change-is", flags=change_flags(finding))
    return words.text("answer-see" if acting else "answer-keep")


def change_flags(finding: Finding) -> str:
    """A change as command-line flags.

    >>> change_flags(Finding("x", "established", "note", change={"dropout": 0.2, "compile": False}))
    '--dropout=0.2 --compile=False'
    """
    return " ".join(f"--{key}={value}" for key, value in finding.change.items())
