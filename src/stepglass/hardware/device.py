"""The machine: which device, which number format, whether to compile; and why.

Every choice the user did not make comes back with its reason, to be printed. What is done for CUDA
and MPS is thin on purpose: docs/unverified.md lists what was never run on one.
"""

import importlib.util
import math
import mmap
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from stepglass import units
from stepglass.errors import DeviceError
from stepglass.hardware.host_copy import Copy, CudaCopy, SharedCopy
from stepglass.measure import devices
from stepglass.settings.train import TrainConfig

PEAK_BUDGET_S = 0.25  # spent on measuring the peak
PEAK_SIZE = 1024  # of the square matrices it is measured with
# Seconds of warm-up, and the share of an iteration that compiling saves. For a CPU as measured
# (docs/recipes.md); for a GPU as others report, which was never measured here.
COMPILING = {"cpu": (60.0, 0.1), "cuda": (60.0, 0.35)}
USUAL_MFU = 0.4
BUSY_CORES = 0.75  # of all, on average, or the model is not shared out by rows
GRADIENTS = 1 << 30  # bytes that those of all replicas may take
# By these people choose other kernels than the libraries would.
KERNEL_VARIABLES = (
    "ATEN_CPU_CAPABILITY",
    "MKL_ENABLE_INSTRUCTIONS",
    "MKL_CBWR",
    "ONEDNN_MAX_CPU_ISA",
    "DNNL_MAX_CPU_ISA",
)
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass(frozen=True)
class Peak:
    """The most FLOP/s the device can do in a dtype, and where that number comes from."""

    flops_per_s: float | None
    source: str


@dataclass(frozen=True)
class Device:
    """Where and how the model runs."""

    torch_device: torch.device
    name: str
    dtype: torch.dtype
    threads: int  # of a CPU
    compile: bool
    replicas: int  # of the model, each with its own rows of a batch
    reasons: tuple[str, ...]  # one sentence for each choice

    @property
    def type(self) -> str:
        return self.torch_device.type

    @property
    def is_async(self) -> bool:
        """True where queued work goes on after Python has moved on, and can be marked in time."""
        return self.type == "cuda"

    def autocast(self) -> AbstractContextManager[Any]:
        """Matrix work in `dtype`; master weights stay float32."""
        if self.dtype is torch.float32:
            return nullcontext()
        return torch.autocast(self.type, dtype=self.dtype)

    def grad_scaler(self) -> torch.amp.GradScaler:
        """float16 underflows without loss scaling; with other formats the scaler does nothing."""
        return torch.amp.GradScaler(self.type, enabled=self.dtype is torch.float16)

    def send(self, host: Tensor) -> Tensor:
        """Copy a batch to the device without waiting for it."""
        if self.type == "cuda":
            return host.pin_memory().to(self.torch_device, non_blocking=True)
        return host.to(self.torch_device)

    def fetch_later(self, value: Tensor) -> Tensor:
        """Start copying a small tensor to the host. Read it only once the lap it belongs to is
        settled: `.item()` on the device's own tensor would wait for everything queued since.
        """
        if self.type != "cuda":
            return value
        host = torch.empty(value.shape, dtype=value.dtype, pin_memory=True)
        return host.copy_(value, non_blocking=True)

    def host_buffer(self, num_bytes: int) -> Tensor:
        """Host memory that is really there: touched once, so that no later copy waits for pages."""
        if self.type == "cuda":
            return torch.zeros(num_bytes, dtype=torch.uint8, pin_memory=True)
        # Not from the heap: a block of this size in its middle would make it grow by more.
        private = {} if os.name == "nt" else {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS}
        pages = mmap.mmap(-1, max(num_bytes, 1), **private)
        array = np.frombuffer(pages, dtype=np.uint8)[:num_bytes]
        array[:] = 0
        return torch.from_numpy(array)

    def copy_to_host(self, pairs: list[tuple[Tensor, Tensor]]) -> Copy:
        """Begin to copy (target on the host, source) pairs. Weights change only at the end of an
        update, so the copy may go on beside the forward and backward pass of the next one."""
        if self.type == "cuda":
            return CudaCopy(pairs)
        if self.type == "cpu":
            return SharedCopy(pairs)
        for target, source in pairs:
            target.copy_(source)
        return Copy()

    def finish_queue(self) -> None:
        """Wait for a device that queues work but leaves no marks for the clock: time it by
        waiting.
        """
        if self.type == "mps":
            torch.mps.synchronize()

    def drain(self) -> None:
        """Wait until everything queued is done."""
        if self.type == "cuda":
            torch.cuda.synchronize()

    def available_bytes(self) -> int | None:
        """Memory a model could still have, where it can be told."""
        if self.type == "cuda":
            return int(torch.cuda.mem_get_info(self.torch_device)[0])
        return available_host_bytes()

    def used_bytes(self) -> int | None:
        """Memory this process has: what torch holds on a GPU, what is resident on a CPU."""
        if self.type == "cuda":
            return int(torch.cuda.memory_reserved(self.torch_device))
        if self.type == "mps":
            return int(torch.mps.driver_allocated_memory())
        return resident_bytes()


