"""The most FLOP/s a device can do: the number that an MFU divides by."""

import time
from dataclasses import dataclass

import torch

from stepglass import units
from stepglass.hardware.device import Device
from stepglass.measure import devices

PEAK_BUDGET_S = 0.25  # spent on measuring the peak
PEAK_SIZE = 1024  # of the square matrices it is measured with


@dataclass(frozen=True)
class Peak:
    """The most FLOP/s the device can do in a dtype, and where that number comes from."""

    flops_per_s: float | None
    source: str


def measured_again(old: Peak, device: Device) -> Peak:
    """The peak measured once more, if that is higher: a step faster than the peak proves that the
    machine was busy when it was measured."""
    new = find_peak(device)
    if new.flops_per_s is None or (old.flops_per_s or 0) >= new.flops_per_s:
        return old
    return new


def find_peak(device: Device) -> Peak:
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
    """FLOP/s of a square matrix product, the best of several: the highest rate any model can
    reach here.
    """
    size = 256
    a = torch.ones(size, size, device=device, dtype=dtype)  # no random numbers: training draws them
    start = time.perf_counter()
    torch.mm(a, a)
    if time.perf_counter() - start < 0.005:  # the machine does not emulate the format
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
