"""Notices while it happens that the validation loss turns: the model begins to memorise.

Two evaluations read the same windows, so the loss of each window is compared with its own loss at
the best evaluation. The standard error of these differences is much smaller than that of a loss,
and a rise by chance is not taken for a turn.
"""

from dataclasses import dataclass

from stepglass import units
from stepglass.train.evaluation import Evaluation

SURELY = 2.0  # standard errors above the best
IN_A_ROW = 2  # evaluations


@dataclass
class Turning:
    """Compares every evaluation with the best that this process has seen."""

    best: Evaluation | None = None
    best_step: int = 0
    risen: int = 0  # evaluations in a row that are surely above the best
    is_said: bool = False  # about this turn

    def add(self, step: int, now: Evaluation) -> str | None:
        """Take an evaluation in. Returns a line when it shows that the loss has turned, once for
        each turn."""
        best = self.best
        if best is None or now.val_loss < best.val_loss:
            self.best, self.best_step, self.risen, self.is_said = now, step, 0, False
            return None
        # If the training loss has risen too, the run is unsteady, and nothing is memorised.
        is_memorising = now.train_loss < best.train_loss and is_surely_above(now, best)
        self.risen = self.risen + 1 if is_memorising else 0
        if self.risen < IN_A_ROW or self.is_said:
            return None
        self.is_said = True
        return (
            f"note: the validation loss has been above its best for {self.risen} evaluations (best "
            f"{units.loss(best.val_loss)} at step {self.best_step}), and the training loss still "
            "falls: the model begins to memorise; the best checkpoint is kept"
        )


def is_surely_above(now: Evaluation, best: Evaluation) -> bool:
    if now.val_losses is None or best.val_losses is None:
        return False
    difference = now.val_losses - best.val_losses
    if len(difference) < 2:
        return False
    se = float(difference.std()) / len(difference) ** 0.5
    return bool(difference.mean() > SURELY * se)
