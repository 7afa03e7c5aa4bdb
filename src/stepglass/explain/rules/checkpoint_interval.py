"""Checkpoints take too much time, or a long run has none."""

import math

from stepglass.explain.finding import Change, Finding, nice
from stepglass.explain.rules.evaluation_cost import fits_run
from stepglass.explain.study import Part

SAVE_BUDGET = 0.01
MTBF_S = 24 * 3600.0  # assumed mean time between failures of a desktop
AN_HOUR_MS = 3.6e6


def find_checkpoint_interval(part: Part) -> list[Finding]:
    return _too_costly(part) or _none_at_all(part)


def _too_costly(part: Part) -> list[Finding]:
    share = part.time_share("checkpoint")
    total_ms, save_ms = part.phase_ms("checkpoint"), part.timing.save_ms
    if part.format.saves_in_background and part.segment.saves:
        save_ms = total_ms / part.segment.num_saves  # includes waits for the background writer
    if not save_ms or share is None or share <= SAVE_BUDGET or len(part.segment.saves) < 2:
        return []
    # Young's formula: at this interval, saving costs as much as the work lost in failures.
    wanted_ms = 1000 * math.sqrt(2 * save_ms / 1000 * MTBF_S)
    is_short = part.timing.ledger is not None and wanted_ms > part.timing.ledger.total_ms
    return [
        Finding(
            "checkpoint-interval",
            "established" if part.timing.split_by != "contrast" else "supported",
            "advice",
            {
                "save_ms": save_ms,
                "count": part.segment.num_saves,
                "total_ms": total_ms,
                "save_share": share,
                "wanted_ms": wanted_ms,
                "run": "short" if is_short else "long",
                "tied": "yes" if part.format.has_one_checkpoint else "no",
            },
            [s.line for s in part.segment.saves],
            [s.iter for s in part.segment.saves if s.iter is not None],
            _fewer_saves(part, save_ms) if part.format.has_one_checkpoint else {},
            cost_ms=total_ms,
        )
    ]


def _fewer_saves(part: Part, save_ms: float) -> Change:
    """The change for a trainer that saves when it evaluates."""
    if saves_worse_models(part):
        return {"always_save_checkpoint": False}
    if part.timing.normal_ms:
        wanted = nice(save_ms / part.timing.normal_ms * (1 - SAVE_BUDGET) / SAVE_BUDGET)
        if wanted > (part.timing.eval_interval or 0) and fits_run(part, wanted):
            return {"eval_interval": wanted}
    return {}


def saves_worse_models(part: Part) -> bool:
    """Was a checkpoint saved although the loss was not the best so far? Then nanoGPT's
    always_save_checkpoint is on, and turning it off saves time."""
    best = math.inf
    for evaluation in part.evals:
        val = evaluation.val
        if val is None:
            continue
        if evaluation.save_line is not None and val >= best:
            return True
        best = min(best, val)
    return False


def _none_at_all(part: Part) -> list[Finding]:
    segment = part.segment
    evaluated = any(e.iter > 0 for e in segment.evals)
    is_whole = segment.first_iter == 0 and evaluated  # an excerpt may lack the lines of checkpoints
    has_none = part.format.prints_saves and is_whole and not segment.saves
    # Even if the ledger covers steps alone, that much work is at risk.
    work_ms = part.timing.ledger.total_ms if part.timing.ledger else 0.0
    if not has_none or work_ms <= AN_HOUR_MS or part.has_ended:
        return []
    return [
        Finding(
            "checkpoint-interval",
            "established",
            "advice",
            {"risk_ms": work_ms},
            [segment.last_line] if segment.last_line else [],
            [segment.last_iter] if segment.last_iter is not None else [],
            variant="none",
            cost_ms=work_ms,
        )
    ]
