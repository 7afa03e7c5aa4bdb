"""Checkpoints take too much time, or a long run has none."""

import math

from stepglass.explain.finding import Change, Finding, nice
from stepglass.explain.study import Part

SAVE_BUDGET = 0.01
MTBF_S = 24 * 3600.0  # assumed mean time between failures of a desktop
AN_HOUR_MS = 3.6e6


def find_checkpoint_interval(part: Part) -> list[Finding]:
    if not part.wall_ms:
        return []
    return _too_costly(part, part.wall_ms) or _none_at_all(part, part.wall_ms)


def _too_costly(part: Part, wall_ms: float) -> list[Finding]:
    total_ms, save_ms = part.phase_ms("checkpoint"), part.timing.save_ms
    if part.format.saves_in_background and part.segment.saves:
        save_ms = total_ms / part.segment.num_saves  # includes waits for the background writer
    if not save_ms or total_ms <= SAVE_BUDGET * wall_ms or len(part.segment.saves) < 2:
        return []
    # Young's formula: at this interval, saving costs as much as the work lost in failures.
    wanted_s = math.sqrt(2 * save_ms / 1000 * MTBF_S)
    return [
        Finding(
            "checkpoint-interval",
            "established" if part.timing.split_by != "contrast" else "supported",
            "advice",
            {
                "save_ms": save_ms,
                "count": part.segment.num_saves,
                "total_ms": total_ms,
                "save_share": total_ms / wall_ms,
                "wanted_ms": wanted_s * 1000,
            },
            [s.line for s in part.segment.saves],
            [s.iter for s in part.segment.saves if s.iter is not None],
            _fewer_saves(part, save_ms) if part.format.has_one_checkpoint else {},
            cost_ms=total_ms,
        )
    ]


def _fewer_saves(part: Part, save_ms: float) -> Change:
    """The change for a trainer that saves when it evaluates."""
    saves_all = part.setting("always_save_checkpoint") is not False
    evals = [e for e in part.segment.evals if e.iter > 0]
    if saves_all and len(evals) >= 2 and all(e.save_line for e in evals):
        return {"always_save_checkpoint": False}
    if part.timing.normal_ms:
        return {"eval_interval": nice(save_ms / part.timing.normal_ms * 99)}
    return {}


def _none_at_all(part: Part, wall_ms: float) -> list[Finding]:
    segment = part.segment
    evaluated = any(e.iter > 0 for e in segment.evals)
    is_whole = segment.first_iter == 0 and evaluated  # an excerpt may lack the lines of checkpoints
    has_none = part.format.prints_saves and is_whole and not segment.saves
    if not has_none or wall_ms <= AN_HOUR_MS or part.has_ended:
        return []
    return [
        Finding(
            "checkpoint-interval",
            "established",
            "advice",
            {"risk_ms": wall_ms},
            [segment.last_line] if segment.last_line else [],
            [segment.last_iter] if segment.last_iter is not None else [],
            variant="none",
            cost_ms=wall_ms,
        )
    ]
