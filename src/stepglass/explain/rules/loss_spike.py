"""Losses far above their neighbours that come back at once."""

import numpy as np
import numpy.typing as npt

from stepglass.explain.finding import Change, Finding
from stepglass.explain.rules.calmer_settings import calmer
from stepglass.explain.rules.loss_curve import has_risen, smoothed
from stepglass.explain.study import Part
from stepglass.logs.segment import Segment
from stepglass.logs.table import Column, median

WIDTH = 33
FEW = 64  # losses; fewer do not show what is usual
LASTING = 2  # rows; the loss of a bad batch is gone by the next step


def find_loss_spike(part: Part) -> list[Finding]:
    iters, losses, lines = part.losses
    if part.is_policy_loss or has_risen(part) or part.segment.table.is_thinned:
        return []  # in a thinned table single points may be missing
    rows, heights = _spikes(losses)
    if not len(rows) or len(rows) > 0.05 * len(losses) + 3:
        return []
    worst = int(rows[np.argmax(heights)])
    around = median(losses[max(0, worst - WIDTH // 2) : worst + WIDTH // 2 + 1])
    num_apart = 1 + int((np.diff(rows) > 1).sum())
    same = _same_in_other_runs(part, [int(i) for i in iters[rows]])
    is_many = len(rows) >= 5 and len(rows) >= LASTING * num_apart
    is_many &= not part.format.smooths_loss  # one bad batch lasts there as well
    usual = "smoothed" if part.format.smooths_loss else "plain"
    variant = "data" if same else "rate" if is_many else usual
    change: Change = calmer(part) if variant == "rate" else {}
    return [
        Finding(
            "loss-spike",
            "supported",
            "advice" if variant == "rate" else "note",
            {
                "count": num_apart,
                "iter": int(iters[worst]),
                "loss": float(losses[worst]),
                "around_loss": around,
                "z": float(heights.max()),
                "runs": same,
            },
            [int(lines[row]) for row in rows],
            [int(iters[row]) for row in rows],
            change,
            variant=variant,
        )
    ]


def _spikes(losses: Column) -> tuple[npt.NDArray[np.intp], Column]:
    """The rows with a loss far above the curve, and how many times the noise that is."""
    if len(losses) < FEW:
        return np.zeros(0, np.intp), np.zeros(0)
    away = losses - smoothed(losses, WIDTH)
    sigma = 1.4826 * smoothed(np.abs(away), 129 if len(losses) >= 129 else WIDTH)
    is_high = away > np.maximum(6 * sigma, 0.1)
    is_high[: max(8, WIDTH // 2)] = False  # the loss still falls quickly here
    rows = np.flatnonzero(is_high)
    return rows, away[rows] / np.maximum(sigma[rows], 1e-9)


def _same_in_other_runs(part: Part, iters: list[int]) -> int:
    """How many runs of this log spike at the same iterations, if every run does that printed them:
    then the cause is in the data. 0 if not, or if there is only one run."""
    count = 1
    for segment in part.log.segments:
        shared = [i for i in iters if _has_printed(segment, i)]
        if segment is part.segment or not shared:
            continue
        known = np.isfinite(segment.table.column("loss"))
        losses, at = segment.table.column("loss")[known], segment.table.column("iter")[known]
        high = set(at[_spikes(losses)[0]].astype(int).tolist())
        if not high.issuperset(shared):
            return 0
        count += 1
    return count if count > 1 else 0


def _has_printed(segment: Segment, iteration: int) -> bool:
    return bool((segment.table.column("iter") == iteration).any())
