"""Every test works in an empty folder of its own."""

from pathlib import Path

import pytest
import torch


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, value in {"PEAK_BUDGET_S": 0.0, "PEAK_SIZE": 128}.items():
        monkeypatch.setattr(f"stepglass.device.{name}", value)  # nobody looks at these MFUs
    torch.manual_seed(0)
    return tmp_path
