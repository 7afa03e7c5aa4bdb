"""The lines of a log that support a finding about slow iterations, and what their times are of."""

import numpy as np

from stepglass.explain.finding import MOST_CITED
from stepglass.explain.iteration_times import is_by_stamps, windows_of
from stepglass.explain.study import Part
from stepglass.explain.timing import Spike


def spike_lines(part: Part, spikes: list[Spike]) -> list[int]:
    """The lines of the iterations, and of the evaluations and checkpoints before them."""
    spikes = spikes[:MOST_CITED]
    iters = {spike.iter for spike in spikes}
    lines = [spike.line for spike in spikes]
    for evaluation in part.segment.evals:
        if evaluation.iter in iters:
            lines.append(evaluation.line)
            if evaluation.save_line is not None:
                lines.append(evaluation.save_line)
    return lines


def window_at(part: Part, line: int) -> int:
    """How many iterations the time of this line is the mean of."""
    row = int(np.searchsorted(part.column("line"), line))
    if is_by_stamps(part.segment):
        iters = part.column("iter")
        return max(1, int(iters[row] - iters[row - 1])) if row else 1
    return max(1, int(windows_of(part.segment)[row]))
