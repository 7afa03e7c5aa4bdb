"""A training run with all its parts. `set_up` makes it, and the loop uses it."""

from dataclasses import dataclass

from stepglass.train.evaluate import Evaluations
from stepglass.train.iterations import Iterations
from stepglass.train.run import Run
from stepglass.train.saves import Saves
from stepglass.train.time_budget import END_MS


@dataclass
class Training:
    """The parts that the loop works with."""

    run: Run
    evals: Evaluations
    saves: Saves
    iterations: Iterations
    last_step: int  # train up to this step

    def is_over(self) -> bool:
        """Whether all updates are done, or the time is up: another update would take more than half
        of its time beyond it."""
        run = self.run
        if run.state.step >= self.last_step:
            return True
        if run.budget is None or run.state.step == run.first_step:
            return False
        return run.budget.left_ms(self.reserve_ms()) < (run.mean_iter_ms() or 0.0) / 2

    def place(self) -> float:
        """Where the run is on its schedule, in iterations. With a time budget, the clock says."""
        state, budget = self.run.state, self.run.budget
        if budget is None:
            return state.step
        state.spent_ms = budget.used_ms()
        return budget.share(self.reserve_ms()) * self.run.cfg.max_iters

    def reserve_ms(self) -> float:
        """The time for what follows the last update: an evaluation, a checkpoint, the end."""
        return (self.evals.schedule.eval_ms or 0.0) + self.saves.write_ms + END_MS

    def close(self) -> None:
        """End the engine, the writer and the logs, and release the folder, even if one fails."""
        try:
            self.run.engine.close()
        finally:
            self.saves.writer.close()
            self.run.close()
