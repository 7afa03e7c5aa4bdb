"""A training run with all its parts. `set_up` makes it, and the loop uses it."""

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
        """End the engine, the writer and the logs, and release the folder, even if one fails."""
        try:
            self.run.engine.close()
        finally:
            self.saves.writer.close()
            self.run.close()
