"""Unexplained slow iterations at regular intervals."""

from stepglass.explain.finding import Finding
from stepglass.explain.rules.stall_pattern import is_worth_reporting, regular_spacing
from stepglass.explain.study import Part
from stepglass.explain.timing import number_of
from stepglass.logs.table import median


def find_periodic_stall(part: Part) -> list[Finding]:
    stalls = part.timing.spikes_of("unexplained")
    spacing = regular_spacing(stalls)
    heights = [s.stall_ms for s in stalls]
    total = sum(s.weight * s.stall_ms for s in stalls)
    if spacing is None or not is_worth_reporting(part, total):
        return []
    collected = [e for e in part.segment.events if e.name == "gc"]
    return [
        Finding(
            "periodic-stall",
            "supported" if collected else "hypothesis",
            "advice" if part.wall_ms and total > 0.02 * part.wall_ms else "note",
            {
                "count": number_of(stalls),
                "every": spacing,
                "excess_ms": median(heights),
                "total_ms": total,
            },
            [s.line for s in stalls] + [e.line for e in collected],
            [s.iter for s in stalls],
            variant="gc" if collected else "plain",
            cost_ms=total,
        )
    ]
