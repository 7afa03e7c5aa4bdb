"""What the record `ranks` says about the updates of several processes."""

from collections import deque
from types import SimpleNamespace

import torch

from stepglass.train.engines.ddp import DdpShare

# Of two processes and three updates: computing and waiting. Each is the last to be ready once.
TIMES = [
    [(100.0, 52.0), (150.0, 2.0), (100.0, 2.0)],
    [(150.0, 2.0), (100.0, 52.0), (100.0, 2.0)],
]


class TwoProcesses:
    """A group in which the other process has the second half of `TIMES`."""

    def gather_rows(self, rows: torch.Tensor) -> torch.Tensor:
        other = torch.tensor([TIMES[1]]) if rows.dim() == 3 else torch.tensor([40.0])
        return torch.cat([rows, other])


def share(device_type: str = "cpu") -> DdpShare:
    made = DdpShare.__new__(DdpShare)
    made._times, made._scored_ms = deque(TIMES[0]), 30.0
    made._group, made.device = TwoProcesses(), SimpleNamespace(type=device_type)
    return made


def test_communication_is_the_shortest_wait_of_each_update():
    """The shortest mean wait would be 18.7 ms: it includes waiting for the other."""
    first = share()
    event = first.rank_times()
    assert event is not None
    assert event.as_dict() == {
        "compute_ms": [116.667, 116.667],
        "wait_ms": [18.667, 18.667],
        "communication_ms": 2.0,
        "eval_ms": [30.0, 40.0],
        "updates": 3,
    }
    assert first.rank_times() is None  # nothing since then


def test_on_a_gpu_nothing_is_said():
    assert share("cuda").rank_times() is None
