"""The result of an evaluation."""

import math
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Evaluation:
    """Losses of both splits; `val_se` is the standard error of `val_loss` over its windows."""

    train_loss: float
    val_loss: float
    val_se: float | None
    windows: int
    val_losses: torch.Tensor | None = None  # of each window

    @property
    def is_finite(self) -> bool:
        return math.isfinite(self.val_loss + self.train_loss)
