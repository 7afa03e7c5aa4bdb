"""Much of the time of a step is communication between the processes."""

from stepglass.explain.finding import Finding
from stepglass.explain.study import Part
from stepglass.explain.who_waits import FEWEST

MUCH = 0.2  # of the training steps


def find_communication(part: Part) -> list[Finding]:
    ranks, within = part.ranks, part.within_backward
    if ranks is None or not within:
        return []
    communication = within["communication"]
    share = communication / part.phase_ms("data", "forward_backward", "optimizer")
    if share <= MUCH or len(ranks.lines) < FEWEST:
        return []
    return [
        Finding(
            "communication",
            "established",
            "advice",
            {
                "processes": ranks.number,
                "communication_share": share,
                "update_ms": ranks.communication_ms,
                "compute_ms": float(ranks.mean(ranks.compute).mean()),
                "total_ms": communication,
                "accumulation": part.setting("gradient_accumulation_steps"),
            },
            ranks.lines,
            ranks.iters,
            cost_ms=communication,
        )
    ]
