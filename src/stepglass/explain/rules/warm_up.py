"""The first iterations are slow: compilation, memory, the first batch."""

from stepglass.explain.finding import Change, Finding
from stepglass.explain.rules.citing import spike_lines
from stepglass.explain.study import Part


def find_warm_up(part: Part) -> list[Finding]:
    spikes = part.timing.spikes_of("warmup")
    if not spikes or part.timing.normal_ms is None:
        return []
    first = spikes[0]
    warmup_ms = part.timing.warmup_ms
    if warmup_ms is not None:  # of this line only: the next ones may be slow too
        evaluation = part.timing.eval_ms or 0.0 if "eval" in first.cause else 0.0
        warmup_ms = max(0.0, first.excess_ms - evaluation)
    if warmup_ms is not None and warmup_ms < 0.5 * part.timing.normal_ms:
        variant = "eval"  # the whole excess is the evaluation
    elif "eval" in first.cause:
        variant = "both" if warmup_ms is not None else "together"
    else:
        variant = "plain"
    change: Change = {}
    is_compiled = part.setting("compile") is True and part.has_ended
    if is_compiled and warmup_ms and part.wall_ms and warmup_ms > 0.5 * part.wall_ms:
        change = {"compile": False}
    return [
        Finding(
            "warm-up",
            "established" if variant != "together" else "supported",
            "advice" if change else "note",
            {
                "iter": first.iter,
                "time_ms": first.time_ms,
                "normal_ms": part.timing.normal_ms,
                "warmup_ms": warmup_ms,
                "eval_ms": part.timing.eval_ms,
            },
            spike_lines(part, spikes),
            [s.iter for s in spikes],
            change,
            variant,
            cost_ms=warmup_ms or 0.0,
        )
    ]
