"""The environment of a run: everything that must be the same to get bit-identical results."""

import platform
from typing import Any

import numpy as np
import torch

import stepglass
from stepglass.hardware.device import Device
from stepglass.hardware.processor import processor_facts


def environment(device: Device) -> dict[str, Any]:
    """The environment, for the run log and for checkpoints. When a run is resumed, the differences
    are printed."""
    return {
        "device": device.name,
        "device_type": device.type,
        "dtype": str(device.dtype).removeprefix("torch."),
        "compile": device.compile,
        "replicas": device.replicas,
        "threads": device.threads,
        "matmul_precision": torch.get_float32_matmul_precision(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        **(processor_facts() if device.type == "cpu" else {}),
        "versions": {
            "stepglass": stepglass.__version__,
            "torch": torch.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
    }
