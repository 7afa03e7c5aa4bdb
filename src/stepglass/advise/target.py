"""Which device the advice is for: the one that was asked for, the one in a log, or this machine's.

This machine's GPU is found without torch: by nvidia-smi, or by the name of an Apple chip.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass

from stepglass.errors import ConfigError
from stepglass.explain.study import Part
from stepglass.measure.devices import KnownDevice, device_named, find_device
from stepglass.measure.memory_model import SPARE
from stepglass.measure.time_model import Chip, Kind, chip_of, cpu_chip
from stepglass.units import shown

# A part of a card's memory that no advice uses. The allocator keeps freed blocks, in pieces that do
# not fit the next request (nanoGPT #303: 18.8 GB in use where the sum is 15.4): the memory model
# spares 15 % for that. The driver and a desktop take some as well.
TAKEN = 0.06
MARGIN = 1 - (1 - TAKEN) * (1 - SPARE)
APPLE_SHARE = 0.67  # of unified memory: what macOS lets the GPU have by default
OWN = ("", "auto")  # the device of the log, or of this machine


@dataclass(frozen=True)
class Target:
    """The device, as far as it is known."""

    name: str | None
    kind: Kind
    known: KnownDevice | None = None
    memory_bytes: float | None = None
    cpu_peak_flops: float | None = None

    @property
    def available_bytes(self) -> float | None:
        """The memory that a process can have, or None if it is not known."""
        if self.memory_bytes is None:
            return None
        return (1 - TAKEN) * self.memory_bytes * (APPLE_SHARE if self.kind == "mps" else 1.0)

    def chip(self, dtype: str) -> Chip | None:
        if self.known is not None:
            size = self.known.memory_bytes if self.memory_bytes is None else self.memory_bytes
            return chip_of(self.known.with_memory(size / 1e9), dtype)
        return cpu_chip(self.cpu_peak_flops) if self.cpu_peak_flops else None

    def lacks(self, dtype: str) -> bool:
        """Is the number format known to be missing on this device?"""
        return self.known is not None and self.kind == "cuda" and self.chip(dtype) is None


def asked_for(text: str) -> Target:
    """The device that a person names."""
    kind = text.strip().lower().partition(":")[0]
    if kind == "cpu":
        return this_cpu()
    if kind in OWN:
        return this_machine()
    return _present(text, kind) if kind in ("cuda", "mps") else of_known(device_named(text))


def _present(text: str, kind: str) -> Target:
    """This machine's GPU. Raises ConfigError if it has none of that kind."""
    found = this_machine()
    if found.kind != kind:
        maker, example = ("CUDA", "4090") if kind == "cuda" else ("Apple", "'m3 max'")
        raise ConfigError(
            f"--device={shown(text)}: no {maker} GPU was found on this machine; name the one that "
            f"you mean, as in --device={example}, or leave --device out"
        )
    return found


def of_known(known: KnownDevice) -> Target:
    kind: Kind = "mps" if known.is_apple else "cuda"
    name = known.name.removeprefix("GeForce ").removesuffix(" GPU")
    return Target(name, kind, known, known.memory_bytes)


def of_part(part: Part) -> Target:
    """The device of a run. Most trainers do not print it: then its name is None."""
    facts = part.segment.facts
    name = facts.get("device")
    said = str(facts.get("device_type") or part.setting("device") or "cuda").partition(":")[0]
    known = find_device(name) if isinstance(name, str) else None
    if known is not None:
        return of_known(known)
    if said == "cpu":
        peak = part.fact("peak_tflops")
        return Target("CPU", "cpu", cpu_peak_flops=peak * 1e12 if peak else None,
                      memory_bytes=main_memory_bytes())  # fmt: skip
    kind: Kind = "mps" if said == "mps" else "cuda"
    return Target(name if isinstance(name, str) else None, kind)


def this_machine() -> Target:
    """The GPU of this machine, or its CPU."""
    found = _nvidia() if shutil.which("nvidia-smi") else None
    if found is None and sys.platform == "darwin":
        found = _apple()
    return found or this_cpu()


def this_cpu() -> Target:
    return Target("CPU", "cpu", memory_bytes=main_memory_bytes())


def main_memory_bytes() -> float | None:
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):  # Windows
        return None


def _nvidia() -> Target | None:
    line = _first_line("nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader")
    name, _, memory = line.partition(",")
    digits = memory.strip().partition(" ")[0]
    if not name:
        return None
    known = find_device(name)
    if known is None:
        size = float(digits) * 2**20 if digits.isdecimal() else None
        return Target(name.strip(), "cuda", memory_bytes=size)
    return of_known(known.with_memory(float(digits) * 2**20 / 1e9) if digits.isdecimal() else known)


def _apple() -> Target | None:
    known = find_device(_first_line("sysctl", "-n", "machdep.cpu.brand_string"))
    memory = main_memory_bytes()
    if known is None:
        return None
    return of_known(known.with_memory(memory / 2**30) if memory else known)


def _first_line(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.splitlines()[0] if done.returncode == 0 and done.stdout else ""
