"""nanoGPT's iteration time includes the evaluation and checkpoint before the iteration."""

from stepglass.explain.finding import Change, Finding
from stepglass.explain.rules.citing import spike_lines
from stepglass.explain.rules.evaluation_cost import EVAL_BUDGET, eval_share, wanted_interval
from stepglass.explain.study import Part
from stepglass.explain.timing import number_of


def find_eval_inside_iteration(part: Part) -> list[Finding]:
    spikes = [s for s in part.timing.spikes_of("eval") if "warmup" not in s.cause]
    spikes = [s for s in spikes if not s.stall_ms] or spikes
    if not part.format.evaluates_inside_iteration or not spikes or not part.timing.normal_ms:
        return []
    largest = max(spikes, key=lambda s: s.excess_ms)
    wanted, now = wanted_interval(part), part.timing.eval_interval
    share = eval_share(part)
    is_costly = share is not None and share > EVAL_BUDGET
    change: Change = {}
    fits = part.max_iters is None or (wanted or 0) <= part.max_iters / 1.5
    is_more = (wanted or 0) > (now or _default_interval())
    if wanted and fits and is_more and (is_costly or share is None):
        change = {"eval_interval": wanted}
    saves = [s for s in spikes if "checkpoint" in s.cause]
    is_split = part.timing.eval_ms is not None and part.timing.save_ms is not None
    return [
        Finding(
            "eval-inside-iteration",
            "supported" if part.timing.has_inferred_evals else "established",
            "note",
            {
                "count": number_of(spikes),
                "iter": largest.iter,
                "time_ms": largest.time_ms,
                "normal_ms": part.timing.normal_ms,
                "excess_ms": largest.excess_ms,
                "times": largest.time_ms / part.timing.normal_ms,
                "eval_ms": part.timing.eval_ms,
                "save_ms": part.timing.save_ms,
                "saves": number_of(saves),
            },
            spike_lines(part, spikes),
            [s.iter for s in spikes],
            change,
            variant="eval" if not saves else "split" if is_split else "together",
        )
    ]


def _default_interval() -> int:
    """nanoGPT's default interval. Advice must not go below it if the log shows no interval."""
    # Imported here because it loads all settings of `train`, and few logs need it.
    from stepglass.settings.nanogpt_defaults import NANOGPT  # noqa: PLC0415

    return int(NANOGPT["eval_interval"])
