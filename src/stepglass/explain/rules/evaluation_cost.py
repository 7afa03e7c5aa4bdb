"""What evaluations cost, and how to spend less time on them.

The share of the time comes from the ledger alone, so that the title, the text and the table of a
log show the same figure. If there is no ledger, or it covers training steps alone, there is none.
"""

from dataclasses import dataclass, field

from stepglass.explain.finding import Change, Level, Number, nice
from stepglass.explain.study import Part

EVAL_BUDGET = 0.05  # share of the time
LEAST_EVALS = 4  # a run should keep at least this many
LEAST_BATCHES = 10  # with fewer batches, the loss of an evaluation is mostly noise
SEEN_OFTEN = 3  # fewer evaluations do not show what they cost in a whole run


@dataclass(frozen=True)
class EvalCost:
    """What the evaluations of a part cost. They may include checkpoints."""

    share: float | None  # of the ledger's total
    lasting_share: float | None  # what it would be in a long run
    each_ms: float | None
    is_high: bool
    # What the change does: `interval` and `batches` reach the budget, `rarer` only comes closer.
    advice: str = "none"
    change: Change = field(default_factory=dict)


def eval_share(part: Part) -> float | None:
    """The share of the evaluations in the ledger, with checkpoints that cannot be separated."""
    return part.time_share("eval", "eval+checkpoint") or None


def evaluation_cost(part: Part) -> EvalCost:
    timing = part.timing
    each_ms = timing.boundary_ms or timing.eval_ms
    share, lasting = eval_share(part), _lasting_share(part, each_ms)
    shares = [s for s in (share, lasting) if s is not None]
    is_high = _is_seen_often(part) and bool(shares) and min(shares) > 1.05 * EVAL_BUDGET
    if not is_high:
        return EvalCost(share, lasting, each_ms, is_high)
    return EvalCost(share, lasting, each_ms, is_high, *_cheaper(part, each_ms, max(shares)))


def level_of(cost: EvalCost) -> Level:
    shares = [s for s in (cost.share, cost.lasting_share) if s is not None]
    is_hardly = bool(shares) and min(shares) - EVAL_BUDGET < 0.01
    return "advice" if cost.is_high and not is_hardly else "note"


def cost_numbers(part: Part, cost: EvalCost) -> dict[str, Number]:
    normal_ms, each_ms = part.timing.normal_ms, cost.each_ms
    wanted = cost.change.get("eval_interval", cost.change.get("eval_iters"))
    ledger = part.timing.ledger
    return {
        "cost": ("share" if cost.share is not None else "ratio") if cost.is_high else "low",
        "eval_share": cost.share,
        "covers": ledger.covers if ledger else "none",
        "each_ms": each_ms,
        "each_iters": max(1, round(each_ms / normal_ms)) if each_ms and normal_ms else None,
        "compared": _compared(part, each_ms),
        "interval": part.timing.eval_interval,
        "advice": cost.advice,
        "wanted": wanted,
    }


def _compared(part: Part, each_ms: float | None) -> str:
    """With what the text compares an evaluation. Without numbers, nobody knows how many steps lie
    between two of them."""
    if part.unit != "step":
        return part.unit
    return "yes" if each_ms and part.timing.normal_ms else "no"


def cost_of_excess(part: Part, cost: EvalCost) -> float:
    """The time beyond what evaluations should take."""
    if not cost.is_high or cost.share is None or part.timing.ledger is None:
        return 0.0
    return max(0.0, cost.share - EVAL_BUDGET) * part.timing.ledger.total_ms


def fits_run(part: Part, interval: float) -> bool:
    """Does a run with this eval_interval still evaluate a few times?"""
    length = part.max_iters or part.segment.last_iter  # planned, or as far as the log shows
    return length is not None and interval <= length / LEAST_EVALS


def _lasting_share(part: Part, each_ms: float | None) -> float | None:
    """The share in a long run. The ledger's is larger if a log begins and ends with evaluations."""
    interval, normal = part.timing.eval_interval, part.timing.normal_ms
    is_auto = part.setting("eval_interval") == "auto"  # the last interval is shorter
    if not each_ms or not interval or not normal or is_auto:
        return None
    return each_ms / (each_ms + interval * normal)


def _is_seen_often(part: Part) -> bool:
    """Are there enough evaluations to judge them? An excerpt may show just the slow lines."""
    segment, interval = part.segment, part.timing.eval_interval
    if segment.evals_ms:  # evaluations after the end of training do not come again and again
        last = segment.last_iter or 0
        timed = {e.iter for e in segment.evals if e.time_ms is not None and e.iter <= last}
        return len(timed) >= SEEN_OFTEN or (len(timed) == 2 and interval is not None)
    if segment.num_evals >= SEEN_OFTEN:
        return True
    is_spanned = interval is not None and (part.timing.num_iters or 0) >= 2 * interval
    return is_spanned or (segment.num_evals == 2 and interval is not None)


def _cheaper(part: Part, each_ms: float | None, share: float) -> tuple[str, Change]:
    """How evaluations can cost less without leaving the run almost none."""
    normal, now = part.timing.normal_ms, part.timing.eval_interval or 0
    wanted = nice(each_ms / normal * (1 - EVAL_BUDGET) / EVAL_BUDGET) if each_ms and normal else 0
    if wanted > now and fits_run(part, wanted):
        return "interval", {"eval_interval": wanted}
    batches = part.number_setting("eval_iters")
    is_alone = part.timing.eval_ms is not None or not part.timing.has_saves
    if batches and is_alone:
        fewer = nice(batches * EVAL_BUDGET * (1 - share) / (share * (1 - EVAL_BUDGET)))
        if LEAST_BATCHES <= fewer < batches:
            return "batches", {"eval_iters": fewer}
    rarest = nice((part.max_iters or 0) / LEAST_EVALS)
    if wanted > rarest >= 1.5 * now > 0:
        return "rarer", {"eval_interval": rarest}
    return "none", {}
