"""What sets the pace of a run on a GPU, by the device's own clock."""

from stepglass.explain.finding import Finding
from stepglass.explain.study import Part
from stepglass.measure.pace_maker import pace_maker
from stepglass.measure.records import LedgerTotals
from stepglass.units import finite


def find_pace_setter(part: Part) -> list[Finding]:
    ledger = part.segment.end.get("ledger")
    if not isinstance(ledger, dict):
        return []
    totals = LedgerTotals.from_dict(ledger)
    behind, given = finite(totals.device_behind), totals.device_phases
    if behind is None or not isinstance(given, dict):
        return []
    phases = {str(name): ms for name, value in given.items() if (ms := finite(value)) is not None}
    if not phases:
        return []
    made_by = pace_maker(phases, behind)
    return [
        Finding(
            "pace-setter",
            "established",
            "note" if made_by == "gpu" else "advice",
            {"behind_share": behind, "ahead_share": 1 - behind},
            [part.segment.last_line or 1],
            change={"compile": True}
            if made_by == "python" and part.setting("compile") is False
            else {},
            variant=made_by,
        )
    ]
