"""Candidate causes of stalls at regular intervals, by the evidence that the log has for each."""

from typing import NamedTuple

from stepglass.explain.finding import Status
from stepglass.explain.rules.stall_pattern import Stall, are_after_boundaries
from stepglass.explain.study import Part

SHARD_TOKENS = 100e6  # tokens in a file of FineWeb as llm.c and modded-nanogpt prepare it
COLLECTOR_MS = (10.0, 1000.0)  # a pass of Python's garbage collector takes about this long
PRECONDITIONERS = ("soap", "shampoo", "precondition")
FREQUENCIES = ("precondition_frequency", "precondition_every", "preconditioning_frequency")


class PeriodCause(NamedTuple):
    """The likeliest cause: a variant of the message, and how sure it is."""

    variant: str
    status: Status
    lines: list[int]


def cause_of_period(part: Part, stalls: list[Stall], spacing: int, excess_ms: float) -> PeriodCause:
    collected = [e.line for e in part.segment.events if e.name == "gc"]
    if collected:
        return PeriodCause("gc", "supported", collected)
    if are_after_boundaries(part, stalls):
        return PeriodCause("sync" if _leaves_out_evals(part) else "included", "supported", [])
    if any(part.number_setting(name) == spacing for name in FREQUENCIES):
        return PeriodCause("optimizer", "supported", [])
    if _mentions(part, PRECONDITIONERS):
        return PeriodCause("optimizer", "hypothesis", [])
    tokens = (part.tokens_per_iter or 0.0) * spacing
    if abs(tokens / SHARD_TOKENS - 1) < 0.02:
        return PeriodCause("shard", "supported", [])
    if _mentions(part, ("shard",)):
        return PeriodCause("shard", "hypothesis", [])
    is_short = COLLECTOR_MS[0] <= excess_ms <= COLLECTOR_MS[1]
    return PeriodCause("short" if is_short else "plain", "hypothesis", [])


def _leaves_out_evals(part: Part) -> bool:
    """Is the evaluation surely not part of the line after it?"""
    log_format, segment = part.format, part.segment
    is_timed = bool(segment.evals_ms or segment.saves_ms)
    return log_format.time_holds_eval or "eval" in log_format.elapsed_excludes or is_timed


def _mentions(part: Part, words: tuple[str, ...]) -> bool:
    """Does a setting, a fact or a message of the log contain one of these words?"""
    segment = part.segment
    texts = [f"{name} {value}" for name, value in segment.config.items()]
    texts += [f"{name} {value}" for name, value in segment.facts.items()]
    texts += [str(event.record.get("detail") or "") for event in segment.events]
    return any(word in text.lower() for text in texts for word in words)
