"""Training runs that never were: what happened in each is known, because it is made up here.

A run has a loss curve (a power law with noise, the drop at the end of the learning rate's decay,
plateaus, bumps), evaluations with their own noise, and the time of every step, evaluation and
checkpoint. It may have one fault of the loss and one fault of the time. The same seed makes the
same run.
"""

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]

FORMATS = ("nanogpt", "hf-trainer", "lightning", "megatron", "llm.c", "litgpt")
LOSS_FAULTS = ("overfitting", "divergence", "recovered", "nan-loss", "loss-spike", "constant-loss")
TIME_FAULTS = ("unexplained-stall", "periodic-stall", "slowdown")
PRINTS_EVERY_STEP = ("llm.c", "litgpt")
PRINTS_MEANS = ("hf-trainer", "megatron")  # the loss of a line is the mean since the line before


@dataclass
class MadeUpRun:
    """What happened. Times are milliseconds. `truths` are facts to hold findings against."""

    seed: int
    format: str
    loss_fault: str = ""
    time_fault: str = ""
    num_iters: int = 0
    log_interval: int = 1
    eval_interval: int = 1
    eval_batches: int = 20
    rate: float = 6e-4
    rates: Values = field(default_factory=lambda: np.zeros(0))
    losses: Values = field(default_factory=lambda: np.zeros(0))  # as a step would print them
    norms: Values = field(default_factory=lambda: np.zeros(0))
    times: Values = field(default_factory=lambda: np.zeros(0))  # of the steps alone
    evals: dict[int, tuple[float, float]] = field(default_factory=dict)  # train and val loss
    eval_ms: float = 0.0
    save_ms: float = 0.0
    warmup_ms: float = 0.0
    saves_always: bool = False
    restart: tuple[int, int] | None = None  # killed after this iteration, resumed from that one
    truths: dict[str, float] = field(default_factory=dict)

    @property
    def printed(self) -> list[int]:
        return list(range(0, self.num_iters, self.log_interval))


def made_up_run(
    seed: int, log_format: str, loss_fault: str = "", time_fault: str = ""
) -> MadeUpRun:
    around = np.random.default_rng([seed, FORMATS.index(log_format)])
    run = MadeUpRun(seed, log_format, loss_fault, time_fault)
    _choose_sizes(run, around)
    _make_losses(run, around)
    _make_times(run, around)
    has_room = run.num_iters > 200 and not loss_fault and not time_fault
    if log_format != "lightning" and has_room and around.random() < 0.15:
        killed = int(run.num_iters * around.uniform(0.4, 0.8))
        killed -= killed % run.log_interval
        last_eval = killed - killed % run.eval_interval
        if 0 < last_eval < killed - 2 * run.log_interval:
            run.restart = (killed, last_eval)
    return run


