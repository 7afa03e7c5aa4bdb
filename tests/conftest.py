"""Every test works in an empty folder of its own."""

from pathlib import Path

import pytest
import torch


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("stepglass.device.PEAK_BUDGET_S", 0.0)  # nobody looks at these MFUs
    torch.manual_seed(0)
    return tmp_path
