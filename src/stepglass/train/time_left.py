"""When a run in progress will end: after how many updates, and in how much time."""

from stepglass.train.training import Training


def expected_last_step(t: Training) -> int:
    """The number of updates at the end of the run."""
    run, iter_ms = t.run, t.run.mean_iter_ms()
    if run.budget is None or iter_ms is None:
        return run.cfg.max_iters
    return run.state.step + max(0, round(run.budget.left_ms(t.reserve_ms()) / iter_ms))


def time_left_ms(t: Training) -> float | None:
    """The time to the end of the run, with the evaluations that are still due. Waiting for
    checkpoints is part of the mean iteration."""
    run, schedule, last_step = t.run, t.evals.schedule, t.last_step
    if run.budget is not None:
        return max(0.0, run.budget.left_ms())
    step, iter_ms = run.state.step, run.mean_iter_ms()
    if iter_ms is None:
        return None
    if step >= last_step:
        evaluations = int(run.state.evaluated_at != step)
    else:
        every = schedule.every or last_step
        is_done = run.state.evaluated_at == step and step % every == 0
        evaluations = (last_step - 1) // every - (step - 1) // every - is_done + 1  # one at the end
    return (last_step - step) * iter_ms + evaluations * schedule.expected_ms(iter_ms)
