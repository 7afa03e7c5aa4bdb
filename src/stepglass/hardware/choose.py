"""Chooses the device, the number format, the number of replicas, and whether to compile.

Every choice is returned together with its reason, so that it can be printed.
"""

import importlib.util
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from stepglass import units
from stepglass.errors import DeviceError
from stepglass.hardware.device import Device
from stepglass.hardware.ranks import Rank, this_rank
from stepglass.measure.compile_gain import COMPILE_S, SAVED_SHARE, compiling_pays
from stepglass.measure.console_lines import device_line, dtype_line
from stepglass.settings.train import TrainConfig

# Replicas are used only if they keep at least this share of the cores busy on average.
BUSY_CORES = 0.75
MAX_GRADIENT_BYTES = 1 << 30  # for the gradients of all replicas together
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def pick_type(asked: str) -> tuple[str, str]:
    """The device to use and the reason: the one that the user asked for, or the fastest one."""
    kind = asked.partition(":")[0]
    if asked == "auto":
        if torch.cuda.is_available():
            return "cuda", "a CUDA GPU is present"
        if torch.backends.mps.is_available():
            return "mps", "an Apple GPU is present"
        return "cpu", "no CUDA or Apple GPU was found"
    present = {
        "cpu": True,
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
    }
    if kind not in present:
        raise DeviceError(f"--device expects auto, cpu, cuda, cuda:N or mps, found {asked!r}")
    if not present[kind]:
        raise DeviceError(
            f"--device={asked}: torch {torch.__version__} finds no such device here; try "
            "--device=cpu"
        )
    try:
        index = torch.device(asked).index
    except RuntimeError as error:
        raise DeviceError(
            f"--device expects auto, cpu, cuda, cuda:N or mps, found {asked!r}"
        ) from error
    if kind == "cuda" and index is not None and index >= torch.cuda.device_count():
        raise DeviceError(
            f"--device={asked}: expected an index below {torch.cuda.device_count()}, found {index}"
        )
    return asked, "asked for"


def pick_dtype(kind: str, asked: str) -> tuple[torch.dtype, str]:
    """The number format of matrix products and the reason. By default this is bfloat16 or float16
    on a CUDA GPU, and float32 on other devices."""
    has_bf16 = kind == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    if asked != "auto":
        if asked == "bfloat16" and kind == "cuda" and not has_bf16:
            raise DeviceError(
                f"--dtype=bfloat16: {torch.cuda.get_device_name()} has no bfloat16 units; use "
                "--dtype=float16"
            )
        return DTYPES[asked], "asked for"
    if has_bf16:
        return torch.bfloat16, "this GPU has bfloat16 units"
    if kind == "cuda":
        return torch.float16, "this GPU has no bfloat16 units; float16 with loss scaling"
    return (
        torch.float32,
        "the fastest exact format on a CPU" if kind == "cpu" else "the safe format on an Apple GPU",
    )


def pick_compile(kind: str, asked: bool | str, run_s: float) -> tuple[bool, str]:
    """Whether to use torch.compile, and the reason. It pays if it saves more time in the run than
    compiling takes. `run_s` is what the run takes without, from updates that were timed."""
    if asked != "auto":
        return bool(asked), "asked for"
    obstacle = why_not_compiled(kind)
    if obstacle is not None:
        return False, obstacle
    compile_s, saved_s = COMPILE_S[kind], SAVED_SHARE[kind] * run_s
    saved = f"saves about {units.duration(1000 * saved_s)} of a run of about "
    saved += units.duration(1000 * run_s)
    return compiling_pays(
        kind, run_s
    ), f"compiling takes about {units.duration(1000 * compile_s)} and {saved}"


def why_not_compiled(kind: str) -> str | None:
    """Why torch.compile is not used on this kind of device unless asked for. None if it may be."""
    if kind == "mps":
        return "not tried on an Apple GPU"
    if kind == "cpu" and this_rank().is_one_of_several:
        return "not tried in several processes on a CPU"
    if kind == "cuda" and importlib.util.find_spec("triton") is None:
        return "torch.compile needs Triton, which is not installed"
    if kind == "cpu" and shutil.which("g++") is None and shutil.which("clang++") is None:
        return "torch.compile needs a C++ compiler, which is not installed"
    return None


