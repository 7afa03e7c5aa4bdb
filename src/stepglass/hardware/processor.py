"""The CPU and its math kernels: everything that affects rounding."""

import os
import platform
import re
from functools import cache
from pathlib import Path

import torch

# Environment variables that make the math libraries use other kernels.
KERNEL_VARIABLES = (
    "ATEN_CPU_CAPABILITY",
    "MKL_ENABLE_INSTRUCTIONS",
    "MKL_CBWR",
    "ONEDNN_MAX_CPU_ISA",
    "DNNL_MAX_CPU_ISA",
)


@cache
def processor_facts() -> dict[str, str]:
    """Everything that affects rounding on a CPU: its model, and the kernels that are used on it."""
    libraries = re.findall(
        r"Math Kernel Library Version [\d.]+|MKL-DNN v[\d.]+|BLAS_INFO=\w+", torch.__config__.show()
    )
    asked = [f"{name}={os.environ[name]}" for name in KERNEL_VARIABLES if name in os.environ]
    return {
        "cpu": processor_name(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "math": ", ".join([*libraries, *asked]),
    }


def processor_name() -> str:
    """The CPU's name with family, model and stepping, because several generations of CPUs can have
    the same name."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() or platform.machine()
    first = dict(re.findall(r"^([\w ]+?)\s*: (.+)$", text.partition("\n\n")[0], re.MULTILINE))
    name = first.get("model name") or platform.machine()
    kind = [f"{key} {first[key]}" for key in ("cpu family", "model", "stepping") if key in first]
    return ", ".join([name, *kind])
