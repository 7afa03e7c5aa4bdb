"""Where the time went, as a table that sums to the wall clock."""

from dataclasses import dataclass

from stepglass import units
from stepglass.measure.clock import PHASES, Lap

WHAT = {
    "warmup": "imports, model, compile, first batch",
    "data": "reading batches",
    "forward_backward": "the model, forwards and backwards",
    "optimizer": "clipping and the weight update",
    "eval": "evaluations",
    "checkpoint": "waiting for checkpoints",
    "log": "console and run log",
    "gc": "Python's garbage collector",
    "other": "claimed by no phase",
}


@dataclass(frozen=True)
class Row:
    """One phase of the ledger."""

    phase: str
    ms: float
    share: float


def rows(total: Lap) -> list[Row]:
    """Every phase in its fixed order, those that took no time included."""
    return [
        Row(
            name, total.phases.get(name, 0) / 1e6, total.phases.get(name, 0) / max(total.wall_ns, 1)
        )
        for name in PHASES
    ]


def as_record(total: Lap) -> dict[str, object]:
    """The ledger as it stands in the run log."""
    return {"wall_ms": total.wall_ms, "phases": {row.phase: row.ms for row in rows(total)}}


def table(total: Lap) -> list[str]:
    """The ledger as lines of text, `other` included, then the wall clock they add up to."""
    lines = [
        f"  {row.phase:<17}{units.seconds(row.ms):>12}{units.percent(row.share, 1):>8}   "
        f"{WHAT[row.phase]}"
        for row in rows(total)
        if row.ms > 0 or row.phase == "other"
    ]
    rule = "  " + "-" * 37
    return [
        *lines,
        rule,
        f"  {'wall clock':<17}{units.seconds(total.wall_ms):>12}{units.percent(1, 1):>8}",
    ]
