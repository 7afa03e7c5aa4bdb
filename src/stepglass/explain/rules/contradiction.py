"""Numbers in a log that contradict each other."""

import numpy as np

from stepglass.explain.finding import Finding
from stepglass.explain.rules.gradient_norms import at_the_end, bad_norms
from stepglass.explain.study import Part
from stepglass.logs.table import median

MANY = 0.05  # gradient norms that are NaN, as a share of all


def find_contradiction(part: Part) -> list[Finding]:
    return [
        *_tokens_disagree(part),
        *_clock_disagrees(part),
        *_stated_rate_is_wrong(part),
        *_hidden_nan(part),
    ]


def _tokens_disagree(part: Part) -> list[Finding]:
    """Tokens per second times the time of a step must equal the tokens per step."""
    stated = part.fact("tokens_per_iter")
    rates, times = part.column("tok_s"), part.column("time_ms")
    known = np.flatnonzero(np.isfinite(rates) & np.isfinite(times) & (times > 0))
    if not stated or not len(known):
        return []
    implied = median(rates[known] * times[known] / 1000)
    if implied <= 0 or 0.8 < implied / stated < 1.25:
        return []
    row = known[-1]
    return [
        Finding(
            "contradiction",
            "established",
            "note",
            {
                "stated_tokens": stated,
                "implied_tokens": implied,
                "times": max(stated / implied, implied / stated),
                "printed_rate": float(rates[row]),
                "real_rate": stated / (float(times[row]) / 1000),
            },
            [int(part.column("line")[row]), *part.line_of_fact("tokens_per_iter")],
            [int(part.column("iter")[row])],
            variant="tokens",
        )
    ]


def _clock_disagrees(part: Part) -> list[Finding]:
    stamped, normal = part.timing.stamped_ms, part.timing.normal_ms
    if not stamped or not normal or 0.7 < stamped / normal < 1.4:
        return []
    return [
        Finding(
            "contradiction",
            "supported",
            "note",
            {"normal_ms": normal, "stamped_ms": stamped, "times": stamped / normal},
            [part.segment.first_line or 1, part.segment.last_line or 1],
            [part.segment.first_iter or 0, part.segment.last_iter or 0],
            variant="clock",
        )
    ]


def _stated_rate_is_wrong(part: Part) -> list[Finding]:
    end = part.segment.end
    rate, tokens, ms = end.get("stated_tok_s"), end.get("tokens"), end.get("train_ms")
    if not (rate and tokens and ms) or 0.8 < rate / (tokens / ms * 1000) < 1.25:
        return []
    return [
        Finding(
            "contradiction",
            "established",
            "note",
            {"printed_rate": rate, "real_rate": tokens / ms * 1000},
            [part.segment.end_line] if part.segment.end_line else [],
            variant="rate",
        )
    ]


def _hidden_nan(part: Part) -> list[Finding]:
    """The log shows an average instead of a NaN loss, but the gradient norm is NaN."""
    if not part.format.hides_nan_loss or part.segment.bad_norm_line is None:
        return []
    if part.segment.nan_line is not None:
        return []
    # Now and then, mixed precision skips an update whose gradient is infinite. That is no fault.
    count, num_at_end = part.segment.num_bad_norms, at_the_end(bad_norms(part))
    if num_at_end < 2 and count < max(3.0, MANY * len(part.segment.table)):
        return []
    return [
        Finding(
            "contradiction",
            "established",
            "problem",
            {"count": count},
            [part.segment.bad_norm_line],
            variant="hidden-nan",
        )
    ]
