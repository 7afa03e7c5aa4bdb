"""Peak FLOP/s, memory and bandwidth of known devices, from devices.csv. The clock's MFU, `explain`
and `advise` use this one table. It needs no torch, because log readers use it too.

    find_device("NVIDIA GeForce RTX 4070")    # a name that torch or a log prints, or None
    device_named("4070")                      # a name that a person types, or an error

Names are matched by whole words, so an A10G is not an A10, and an L40 is not an L4. A laptop card
has the same name as a desktop card that is twice as fast, so a laptop card without its own row in
the table is unknown. So is a slice (MIG) of a card.
"""

import csv
import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from stepglass.errors import ConfigError
from stepglass.units import shown

FORMATS = ("bf16", "fp16", "tf32", "fp32")
# In a name these words mean another device than the same name without them.
OTHER_DEVICE = {"laptop", "mobile", "max-q", "mig", "d"}
NOT_NAMES = {"nvidia", "geforce", "gpu", "tesla", "amd", "instinct", "mac", "macbook"}
GLUED = re.compile(r"(?<=tx)(?=\d{4})|(?<=\d)(?=(?:ti|super|laptop|max|pro|ultra)\b)")  # rtx4070ti
MEMORY_IN_NAME = re.compile(r"\b(\d{1,3})\s?(?:gb|gib|g)\b")


@dataclass(frozen=True)
class KnownDevice:
    """A row of the table."""

    name: str
    # By number format (bf16, fp16, tf32, fp32), without those that the device does not support. If
    # the sizes differ, the highest: a printed name does not say which it is.
    tflops: dict[str, float]
    tflops_by_size: dict[str, tuple[float, ...]]  # of each size, or one for all
    grade: str
    sources: str
    memory_gb: tuple[float, ...]  # the sizes that are sold, the usual one first
    bandwidth_gbs: tuple[float, ...]  # of each size, or one for all
    tokens: tuple[str, ...]
    half_over_shader: float | None  # bf16 or fp16 over the shader's fp32, where it is a rule
    chosen_gb: float | None = None  # the size, if its name says so

    def peak_flops(self, number_format: str) -> float | None:
        tflops = self.tflops.get(number_format)
        return None if tflops is None else tflops * 1e12

    @property
    def is_apple(self) -> bool:
        return self.name.startswith("Apple")

    @property
    def memory_bytes(self) -> float:
        """The memory; the usual size, if the name does not say which."""
        return (self.chosen_gb or self.memory_gb[0]) * 1e9

    @property
    def bytes_per_s(self) -> float:
        """The memory's bandwidth."""
        sizes = dict(zip(self.memory_gb, self.bandwidth_gbs, strict=False))
        return sizes.get(self.memory_bytes / 1e9, self.bandwidth_gbs[0]) * 1e9

    def with_memory(self, gigabytes: float) -> "KnownDevice":
        """This device with the size that is sold nearest to the given one: drivers report 23.6 GB
        of a card with 24."""
        nearest = min(self.memory_gb, key=lambda size: abs(size - gigabytes))
        place = self.memory_gb.index(nearest)
        tflops = {key: of[min(place, len(of) - 1)] for key, of in self.tflops_by_size.items()}
        return replace(self, chosen_gb=nearest, tflops=tflops)

    @property
    def other_sizes_gb(self) -> tuple[float, ...]:
        """The sizes that it may have as well, if its name does not say which."""
        return () if self.chosen_gb else self.memory_gb[1:]


def find_device(name: str) -> KnownDevice | None:
    """The device that a printed name belongs to, or None.

    >>> find_device("NVIDIA GeForce RTX 4070 Ti").peak_flops("bf16")
    80200000000000.0
    >>> find_device("NVIDIA A100-SXM4-80GB").memory_bytes
    80000000000.0
    >>> find_device("NVIDIA A10G"), find_device("NVIDIA GeForce RTX 3080 Laptop GPU")
    (None, None)
    """
    said = name.lower()
    others = OTHER_DEVICE & set(re.findall(r"[\w-]+", said))
    for known in known_devices():
        if others - set(_words(known)):
            continue
        if all(re.search(rf"\b{re.escape(token)}\b", said) for token in known.tokens):
            memory = MEMORY_IN_NAME.search(said)
            is_sold = memory is not None and float(memory[1]) in known.memory_gb
            return known.with_memory(float(memory[1])) if memory and is_sold else known
    return None