def pick_replicas(device: Device, batch_size: int, num_params: int) -> tuple[int, str]:
    """The number of replicas and the reason. There is one replica per core, if the rows of a batch
    keep most cores busy."""
    threads = device.threads
    if device.type != "cpu":
        return 1, "one device"
    if sys.platform != "linux":
        return 1, "not tried on this system"
    if torch.cuda.is_available():
        return 1, "not tried beside a GPU"  # CUDA does not work in a forked process
    if this_rank().is_one_of_several:
        return 1, "not tried in several processes"
    if threads == 1:
        return 1, "one thread"
    if device.dtype is not torch.float32:
        return 1, f"not tried with {str(device.dtype).removeprefix('torch.')}"
    rows = math.ceil(batch_size / threads)
    if batch_size < BUSY_CORES * rows * threads:
        return 1, f"{threads} threads would share {batch_size} sequences unevenly"
    number = math.ceil(batch_size / rows)
    available = device.available_bytes()
    most = MAX_GRADIENT_BYTES if available is None else min(MAX_GRADIENT_BYTES, available // 4)
    if 4 * number * num_params > most:
        return 1, f"their gradients would take {units.size(4 * number * num_params)}"
    return number, f"one per core, {rows} of {batch_size} sequences each"


def pick_device(cfg: TrainConfig) -> Device:
    """Choose device and dtype. Compiling and replicas are decided later, by `choose_speed`."""
    asked, device_reason = pick_type(cfg.device)
    torch_device = device_of_rank(torch.device(asked), this_rank())
    if torch_device.type == "cuda" and torch_device.index is not None:
        torch.cuda.set_device(torch_device)  # events, generators and waits use the current device
    if torch_device.type == "cpu" and cfg.threads:
        use_threads(cfg.threads)
    dtype, dtype_reason = pick_dtype(torch_device.type, cfg.dtype)
    name = device_name(torch_device)
    dtype_name = str(dtype).removeprefix("torch.")
    return Device(
        torch_device,
        name,
        dtype,
        threads=torch.get_num_threads(),
        compile=False,  # decided when the length of the run is known
        replicas=1,  # decided when the size of the model is known
        reasons=(
            device_line(asked, name, device_reason),
            dtype_line(dtype_name, dtype_reason),
        ),
    )


def use_threads(threads: int) -> None:
    """Have PyTorch compute with this many threads."""
    cores = os.cpu_count() or 1
    if threads > cores:
        raise DeviceError(f"--threads={threads}: expected at most {cores}, the cores of this CPU")
    torch.set_num_threads(threads)


@contextmanager
def threads_as_before() -> Iterator[None]:
    """Context manager: `use_threads` holds until its end. A notebook trains more than once."""
    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)


def device_of_rank(device: torch.device, here: Rank) -> torch.device:
    """The device of this process, if it is one of several: each has a GPU of its own."""
    if not here.is_one_of_several or device.type == "cpu":
        return device
    if device.type == "mps" or device.index is not None:
        raise DeviceError(
            f"--device={device} is one device, found {here.of} processes; use --device=cuda or "
            "--device=cpu"
        )
    if here.local >= torch.cuda.device_count():
        raise DeviceError(
            f"expected a GPU for each process, found {torch.cuda.device_count()} for "
            f"{here.local_of} on this machine; try --nproc={torch.cuda.device_count()}"
        )
    return torch.device("cuda", here.local)


def device_name(device: torch.device) -> str:
    """The name of a device in the device table. For a CPU, the number of cores and threads."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    if device.type == "mps":
        chip = subprocess.run(
            ["sysctl", "-n", "machdep.cpu.brand_string"],
            capture_output=True,
            text=True,
            check=False,
        )
        return chip.stdout.strip() or "Apple GPU"
    return f"{os.cpu_count()} cores, {torch.get_num_threads()} threads"