class CudaTimer:
    """CUDA events as the clock's marks: recorded at phase edges, read when passed, used again."""

    def __init__(self) -> None:
        self._free = [self._new() for _ in range(64)]

    @staticmethod
    def _new() -> Any:
        return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]

    def mark(self) -> Any:
        event = self._free.pop() if self._free else self._new()
        event.record()
        return event

    def elapsed_ms(self, start: Any, end: Any) -> float | None:
        return float(start.elapsed_time(end)) if end.query() else None

    def recycle(self, mark: Any) -> None:
        self._free.append(mark)


@cache
def processor() -> dict[str, str]:
    """All that decides how a CPU rounds: which one it is, and which kernels are chosen for it."""
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
    """As Linux tells it: the name alone stands for several generations."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() or platform.machine()
    first = dict(re.findall(r"^([\w ]+?)\s*: (.+)$", text.partition("\n\n")[0], re.MULTILINE))
    name = first.get("model name") or platform.machine()
    kind = [f"{key} {first[key]}" for key in ("cpu family", "model", "stepping") if key in first]
    return ", ".join([name, *kind])


def resident_bytes() -> int | None:
    """Main memory this process has, where Linux tells."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError, AttributeError):
        return None


def available_host_bytes() -> int | None:
    """Memory this process could still have, where Linux tells: the machine's, or its container's
    if that is less."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        available = next(int(x.split()[1]) * 1024 for x in lines if x.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return None
    try:
        group = Path("/sys/fs/cgroup")
        limit = int((group / "memory.max").read_text())
        used = int((group / "memory.current").read_text())
        kinds = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        # The page cache makes way; memory that processes share is counted there, and does not.
        cache = int(kinds["file"]) - int(kinds.get("shmem", 0))
        return min(available, limit - used + cache)
    except (OSError, ValueError, KeyError):  # no container, or one without a limit
        return available


def pick_type(asked: str) -> tuple[str, str]:
    """The device to use and the reason: what was asked for, else the fastest that is there."""
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
    """The format of matrix work: bfloat16 where the hardware has it, float32 elsewhere."""
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


def pick_compile(
    kind: str, asked: bool | str, run_flops: float, peak_flops: float | None
) -> tuple[bool, str]:
    """torch.compile pays where what it saves in the run outlasts its warm-up."""
    if asked != "auto":
        return bool(asked), "asked for"
    if kind == "mps":
        return False, "not tried on an Apple GPU"
    if kind == "cuda" and importlib.util.find_spec("triton") is None:
        return False, "torch.compile needs Triton, which is not installed"
    if kind == "cpu" and shutil.which("g++") is None and shutil.which("clang++") is None:
        return False, "torch.compile needs a C++ compiler, which is not installed"
    warm_up_s, share = COMPILING[kind]
    if peak_flops is None:
        return True, "how long the run is cannot be told; a GPU mostly earns the compile time back"
    run_s = run_flops / (USUAL_MFU * peak_flops)
    does_pay = share * run_s > warm_up_s
    saved = f"saves about {units.duration(1000 * share * run_s)} of a run of about "
    saved += units.duration(1000 * run_s)
    return does_pay, f"compiling takes about {units.duration(1000 * warm_up_s)} and {saved}"


def pick_replicas(device: Device, batch_size: int, num_params: int) -> tuple[int, str]:
    """A replica of the model on every core, if few cores would be left without rows."""
    threads = device.threads
    if device.type != "cpu":
        return 1, "one device"
    if sys.platform != "linux":
        return 1, "not tried on this system"
    if torch.cuda.is_available():
        return 1, "not tried beside a GPU"  # a fork does not take CUDA along
    if threads == 1:
        return 1, "one thread"
    if device.dtype is not torch.float32:
        return 1, f"not tried with {str(device.dtype).removeprefix('torch.')}"
    rows = math.ceil(batch_size / threads)
    if batch_size < BUSY_CORES * rows * threads:
        return 1, f"{threads} threads would share {batch_size} sequences unevenly"
    number = math.ceil(batch_size / rows)
    available = device.available_bytes()
    most = GRADIENTS if available is None else min(GRADIENTS, available // 4)
    if 4 * number * num_params > most:
        return 1, f"their gradients would take {units.size(4 * number * num_params)}"
    return number, f"one a core, {rows} of {batch_size} sequences each"


def pick(cfg: TrainConfig) -> Device:
    """Decide on device and dtype, with reasons."""
    processes = os.environ.get("WORLD_SIZE", "1")  # torchrun's word for them
    if processes.isdecimal() and int(processes) > 1:
        raise DeviceError(
            f"WORLD_SIZE={processes}: expected one process on one device, found one of "
            f"{processes}; start stepglass without torchrun"
        )
    asked, device_reason = pick_type(cfg.device)
    torch_device = torch.device(asked)
    if torch_device.type == "cuda" and torch_device.index is not None:
        torch.cuda.set_device(torch_device)  # events, generators and waits follow the current one
    dtype, dtype_reason = pick_dtype(torch_device.type, cfg.dtype)
    name = device_name(torch_device)
    dtype_name = str(dtype).removeprefix("torch.")
    return Device(
        torch_device,
        name,
        dtype,
        threads=torch.get_num_threads(),
        compile=False,  # until it is known how long the run will be
        replicas=1,  # until it is known how large the model is
        reasons=(
            f"device: {asked} ({name}): {device_reason}",
            f"dtype: {dtype_name}: {dtype_reason}",
        ),
    )


def device_name(device: torch.device) -> str:
    """The name the device table knows it by; for a CPU, what matters here: cores and threads."""
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


def measured_again(old: Peak, device: Device) -> Peak:
    """A step faster than the peak proves that the machine was busy when the peak was measured."""
    new = peak(device)
    if new.flops_per_s is None or (old.flops_per_s or 0) >= new.flops_per_s:
        return old
    return new


def peak(device: Device) -> Peak:
    """From the table for a GPU it knows; measured on a CPU; unknown elsewhere. Never a guess."""
    if device.type == "cpu":
        before = torch.get_num_threads()
        torch.set_num_threads(device.threads)  # also where replicas have one each
        measured = measure_matmul(device.torch_device, device.dtype)
        torch.set_num_threads(before)
        return Peak(
            measured, f"{units.flops_rate(measured)}, the best matrix product measured here"
        )
    dtype_name = str(device.dtype).removeprefix("torch.")
    known = devices.find(device.name)
    if known is None:
        return Peak(None, f"{device.name} is not in the device table")
    column = {
        "float32": "tf32" if device.type == "cuda" else "fp32",
        "bfloat16": "bf16",
        "float16": "fp16",
    }[dtype_name]
    rate = known.peak_flops(column)
    if rate is None:
        return Peak(None, f"the device table has no {column} figure for {known.name}")
    return Peak(rate, f"device table: {known.name}, {column}, {units.flops_rate(rate)}")


def measure_matmul(
    device: torch.device, dtype: torch.dtype, budget_s: float | None = None
) -> float:
    """FLOP/s of a square matrix product, the best of several: the highest rate any model can
    reach here.
    """
    size = 256
    a = torch.ones(size, size, device=device, dtype=dtype)  # no random numbers: they are training's
    start = time.perf_counter()
    torch.mm(a, a)
    if time.perf_counter() - start < 0.005:  # not a format that this machine emulates
        size = PEAK_SIZE
        a = torch.ones(size, size, device=device, dtype=dtype)
    best = float("inf")
    deadline = time.perf_counter() + (PEAK_BUDGET_S if budget_s is None else budget_s)
    rounds = 0
    while rounds < 3 or time.perf_counter() < deadline:
        start = time.perf_counter()
        torch.mm(a, a)
        best = min(best, time.perf_counter() - start)
        rounds += 1
    return 2 * size**3 / best
