"""The printed time of an iteration includes the evaluation and checkpoint before it.

This is one finding with all that follows from it: which iterations are not slow, what the
evaluations cost, and that the last line, which people quote, may be such a line.
"""

from stepglass.explain.finding import Finding, Number
from stepglass.explain.rules.checkpoint_interval import saves_worse_models
from stepglass.explain.rules.citing import spike_lines, window_at
from stepglass.explain.rules.evaluation_cost import (
    cost_numbers,
    cost_of_excess,
    evaluation_cost,
    level_of,
)
from stepglass.explain.study import Part
from stepglass.explain.timing import Spike, number_of


def find_eval_inside_iteration(part: Part) -> list[Finding]:
    spikes = [s for s in part.timing.spikes_of("eval") if "warmup" not in s.cause]
    spikes = [s for s in spikes if not s.stall_ms] or spikes
    normal_ms = part.timing.normal_ms
    if not part.format.evaluates_inside_iteration or not spikes or not normal_ms:
        return []
    largest = max(spikes, key=lambda s: s.excess_ms)
    saves = [s for s in spikes if "checkpoint" in s.cause]
    is_split = part.timing.eval_ms is not None and part.timing.save_ms is not None
    cost = evaluation_cost(part)
    window = window_at(part, largest.line)
    is_inferred = part.timing.has_inferred_evals
    return [
        Finding(
            "eval-inside-iteration",
            "supported" if is_inferred else "established",
            level_of(cost),
            {
                "count": number_of(spikes),
                "iter": largest.iter,
                "time_ms": largest.time_ms * window,
                "window": window,
                "place": "window" if window > 1 else "one",
                "normal_ms": normal_ms,
                "excess_ms": largest.excess_ms,
                "times": largest.time_ms / normal_ms,
                "includes": "eval" if not saves else "split" if is_split else "together",
                "eval_ms": part.timing.eval_ms,
                "save_ms": part.timing.save_ms,
                "saves": number_of(saves),
                "saves_worse": "yes" if saves_worse_models(part) else "no",
                "evidence": "inferred" if is_inferred else "printed",
                **cost_numbers(part, cost),
                **_last_line(part),
            },
            spike_lines(part, spikes),
            [s.iter for s in spikes],
            cost.change,
            cost_ms=cost_of_excess(part, cost),
        )
    ]


def _last_line(part: Part) -> dict[str, Number]:
    """Does the log end with such a line? Its time and its MFU are not those of training."""
    last = [s for s in part.timing.spikes if s.line == part.segment.last_line]
    is_end = part.is_last and part.is_finished and part.segment.last_iter != 0
    if not is_end or not last or "eval" not in last[0].cause:
        return {"last": "no", "last_time_ms": None, "printed_mfu": None, "clean_mfu": None}
    spike: Spike = last[0]
    mfu = part.mfu
    has_mfu = mfu.is_replayed and mfu.clean is not None and mfu.printed_last is not None
    return {
        "last": "mfu" if has_mfu else "time",
        "last_time_ms": spike.time_ms,
        "printed_mfu": mfu.printed_last,
        "clean_mfu": mfu.clean if has_mfu else None,
    }
