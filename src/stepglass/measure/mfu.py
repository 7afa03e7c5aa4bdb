"""Model FLOPs utilization (MFU): the model FLOPs per second of a step, as a share of the peak.

The formula is PaLM's (arXiv 2204.02311, appendix B), which nanoGPT uses as well. It counts the
FLOPs that the model needs, not the FLOPs that were executed: recomputed work is not counted.
"""

from typing import TypeVar

FORMULA = "6N + 12*L*H*Q*T per token (PaLM), over the step's time"  # as the run log names it

Count = TypeVar("Count", int, float)  # numbers from a log are floats, those from a model are ints


def palm_flops_per_token(
    *, num_params: Count, n_layer: Count, width: Count, num_tokens: Count
) -> Count:
    """FLOPs of a forward and a backward pass, per token: 6N + 12 L H Q T.

    `num_params` (N) does not include tables that are only looked up. `width` is H Q, the number of
    heads times the size of a head. `num_tokens` (T) is the length of a sequence.

    >>> palm_flops_per_token(num_params=100, n_layer=2, width=4, num_tokens=8)
    1368
    """
    return 6 * num_params + 12 * n_layer * width * num_tokens


def share_of_peak(flops: float, step_ms: float, peak_flops_per_s: float | None) -> float | None:
    """The MFU of a step, or None if the device's peak is unknown.

    >>> share_of_peak(1e9, 100.0, 1e11), share_of_peak(1e9, 100.0, None)
    (0.1, None)
    """
    if peak_flops_per_s is None or step_ms <= 0:
        return None
    return flops / (step_ms / 1000) / peak_flops_per_s
