"""Slow iterations that no evaluation, checkpoint or warm-up explains."""

from stepglass.explain.finding import Finding
from stepglass.explain.rules.stall_pattern import is_worth_reporting, regular_spacing
from stepglass.explain.study import Part
from stepglass.explain.timing import number_of


def find_unexplained_stall(part: Part) -> list[Finding]:
    stalls = part.timing.spikes_of("unexplained")
    if not stalls or not part.timing.normal_ms or regular_spacing(stalls) is not None:
        return []
    stalls = [s for s in stalls if s.stall_ms > part.timing.normal_ms]
    total = sum(s.weight * s.stall_ms for s in stalls)
    if not is_worth_reporting(part, total):
        return []
    worst = max(stalls, key=lambda s: s.stall_ms)
    near = part.timing.eval_interval if worst.cause == "unexplained" else None
    return [
        Finding(
            "unexplained-stall",
            "established",
            "advice" if part.wall_ms and total > 0.02 * part.wall_ms else "note",
            {
                "count": number_of(stalls),
                "iter": worst.iter,
                "time_ms": worst.time_ms,
                "normal_ms": worst.time_ms - worst.stall_ms,
                "excess_ms": worst.stall_ms,
                "total_ms": total,
                "eval_interval": near,
            },
            [s.line for s in stalls],
            [s.iter for s in stalls],
            variant="grid" if near else "plain",
            cost_ms=total,
        )
    ]
