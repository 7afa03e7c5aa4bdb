"""Evaluations take too much of the run's time."""

from stepglass.explain.finding import Change, Finding, Level, nice
from stepglass.explain.rules.citing import spike_lines
from stepglass.explain.rules.evaluation_cost import EVAL_BUDGET, eval_share, wanted_interval
from stepglass.explain.study import Part


def find_eval_too_expensive(part: Part) -> list[Finding]:
    share = eval_share(part)
    if share is None or share <= 1.05 * EVAL_BUDGET:
        return []
    wanted = wanted_interval(part)
    now = part.timing.eval_interval
    num, eval_iters = part.segment.num_evals, part.number_setting("eval_iters")
    fewer = 0
    if eval_iters:
        fewer = nice(eval_iters * EVAL_BUDGET * (1 - share) / (share * (1 - EVAL_BUDGET)))
    change: Change = {}
    if wanted and part.max_iters and wanted > part.max_iters / 1.5:  # only one would remain
        if fewer >= 2:
            change = {"eval_iters": fewer}
        elif now is None or part.max_iters / 4 > now:
            change = {"eval_interval": nice(part.max_iters / 4)}
    elif wanted and (now is None or wanted > now):
        change = {"eval_interval": wanted}
    spikes = part.timing.spikes_of("eval")
    together = part.timing.eval_ms is None
    total = part.phase_ms("eval", "eval+checkpoint")
    level: Level = "note" if share - EVAL_BUDGET < 0.01 else "advice"
    return [
        Finding(
            "eval-too-expensive",
            "supported" if part.timing.has_inferred_evals else "established",
            level,
            {
                "eval_share": share,
                "count": num,
                "each_ms": part.timing.eval_ms if not together else part.timing.boundary_ms,
                "normal_ms": part.timing.normal_ms,
                "interval": now,
                "wanted": wanted,
                "fewer_iters": max(1, fewer) if fewer else None,
                "total_ms": total or None,
            },
            spike_lines(part, spikes) or [e.line for e in part.segment.evals],
            [e.iter for e in part.segment.evals],
            change,
            variant="together" if together and not part.format.times_evals_apart else "plain",
            cost_ms=max(total - EVAL_BUDGET * (part.wall_ms or 0.0), 0.0) or total,
        )
    ]
