"""The peak FLOP/s of a device, which is the denominator of the MFU."""

import time
from dataclasses import dataclass

import torch

from stepglass import units
from stepglass.hardware.device import Device
from stepglass.measure import devices

PEAK_BUDGET_S = 0.25  # time for measuring the peak
PEAK_SIZE = 1024  # size of the square matrices for measuring the peak


@dataclass(frozen=True)
class Peak:
    """The peak FLOP/s of a device for a dtype, and the source of this number."""

    flops_per_s: float | None
    source: str


def measured_again(old: Peak, device: Device) -> Peak:
    """Measure the peak again, and return the higher value. Call this if a step was faster than the
    peak: then the machine was busy during the first measurement."""
    new = find_peak(device)
    if new.flops_per_s is None or (old.flops_per_s or 0) >= new.flops_per_s:
        return old
    return new


def find_peak(device: Device) -> Peak:
    """The peak of a device. It is measured on a CPU, and taken from the device table for a GPU. If
    the table does not have it, it is unknown, never guessed."""
    if device.type == "cpu":
        before = torch.get_num_threads()
        torch.set_num_threads(device.threads)  # all threads, even if each replica uses only one
        measured = measure_matmul(device.torch_device, device.dtype)
        torch.set_num_threads(before)
        return Peak(
            measured, f"{units.flops_rate(measured)}, the best matrix product measured here"
        )
    dtype_name = str(device.dtype).removeprefix("torch.")
    known = devices.find_device(device.name)
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
    """FLOP/s of a square matrix product, the best of several. No model can be faster on this
    machine.
    """
    size = 256
    # No random numbers: drawing some would change those that training gets.
    a = torch.ones(size, size, device=device, dtype=dtype)
    start = time.perf_counter()
    torch.mm(a, a)
    if time.perf_counter() - start < 0.005:  # fast, so the machine supports the format in hardware
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
