"""Unexplained slow iterations at regular intervals."""

from stepglass.explain.finding import Finding
from stepglass.explain.rules.period_cause import cause_of_period
from stepglass.explain.rules.stall_pattern import (
    is_below,
    is_worth_reporting,
    number_of_stalls,
    regular_spacing,
    stalls_of,
    total_of,
)
from stepglass.explain.study import Part
from stepglass.logs.table import median


def find_periodic_stall(part: Part) -> list[Finding]:
    stalls = stalls_of(part)
    spacing, total_ms = regular_spacing(stalls), total_of(stalls)
    if spacing is None or not is_worth_reporting(part, total_ms):
        return []
    excess_ms = median([s.stall_ms for s in stalls])
    cause = cause_of_period(part, stalls, spacing, excess_ms)
    normal_ms = part.timing.normal_ms
    return [
        Finding(
            "periodic-stall",
            cause.status,
            "note" if is_below(part, total_ms, 0.02) else "advice",
            {
                "count": number_of_stalls(stalls),
                "every": spacing,
                "period_ms": spacing * normal_ms + excess_ms if normal_ms else None,
                "excess_ms": excess_ms,
                "total_ms": total_ms,
            },
            [s.line for stall in stalls for s in stall.spikes] + cause.lines,
            [stall.iter for stall in stalls],
            variant=cause.variant,
            cost_ms=total_ms,
        )
    ]
