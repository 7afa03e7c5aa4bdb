"""One of several processes is slower than the others, and all of them wait for it."""

from stepglass.explain.finding import Finding
from stepglass.explain.study import Part

WORTH_ACTING = 0.02  # of the time


def find_straggler(part: Part) -> list[Finding]:
    found = part.straggler
    if found is None:
        return []
    total = part.timing.ledger.total_ms if part.timing.ledger else None
    share = min(1.0, found.cost_ms / total) if total else None
    return [
        Finding(
            "straggler",
            "established" if found.is_sure else "hypothesis",
            "advice" if (share or 0.0) >= WORTH_ACTING else "note",
            {
                "rank": found.rank,
                "slow_ms": found.slow_ms,
                "others_ms": found.others_ms,
                "slower_percent": 100 * (found.ratio - 1),
                "slow_records": found.num_slow,
                "records": len(found.ranks.lines),
                "first_iter": found.ranks.first_iter,
                "end_iter": found.ranks.iters[-1],
                "cost_ms": found.cost_ms,
                "cost_share": share,
            },
            found.ranks.lines,
            found.ranks.iters,
            variant="pair" if found.ranks.number == 2 else "plain",
            cost_ms=found.cost_ms,
        )
    ]
