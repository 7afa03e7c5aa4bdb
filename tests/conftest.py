"""Every test works in an empty folder of its own."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, value in {"PEAK_BUDGET_S": 0.0, "PEAK_SIZE": 128}.items():
        monkeypatch.setattr(
            f"stepglass.hardware.device.{name}", value
        )  # nobody looks at these MFUs
    torch.manual_seed(0)
    return tmp_path


@pytest.fixture(autouse=True)
def threads_are_as_before() -> Iterator[None]:
    """A number of threads that a test leaves behind would be the next one's number of replicas."""
    before = torch.get_num_threads()
    yield
    assert torch.get_num_threads() == before


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    """Has torch use a number of threads, and with them replicas; as before in the end."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)
