"""The settings for a run of another length."""

from stepglass.explain.finding import Change
from stepglass.explain.study import Part


def length_of(part: Part, num_iters: int) -> Change:
    """The length, and the decay of the learning rate with it: one without the other leaves the rate
    high at the end, or low for most of the run."""
    if part.setting("decay_lr") is False:
        return {"max_iters": num_iters}
    return {"max_iters": num_iters, "lr_decay_iters": num_iters}
