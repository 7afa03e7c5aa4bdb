"""Evaluations and checkpoints: how often, so that they take little of the time."""

import bisect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from stepglass.advise.case import Basis, Case, Reason
from stepglass.advise.length import run_ms
from stepglass.explain.rules.evaluation_cost import LEAST_BATCHES, LEAST_EVALS
from stepglass.measure.time_model import evaluation_in_updates, save_wait_ms

# An evaluation gets fewer batches, down to these, before a run gets fewer evaluations than these:
# they show when the validation loss turns, which a few of many batches each would miss.
ENOUGH_EVALS, ENOUGH_BATCHES = 20, 20
MOST_EVALS = 200  # in a run: each may be a new best, which is saved. But if updates are slow,
OFTEN_MS = 30 * 60_000.0  # nobody wants to wait longer than this for a validation loss
STATE_BYTES = 12.0  # per parameter: the weight and AdamW's two moments, all float32
AT_RISK_SHARE = 0.01  # of a run: what a crash may lose, within these limits
LEAST_AT_RISK_MIN, MOST_AT_RISK_MIN = 2, 15


@dataclass(frozen=True)
class Pauses:
    """Settings for evaluations or for checkpoints, and what they cost."""

    settings: dict[str, Any]
    reasons: tuple[Reason, ...]
    share: float | None = None  # of the time
    total_ms: float = 0.0


