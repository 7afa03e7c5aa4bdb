"""Why the training loss of an evaluation lies below the loss of the batches around it."""

import math

import numpy as np

from stepglass.explain.finding import Finding
from stepglass.explain.rules.loss_curve import noise_of
from stepglass.explain.study import Part

LEAST_SHARE = 0.05
NEAR = 5  # printed losses to compare with, on either side
FEW = 8


def find_eval_below_batch(part: Part) -> list[Finding]:
    evals = [e for e in part.evals if e.train_loss and e.iter > 0]
    dropout = part.number_setting("dropout")
    if not evals or not part.format.evaluates_random_batches or dropout == 0:
        return []
    last = evals[-1]
    iters, losses, lines = part.losses
    before, after = losses[iters < last.iter][-NEAR:], losses[iters >= last.iter][:NEAR]
    if not len(before) or not len(after) or last.train_loss is None:
        return []
    near = np.concatenate([before, after])
    mean, below = float(near.mean()), float(near.mean()) - last.train_loss
    error = noise_of(losses) / math.sqrt(len(near)) if len(losses) >= FEW else 0.0
    # Where the loss falls quickly, the batches before lie above any later figure.
    is_steady = abs(float(before.mean()) - float(after.mean())) < below / 3
    if not is_steady or below < max(4 * error, LEAST_SHARE * mean):
        return []
    lines = lines[np.abs(iters - last.iter).argsort(kind="stable")]
    return [
        Finding(
            "eval-below-batch",
            "supported" if dropout else "hypothesis",
            "note",
            {
                "last_iter": last.iter,
                "train_loss": last.train_loss,
                "batch_loss": mean,
                "dropout": dropout,
            },
            [last.line, *(int(line) for line in lines[:2])],
            [last.iter],
            variant="dropout" if dropout else "plain",
        )
    ]
