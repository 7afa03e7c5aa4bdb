"""The training loop, on one page.

It does the same as nanoGPT's loop, in the same order: evaluate and save if due, then one update.
The record of an iteration covers all the time since the previous record, split into phases that add
up. How an update is computed, how a checkpoint is written and how a line is printed are decided in
other modules.
"""

import gc
import math

from stepglass.settings.lr_schedule import lr_at
from stepglass.train.batches import counted_share, micro_batches
from stepglass.train.evaluate import evaluate
from stepglass.train.optimizer import set_lr
from stepglass.train.run import NotFinite
from stepglass.train.training import Training


def loop(t: Training) -> str:
    """Train until there is a reason to stop, and return the reason."""
    run, evals, saves, iterations = t.run, t.evals, t.saves, t.iterations
    cfg, state, clock, engine = run.cfg, run.state, run.clock, run.engine
    while True:
        step = state.step
        is_last = t.is_over() or cfg.eval_only
        if run.stop.is_set():
            return "signal"
        if run.folder.lost is not None:
            return "lost"
        if (evals.is_due(step) or is_last) and state.evaluated_at != step:
            reason = evaluate_and_save(t)
            if reason is not None:
                return reason
            continue  # a signal may have arrived during the evaluation
        if is_last:
            return "finished"
        saves.report()
        if saves.is_due(step):
            iterations.drain()
            saves.begin()

        with clock.phase("data"):
            batches = micro_batches(run.data, cfg, step)
            counted = counted_share(run.data, cfg, step)
        with clock.phase("forward_backward"):
            loss = engine.backward(batches, step, counted)
        with clock.phase("optimizer"):
            lr = lr_at(t.place(), cfg, state.rewarm)
            set_lr(engine.optimizer, lr, cfg)
            saves.protect()
            grad_norm = engine.update(cfg.grad_clip)
        state.step += 1
        state.last_lr = lr
        state.tokens += cfg.tokens_per_iter
        with clock.phase("log"):
            iterations.add(step, lr, loss, grad_norm)


def evaluate_and_save(t: Training) -> str | None:
    """Evaluate, remember the best loss, and save. nanoGPT counts this time as part of an iteration.
    Returns a reason to stop: the target is reached, or there was no new best for too long."""
    run, clock = t.run, t.run.clock
    t.iterations.drain()  # detects a NaN loss before a checkpoint is written
    with clock.phase("gc"):
        # Collect before the evaluation: the evaluation then leaves the caches and the other cores
        # warm for the next step.
        gc.collect()
    before = clock.spent_ns("eval")
    with clock.phase("eval"):
        result = evaluate(run.engine, t.evals.windows, run.stop.is_set)
        is_number = result is not None and math.isfinite(result.val_loss)
        text = t.evals.sample() if is_number else None
    if result is None:
        return None  # the run was asked to stop
    with clock.phase("log"):
        t.evals.record(result, (clock.spent_ns("eval") - before) / 1e6, text)
        if run.budget is None or not t.is_over():  # it takes a second, and the time is up
            t.iterations.correct_peak()
    if not result.is_finite:
        what = f"step {run.state.step}: the validation loss is {result.val_loss}"
        raise NotFinite(what, spoilt_step=None)  # these weights have not been saved
    if not run.cfg.eval_only:
        t.saves.after_evaluation()
    if 0 < run.cfg.target_val_loss >= result.val_loss:
        return "target"
    return "patience" if run.out_of_patience() and not t.is_over() else None
