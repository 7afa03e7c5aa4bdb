"""Evaluations take too much of the time, in a log that times them apart from the iterations."""

from stepglass.explain.finding import Finding
from stepglass.explain.rules.citing import spike_lines
from stepglass.explain.rules.evaluation_cost import (
    cost_numbers,
    cost_of_excess,
    evaluation_cost,
    level_of,
)
from stepglass.explain.study import Part


def find_eval_too_expensive(part: Part) -> list[Finding]:
    if part.format.evaluates_inside_iteration:
        return []  # `eval-inside-iteration` says it
    cost = evaluation_cost(part)
    if not cost.is_high or cost.share is None:
        return []
    spikes = part.timing.spikes_of("eval")
    total_ms = part.phase_ms("eval", "eval+checkpoint")
    return [
        Finding(
            "eval-too-expensive",
            "supported" if part.timing.has_inferred_evals else "established",
            level_of(cost),
            {
                "count": part.segment.num_evals,
                "normal_ms": part.timing.normal_ms,
                "total_ms": total_ms or None,
                **cost_numbers(part, cost),
            },
            spike_lines(part, spikes) or [e.line for e in part.segment.evals],
            [e.iter for e in part.segment.evals],
            cost.change,
            variant="together" if part.phase_ms("eval+checkpoint") else "plain",
            cost_ms=cost_of_excess(part, cost) or total_ms,
        )
    ]
