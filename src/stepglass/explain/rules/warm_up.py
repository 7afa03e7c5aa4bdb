"""The first iterations are slow: compilation, memory, the first batch. Messages call this the
start-up, because "warm-up" is also a part of the learning-rate schedule."""

from stepglass.explain.finding import Change, Finding
from stepglass.explain.iteration_times import log_interval
from stepglass.explain.rules.citing import spike_lines, window_at
from stepglass.explain.study import Part
from stepglass.explain.timing import Spike

COMPILES_MS = 1000.0  # no model is compiled in less time
MOSTLY = 0.5  # of the time
LEAST_ITERS = 10  # a shorter start-up is not worth a finding


def find_warm_up(part: Part) -> list[Finding]:
    spikes, normal_ms = start_up_spikes(part), part.timing.normal_ms
    if not spikes or normal_ms is None:
        return []
    first = spikes[0]
    startup_ms = _start_up_ms(part, first)
    if first.excess_ms < min(COMPILES_MS, LEAST_ITERS * normal_ms):
        return []
    window = window_at(part, first.line)
    if startup_ms is not None and startup_ms < 0.5 * normal_ms:
        variant = "eval"  # the whole excess is the evaluation
    elif "eval" in first.cause:
        variant = "both" if startup_ms is not None else "together"
    else:
        variant = "window" if window > 1 else "plain" if first.iter <= 1 else "line"
        startup_ms = sum(s.excess_ms for s in spikes)
    if variant == "plain" and len(spikes) > 1:
        variant, window = "several", spikes[-1].iter - first.iter + 1
    # A first evaluation that no line prints is only inferred.
    is_inferred = "eval" in first.cause and part.timing.has_inferred_evals
    change: Change = {}
    is_compiled = part.setting("compile") is True and part.has_ended
    if is_compiled and startup_ms and part.wall_ms and startup_ms > 0.5 * part.wall_ms:
        change = {"compile": False}
    return [
        Finding(
            "warm-up",
            "supported" if is_inferred or variant in ("together", "line") else "established",
            "advice" if change else "note",
            {
                "iter": first.iter,
                "count": window,
                "time_ms": max(s.time_ms for s in spikes)
                if variant == "several"
                else first.time_ms,
                "normal_ms": normal_ms,
                "warmup_ms": startup_ms,
                "eval_ms": part.timing.eval_ms,
                "work": _work(part, first, startup_ms or first.excess_ms),
            },
            spike_lines(part, spikes),
            [s.iter for s in spikes],
            change,
            variant,
            cost_ms=startup_ms or 0.0,
        )
    ]


def start_up_spikes(part: Part) -> list[Spike]:
    """The slow lines at the start of the process. If a log prints means, the first is the mean of
    the first iterations, with the start-up among them."""
    spikes = part.timing.spikes_of("warmup")
    iters, first_iter = part.column("iter"), part.segment.first_iter
    step = log_interval(iters) if len(iters) > 2 else None
    if spikes or first_iter is None or not step or first_iter > step:
        return spikes
    lines = part.column("line")[:2]
    slow = [s for s in part.timing.spikes_of("unexplained") if s.line in lines]
    return slow if slow and slow[0].line == lines[0] else []


def _start_up_ms(part: Part, first: Spike) -> float | None:
    """The start-up in the first line, without its evaluation. None if they cannot be separated."""
    if "eval" not in first.cause:
        return first.excess_ms
    if part.timing.warmup_ms is None:
        return None
    return max(0.0, first.excess_ms - (part.timing.eval_ms or 0.0))


def _work(part: Part, first: Spike, startup_ms: float) -> str:
    """What the start-up may consist of."""
    waits = part.column("data_ms")[part.column("line") == first.line]
    if len(waits) and waits[0] > MOSTLY * first.time_ms:
        return "data"
    if startup_ms < COMPILES_MS or part.setting("compile") is False:
        return "first-use"
    return "compile" if part.setting("compile") is True else "any"
