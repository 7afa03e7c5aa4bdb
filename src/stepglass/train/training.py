"""A training run with all its parts, as `set_up` makes it and the loop uses it."""

from dataclasses import dataclass

from stepglass.train.evaluate import Evaluations
from stepglass.train.iterations import Iterations
from stepglass.train.run import Run
from stepglass.train.saves import Saves


@dataclass
class Training:
    """The parts that the loop works with."""

    run: Run
    evals: Evaluations
    saves: Saves
    iterations: Iterations
    last_step: int  # train up to this step

    def close(self) -> None:
        """Release the run's folder, with everything on disk, whatever fails on the way."""
        try:
            self.run.engine.close()
        finally:
            self.saves.writer.close()
            self.run.close()
