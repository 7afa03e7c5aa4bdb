"""The lines of a log that support a finding about slow iterations."""

from stepglass.explain.finding import MOST_CITED
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
