"""What sets the pace of a run on a GPU: the GPU, Python, or the data.

The host queues work and the device does it. At the end of each update the clock asks whether the
device has already begun the optimizer's part. If it has not, the host is ahead and the GPU sets the
pace. If it has, the GPU waits for the host, which reads batches or starts kernels.
"""

from collections.abc import Mapping
from typing import Literal

from stepglass.measure.clock import STEP_PHASES

PaceMaker = Literal["gpu", "python", "data"]
MOSTLY = 0.5  # of the updates
DATA_SHARE = 0.05  # of the step, on the device's clock


def pace_maker(device_phases: Mapping[str, float], behind_share: float) -> PaceMaker:
    """`behind_share` is the share of updates at whose end the device was behind the host.

    >>> pace_maker({"data": 1.0, "forward_backward": 90.0}, 0.98)
    'gpu'
    >>> pace_maker({"data": 1.0, "forward_backward": 90.0}, 0.02)
    'python'
    >>> pace_maker({"data": 30.0, "forward_backward": 60.0}, 0.0)
    'data'
    """
    if behind_share >= MOSTLY:
        return "gpu"
    step_ms = sum(device_phases.get(name, 0.0) for name in STEP_PHASES)
    waited_ms = device_phases.get("data", 0.0)
    return "data" if waited_ms > DATA_SHARE * step_ms else "python"
