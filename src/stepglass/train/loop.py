"""The training loop, on one page.

It does what nanoGPT's does, in the same order: evaluate and save if that is due, then one update.
An iteration's record holds all the time since the one before it, split into phases that add up. The
loop never decides how an update is computed, how a checkpoint is written or what a line looks like.
"""

import gc
import math

from stepglass.settings.lr_schedule import lr_at
from stepglass.train.batches import micro_batches
from stepglass.train.evaluate import evaluate
from stepglass.train.optimizer import set_lr
from stepglass.train.run import NotFinite
from stepglass.train.training import Training


def loop(t: Training) -> str:
    """Train until there is a reason to end, and return it."""
    run, evals, saves, iterations = t.run, t.evals, t.saves, t.iterations
    cfg, state, clock, engine = run.cfg, run.state, run.clock, run.engine
    while True:
        step = state.step
        is_last = step >= t.last_step or cfg.eval_only
        if run.stop.is_set():
            return "signal"
        if run.folder.lost is not None:
            return "lost"
        if (evals.is_due(step) or is_last) and state.evaluated_at != step:
            if evaluate_and_save(t):
                return "target"
            continue  # a signal may have come meanwhile
        if is_last:
            return "finished"
        saves.report()
        if saves.is_due(step):
            iterations.drain()
            saves.begin()

        with clock.phase("data"):
            batches = micro_batches(run.data, cfg, step)
        with clock.phase("forward_backward"):
            loss = engine.backward(batches, step)
        with clock.phase("optimizer"):
            lr = lr_at(step, cfg)
            set_lr(engine.optimizer, lr, cfg)
            saves.protect()
            grad_norm = engine.update(cfg.grad_clip)
        state.step += 1
        state.tokens += cfg.tokens_per_iter
        with clock.phase("log"):
            iterations.add(step, lr, loss, grad_norm)


def evaluate_and_save(t: Training) -> bool:
    """Evaluate, remember the best, save: what nanoGPT hides inside an iteration. Returns whether
    the run's target is reached."""
    run, clock = t.run, t.run.clock
    t.iterations.drain()  # a loss that is no longer a number must not reach a checkpoint
    with clock.phase("gc"):
        gc.collect()  # first: what follows keeps the caches and the other cores warm for the step
    before = clock.spent_ns("eval")
    with clock.phase("eval"):
        result = evaluate(run.engine, t.evals.windows, run.stop.is_set)
        is_number = result is not None and math.isfinite(result.val_loss)
        text = t.evals.sample() if is_number else None
    if result is None:
        return False  # the run was asked to stop
    with clock.phase("log"):
        t.evals.record(result, (clock.spent_ns("eval") - before) / 1e6, text)
        t.iterations.correct_peak()
    if not result.is_finite:
        what = f"step {run.state.step}: the validation loss is {result.val_loss}"
        raise NotFinite(what, spoilt_step=None)  # these weights are not saved yet
    if not run.cfg.eval_only:
        t.saves.after_evaluation()
    return run.cfg.target_val_loss > 0 and result.val_loss <= run.cfg.target_val_loss