def choose_evaluations(case: Case, batch: int, accumulation: int, iter_ms: float | None) -> Pauses:
    """`eval_interval` and `eval_iters` within the budget.

    The cost is counted in updates: an evaluation reads so many tokens forwards, an update so many
    in both directions. So the time of an update need not be known."""
    cfg = case.subject.cfg
    if not case.has_length:  # `train` decides it, when it has timed an update
        return Pauses({"eval_interval": cfg.eval_interval, "eval_iters": cfg.eval_iters}, ())
    budget, length = cfg.eval_budget, max(1, cfg.max_iters)
    eval_iters = cfg.eval_iters
    if "eval_iters" not in case.subject.fixed:
        eval_iters = max(1, round(cfg.eval_iters * cfg.batch_size / batch))  # as many windows

    def cost_of(batches: int) -> float:
        return _cost_in_updates(case, batches * batch, batch * accumulation, iter_ms)[0]

    allowed = budget / (1 - budget)  # of the updates between two evaluations
    if not case.subject.fixed & {"eval_iters", "eval_interval"}:
        most = allowed * (length // ENOUGH_EVALS)
        eval_iters = _fewer(eval_iters, most, ENOUGH_BATCHES, cost_of)
    cost, basis = _cost_in_updates(case, eval_iters * batch, batch * accumulation, iter_ms)
    rarely = (
        length / MOST_EVALS if iter_ms is None else min(length / MOST_EVALS, OFTEN_MS / iter_ms)
    )
    interval = _round_up(max(cost / allowed, rarely))
    if cfg.eval_interval != "auto" and "eval_interval" in case.subject.fixed:
        interval, variant = int(cfg.eval_interval), "asked"
    elif cfg.eval_interval != "auto" and interval <= int(cfg.eval_interval) <= length:
        interval, variant = int(cfg.eval_interval), "budget"  # it is cheap enough
    elif interval > length // LEAST_EVALS:
        interval, variant = max(1, length // LEAST_EVALS), "short"
        if "eval_iters" not in case.subject.fixed:
            eval_iters = _fewer(eval_iters, allowed * interval, LEAST_BATCHES, cost_of)
            cost = cost_of(eval_iters)
    else:
        variant = "budget"
    share = cost / (cost + interval)
    each_ms = None if iter_ms is None else cost * iter_ms
    has_time = "no" if iter_ms is None else "yes"
    windows = eval_iters * batch
    numbers = {"each_ms": each_ms, "has_time": has_time, "eval_share": share, "cost": cost}
    return Pauses(
        {"eval_interval": interval, "eval_iters": eval_iters},
        (
            Reason("eval_interval", basis, variant=variant, interval=interval,
                   budget_share=budget, **numbers),
            Reason("eval_iters", "calculated", windows=windows, eval_iters=eval_iters, batch=batch,
                   variant="same" if windows == cfg.eval_iters * cfg.batch_size else "other"),
        ),
        share,
        0.0 if each_ms is None else each_ms * (length // interval),
    )  # fmt: skip


def _fewer(batches: int, most: float, least: int, cost_of: Callable[[int], float]) -> int:
    """As many batches in an evaluation as cost no more than `most`, but at least `least`.

    >>> _fewer(200, 50, 20, lambda n: n / 2), _fewer(200, 5, 20, lambda n: n / 2)
    (100, 20)
    """
    choices = range(min(least, batches), batches + 1)
    return choices[max(0, bisect.bisect_right(choices, most, key=cost_of) - 1)]


def _cost_in_updates(
    case: Case, windows: int, sequences: int, iter_ms: float | None
) -> tuple[float, Basis]:
    """The time of an evaluation of both splits, in updates."""
    ran = case.subject.measured
    if ran is not None and ran.eval_ms and iter_ms:
        before = ran.cfg.eval_iters * ran.cfg.batch_size
        return max(1e-6, ran.eval_ms * windows / before / iter_ms), "measured"
    block, data = case.subject.cfg.block_size, case.subject.data
    if case.trainer == "nanogpt":  # random windows, which may repeat
        # by one process, for which the others wait
        return evaluation_in_updates(2 * windows, sequences / case.devices), "estimated"
    sizes = [data.train_tokens, data.val_tokens]
    read = [windows if each is None else min(windows, max(1, each // block)) for each in sizes]
    return evaluation_in_updates(sum(read), sequences), "estimated"


def choose_saves(case: Case, iter_ms: float | None, evaluations: Pauses) -> Pauses:
    """`checkpoint_interval`. nanoGPT has none: it saves after evaluations, and waits."""
    cfg = case.subject.cfg
    state_bytes = STATE_BYTES * case.subject.shape.num_params()
    wait_ms = save_wait_ms(state_bytes, in_background=case.trainer == "stepglass")
    whole_ms = run_ms(case, iter_ms)
    values = {"state_bytes": state_bytes, "wait_ms": wait_ms}
    if case.trainer == "nanogpt":
        every = evaluations.settings["eval_interval"]
        reason = Reason("checkpoint_interval", "estimated", variant="nanogpt", **values)
        count = cfg.max_iters // every
        return Pauses({"checkpoint_interval": every}, (reason,), total_ms=count * wait_ms)
    if "checkpoint_interval" in case.subject.fixed and cfg.checkpoint_interval != "auto":
        reason = Reason("checkpoint_interval", "calculated", variant="asked", **values)
        return Pauses({"checkpoint_interval": cfg.checkpoint_interval}, (reason,))
    if whole_ms is None:
        reason = Reason("checkpoint_interval", "estimated", variant="unknown", **values)
        return Pauses({"checkpoint_interval": "auto"}, (reason,))
    at_risk = round(AT_RISK_SHARE * whole_ms / 60_000)
    minutes = min(max(LEAST_AT_RISK_MIN, at_risk), MOST_AT_RISK_MIN)
    reason = Reason(
        "checkpoint_interval", "estimated", variant="time", every_ms=minutes * 60_000.0, **values
    )
    total_ms = whole_ms / (minutes * 60_000) * wait_ms
    return Pauses({"checkpoint_interval": f"{minutes}m"}, (reason,), total_ms=total_ms)


def _round_up(value: float) -> int:
    """The next number with at most two digits before its zeros.

    >>> [_round_up(x) for x in (0.2, 7.1, 76, 123, 5421)]
    [1, 8, 76, 130, 5500]
    """
    if value <= 1:
        return 1
    step = 10 ** max(0, math.floor(math.log10(value)) - 1)
    return int(math.ceil(value / step) * step)