def device_named(text: str) -> KnownDevice:
    """The device that a person means: a whole name, or some of its words, such as 4070,
    m3 max or 4060 ti 16gb.
    Raises ConfigError with a few names if there is none, or more than one.

    >>> device_named("4070").name, device_named("m3 max").name
    ('GeForce RTX 4070', 'Apple M3 Max GPU')
    """
    said = GLUED.sub(" ", text.lower())
    known = find_device(said)
    if known is not None:
        return _with_memory_in(said, text, known)
    wanted = set(re.findall(r"[\w]+", MEMORY_IN_NAME.sub(" ", said))) - NOT_NAMES
    fitting = [each for each in known_devices() if wanted and wanted <= set(_words(each))]
    fewest = min((len(_words(each)) for each in fitting), default=0)
    nearest = [each for each in fitting if len(_words(each)) == fewest]
    if len(nearest) == 1:
        return _with_memory_in(said, text, nearest[0])
    if nearest:
        raise ConfigError(f"--device={shown(text)}: several fit: {_listed(nearest)}; name one")
    raise ConfigError(
        f"--device={shown(text)}: not in the table of known devices; for example: "
        f"{_listed(_near(text))}"
    )


def _words(known: KnownDevice) -> tuple[str, ...]:
    return tuple(word for token in known.tokens for word in token.split())


def _with_memory_in(said: str, text: str, known: KnownDevice) -> KnownDevice:
    """The device with the memory that its name says. Raises ConfigError if it is not sold so."""
    memory = MEMORY_IN_NAME.search(said)
    if memory is None:
        return known
    if float(memory[1]) not in known.memory_gb:
        sizes = " or ".join(f"{size:g}" for size in sorted(known.memory_gb))
        raise ConfigError(
            f"--device={shown(text)}: expected {sizes} GB for {known.name}, found {memory[1]} GB"
        )
    return known.with_memory(float(memory[1]))


def _near(text: str) -> list[KnownDevice]:
    """Devices with names like this one; a few common ones if there are none."""
    names = {each.name.lower(): each for each in known_devices()}
    short = {" ".join(_words(each)): each for each in known_devices()}
    shortest = {re.sub("^(rtx|apple) ", "", words): each for words, each in short.items()}
    by_name = names | short | shortest
    close = difflib.get_close_matches(text.lower(), by_name, n=6, cutoff=0.55)
    found = list(dict.fromkeys(by_name[each].name for each in close))[:3]
    wanted = found or ["GeForce RTX 4090", "A100", "Apple M3 Max GPU"]
    return [names[name.lower()] for name in wanted]


def _listed(found: Iterable[KnownDevice], most: int = 4) -> str:
    names = [each.name.removeprefix("GeForce ").removesuffix(" GPU") for each in found]
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")


@cache
def known_devices() -> tuple[KnownDevice, ...]:
    """All rows, special names before general ones."""
    text = Path(__file__).with_name("devices.csv").read_text()
    rows = csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
    return tuple(
        KnownDevice(
            name=row["name"],
            tflops={key: max(_numbers(row[key])) for key in FORMATS if row[key]},
            tflops_by_size={key: _numbers(row[key]) for key in FORMATS if row[key]},
            grade=row["grade"],
            sources=row["sources"],
            memory_gb=_numbers(row["mem_gb"]),
            bandwidth_gbs=_numbers(row["bw_gbs"]),
            tokens=tuple(row["tokens"].split(";")),
            half_over_shader=float(row["k"]) if row["k"] else None,
        )
        for row in rows
    )


def _numbers(text: str) -> tuple[float, ...]:
    """One number, or one for each size."""
    return tuple(map(float, text.split("|")))
