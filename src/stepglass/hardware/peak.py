"""The peak FLOP/s of a device, which is the denominator of the MFU."""

from dataclasses import dataclass

from stepglass import units
from stepglass.hardware.cpu_peak import measure_cpu_peak
from stepglass.hardware.device import Device
from stepglass.hardware.ranks import this_rank
from stepglass.measure import devices


@dataclass(frozen=True)
class Peak:
    """The peak FLOP/s of a device for a dtype, and the source of this number."""

    flops_per_s: float | None
    source: str


def measured_again(old: Peak, device: Device) -> Peak:
    """Measure the peak again, and return the higher value. Call this if the peak is unknown, or if
    a step was faster than the peak: then the machine was busy during the first measurement."""
    new = find_peak(device)
    if new.flops_per_s is None or (old.flops_per_s or 0) >= new.flops_per_s:
        return old
    return new


def find_peak(device: Device) -> Peak:
    """The peak of all devices of a run: each process has one, and they are taken to be alike."""
    one, processes = _peak_of_one(device), this_rank().of
    if one.flops_per_s is None or processes == 1:
        return one
    whole = processes * one.flops_per_s
    source = f"{units.flops_rate(whole)}: {processes} processes, each with {one.source}"
    return Peak(whole, source)


def _peak_of_one(device: Device) -> Peak:
    """The peak of a device. It is measured on a CPU, and taken from the device table for a GPU. If
    the table does not have it, it is unknown, never guessed."""
    if device.type == "cpu":
        measured = measure_cpu_peak(device.threads, device.dtype)
        if measured is None:
            return Peak(None, "unknown: the machine is too busy to measure it")
        return Peak(
            measured, f"{units.flops_rate(measured)}, the best matrix products measured here"
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