def _choose_sizes(run: MadeUpRun, around: np.random.Generator) -> None:
    num_lines = int(around.choice([40, 80, 150, 300, 600]))
    if run.time_fault:
        num_lines = max(num_lines, 150)
    num_evals = int(around.choice([4, 6, 8, 12, 20, 40]))
    if run.loss_fault == "overfitting":
        num_evals = max(num_evals, 8)
    run.log_interval = int(around.choice([1, 5, 10, 20, 100]))
    if run.format in PRINTS_EVERY_STEP:
        run.log_interval = 1
    each = max(1, num_lines // num_evals)
    run.eval_interval = each * run.log_interval
    run.num_iters = each * num_evals * run.log_interval + 1
    run.eval_batches = int(around.choice([1, 5, 20, 50, 200]))
    run.saves_always = bool(around.random() < 0.5)


# -- the loss ------------------------------------------------------------------------------------


def _make_losses(run: MadeUpRun, around: np.random.Generator) -> None:
    length = run.num_iters
    true = _healthy_curve(run, around)
    batch_sigma = float(around.choice([0.005, 0.02, 0.05, 0.1])) * float(true[-1])
    wander = around.choice([0.0, 0.003, 0.01]) * float(true[-1])
    true = true + wander * _noise(length, 0.999, around)  # the model itself wanders a little
    val = true + _gap(run, true, around)
    if run.loss_fault == "overfitting":
        true, val = _overfit(run, true, val, around)
    at = int(length * around.uniform(0.3, 0.8))
    at = min(max(at, 6 * run.log_interval), length - 8 * run.log_interval)
    if run.loss_fault in ("divergence", "recovered"):
        true = _diverged(run, true, at, batch_sigma, around)
        val = np.maximum(val, true)
    tails = around.standard_t(4, length) / math.sqrt(2) if around.random() < 0.3 else None
    noise = _noise(length, float(around.choice([0.0, 0.0, 0.3, 0.6, 0.9])), around)
    losses = np.maximum(true + batch_sigma * (noise if tails is None else tails), 0.02)
    if run.loss_fault == "loss-spike":
        losses = _spiked(run, losses, batch_sigma, around)
    if run.format in PRINTS_MEANS and run.log_interval > 1:
        losses = _means(losses, run.log_interval)
    norms = np.exp(around.normal(-0.7, 0.25, length))
    if run.loss_fault == "nan-loss":
        at -= at % run.log_interval
        if around.random() < 0.4:  # it explodes first
            first = max(at - 4 * run.log_interval, 1)
            losses[first:at] *= np.linspace(1.5, 6.0, at - first)
            run.truths["explodes"] = 1.0
        losses[at:], norms[at:], val[at:] = math.nan, math.nan, math.nan
        true = np.where(np.arange(length) >= at, math.nan, true)
    if run.loss_fault == "constant-loss":
        at = 0 if around.random() < 0.5 else length // 3
        losses[at:] = round(float(losses[at]), 3) + 0.0003
        true, val = true.copy(), val.copy()
        true[at:], val[at:] = true[at], val[at]
    run.losses, run.norms = losses, norms
    sigma = batch_sigma / math.sqrt(run.eval_batches)
    for i in range(0, length, run.eval_interval):
        noises = around.normal(0, sigma, 2)
        run.evals[i] = (float(true[i] + noises[0]), float(val[i] + noises[1]))
    run.truths |= {"eval_sigma": sigma, "batch_sigma": batch_sigma, "at": float(at)}
    _note_truth_of_evals(run, val)


def _healthy_curve(run: MadeUpRun, around: np.random.Generator) -> Values:
    length = run.num_iters
    start, floor = float(around.uniform(3, 11)), float(around.uniform(0.8, 3.0))
    if around.random() < 0.25:  # fine-tuning: it starts low and falls little
        start, floor = float(around.uniform(0.9, 2.5)), float(around.uniform(0.4, 0.8))
    shift, power = length * around.uniform(0.003, 0.2), around.uniform(0.3, 1.2)
    steps = np.arange(length, dtype=np.float64)
    curve = floor + (start - floor) * (1 + steps / shift) ** -power
    run.rate = float(around.choice([1e-4, 3e-4, 6e-4, 1e-3]))
    done = steps / length
    if around.random() < 0.6:  # the decay of the learning rate lowers the loss towards the end
        run.rates = run.rate * (0.1 + 0.45 * (1 + np.cos(math.pi * done)))
        curve = curve - 0.06 * curve[-1] * (1 - run.rates / run.rate)
    else:
        run.rates = np.full(length, run.rate)
    kind = around.random()
    if kind < 0.15:  # a plateau, then a drop
        center = around.uniform(0.3, 0.7)
        curve = curve + 0.1 * curve[-1] / (1 + np.exp((done - center) / 0.02))
    elif kind < 0.3:  # a bump as after a restart of the schedule, or a double descent
        since = done - around.uniform(0.2, 0.95)
        height = around.uniform(0.01, 0.06) * curve[-1]
        curve = curve + np.where(since > 0, height * np.exp(-since / 0.05), 0.0)
    elif kind < 0.4:  # nothing is learned in the last half
        curve = np.maximum(curve, curve[length // 2])
    return np.asarray(curve)


def _gap(run: MadeUpRun, true: Values, around: np.random.Generator) -> Values:
    """How far the validation loss lies above the training loss. It may grow, but less quickly than
    the training loss falls; and what the validation set measures wanders on its own."""
    grows = float(around.choice([0.0, 0.2, 0.5])) * (true[0] - true)
    wander = float(around.choice([0.0, 0.002, 0.006])) * float(true[-1])
    memory = math.exp(-1 / (around.uniform(0.5, 2) * run.eval_interval))
    own = wander * _noise(run.num_iters, memory, around)
    if around.random() < 0.25:  # validation has stopped falling, training has not
        stop = int(around.uniform(0.2, 0.7) * run.num_iters)
        grows = np.maximum(true[stop] - true, 0.0)
    return np.asarray(float(around.uniform(-0.02, 0.08)) + grows + own)


def _noise(length: int, memory: float, around: np.random.Generator) -> Values:
    """Noise with variance one in which a value resembles the one before."""
    white = around.normal(0, 1, length)
    if not memory:
        return white
    result, scale = np.empty(length), math.sqrt(1 - memory**2)
    value = float(white[0])
    for n, step in enumerate(white):
        value = memory * value + scale * float(step)
        result[n] = value
    return result


def _overfit(
    run: MadeUpRun, true: Values, val: Values, around: np.random.Generator
) -> tuple[Values, Values]:
    """The validation loss turns and rises; the training loss falls faster."""
    done = np.arange(run.num_iters) / run.num_iters
    turn = around.uniform(0.15, 0.6)
    since = np.clip((done - turn) / (1 - turn), 0, 1)
    rise = around.uniform(0.08, 0.6) * val[int(turn * run.num_iters)]
    frozen = np.where(done < turn, val, val[int(turn * run.num_iters)])
    shape = since ** around.uniform(0.6, 1.4)
    return true * (1 - around.uniform(0.3, 0.7) * since), frozen + rise * shape


def _diverged(
    run: MadeUpRun, true: Values, at: int, sigma: float, around: np.random.Generator
) -> Values:
    best, start = float(np.min(true[: at + 1])), float(true[0])
    height = max(8 * sigma, float(around.uniform(0.4, 1.5)) * max(start - best, 0.4 * best))
    since = np.arange(run.num_iters) - at
    ramp = float(around.choice([1.0, 3.0])) * run.log_interval
    up = height * np.clip((since + 1) / ramp, 0, 1)
    if run.loss_fault == "recovered":
        stays = max(6 * run.log_interval, int(0.08 * run.num_iters))
        up = np.where(since > stays, up * np.exp(-(since - stays) / (0.3 * stays)), up)
        run.truths["stays"] = float(stays)
    run.truths["height"] = height
    return np.asarray(np.where(since >= 0, best + up, true))


def _spiked(run: MadeUpRun, losses: Values, sigma: float, around: np.random.Generator) -> Values:
    """A few single steps far above their neighbours, on lines that are printed."""
    printed = np.array(run.printed)[len(run.printed) // 4 : -3]
    rows = around.choice(printed, size=min(3, len(printed)), replace=False)
    losses = losses.copy()
    height = max(12 * sigma, 0.4) * around.uniform(1, 3)
    losses[rows] += height * (run.log_interval if run.format in PRINTS_MEANS else 1)
    return losses


def _means(losses: Values, width: int) -> Values:
    sums = np.cumsum(np.insert(losses, 0, 0.0))
    ends = np.arange(1, len(losses) + 1)
    starts = np.maximum(ends - width, 0)
    return np.asarray((sums[ends] - sums[starts]) / (ends - starts))


def _note_truth_of_evals(run: MadeUpRun, val: Values) -> None:
    iters = np.array(sorted(run.evals))
    true = val[iters]
    known = np.isfinite(true)
    if not known.any():
        return
    best = int(np.argmin(np.where(known, true, np.inf)))
    last = int(np.flatnonzero(known)[-1])
    run.truths |= {
        "rise": float(true[last] - true[best]),
        "best_val": float(true[best]),
        "num_after": float(last - best),
    }


# -- the time ------------------------------------------------------------------------------------


def _make_times(run: MadeUpRun, around: np.random.Generator) -> None:
    length = run.num_iters
    step = float(np.exp(around.uniform(math.log(15), math.log(3000))))
    jitter = float(around.choice([0.002, 0.01, 0.03, 0.08]))
    times = step * np.exp(jitter * _noise(length, float(around.choice([0.0, 0.5])), around))
    if around.random() < 0.3:  # now and then a step is a little slower
        times *= np.where(around.random(length) < 0.02, around.uniform(1.05, 1.3), 1.0)
    printed = np.array(run.printed)
    free = printed[(printed % run.eval_interval != 0) & (printed > 8 * run.log_interval)]
    if run.time_fault == "unexplained-stall":
        rows = around.choice(free, size=2, replace=False)
        times[rows] += around.uniform(0.05, 0.3) * step * length * np.array([1.0, 0.7])
    if run.time_fault == "periodic-stall":
        every = int(around.choice([7, 11, 13])) * run.log_interval
        rows = np.arange(9 * run.log_interval, length, every)
        if run.format == "nanogpt":  # there, an evaluation would hide it
            rows = rows[rows % run.eval_interval != 0]
        times[rows] += around.uniform(2.5, 8) * step * max(1, run.log_interval / 4)
    if run.time_fault == "slowdown":
        times[length // 2 :] *= 1 + max(0.12, 6 * jitter) * around.uniform(1, 2)
    run.times = times
    every = step * run.eval_interval
    run.eval_ms = float(around.choice([0.003, 0.01, 0.15, 0.4])) * every
    run.save_ms = float(around.choice([0.001, 0.004, 0.05])) * every
    run.warmup_ms = float(around.choice([0.0, 1.0, 30.0])) * step
    total = float(times.sum())
    evals, num_evals = len(run.evals) * run.eval_ms, len(run.evals)
    saves = (num_evals - 1) * run.save_ms
    wall = total + evals + saves + run.warmup_ms
    run.truths |= {"eval_share": evals / wall, "save_share": saves / wall, "step_ms": step}
