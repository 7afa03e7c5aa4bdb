"""Peak FLOP/s of known devices, from devices.csv. Needs no torch, because log readers use it too.

Names are matched by whole words, so an A10G is not an A10, and an L40 is not an L4. A laptop card
has the same name as a desktop card that is twice as fast, so a laptop card without its own row in
the table is unknown.
"""

import csv
import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class KnownDevice:
    """A row of the table."""

    name: str
    # By number format (bf16, fp16, tf32, fp32), without those that the device does not support.
    tflops: dict[str, float]
    grade: str
    memory_bytes: float | None = None

    def peak_flops(self, number_format: str) -> float | None:
        tflops = self.tflops.get(number_format)
        return None if tflops is None else tflops * 1e12


def find_device(name: str) -> KnownDevice | None:
    """The device that a name belongs to, or None.

    >>> find_device("NVIDIA GeForce RTX 4070 Ti").peak_flops("bf16")
    80200000000000.0
    >>> find_device("NVIDIA A10G"), find_device("NVIDIA GeForce RTX 3080 Laptop GPU")
    (None, None)
    """
    words = name.lower()
    for row in _rows():
        tokens = row["tokens"].split(";")
        if "laptop" in words and "laptop" not in tokens:
            continue
        if all(re.search(rf"\b{re.escape(token)}\b", words) for token in tokens):
            formats = {key: float(row[key]) for key in ("bf16", "fp16", "tf32", "fp32") if row[key]}
            memory = re.match(r"[\d.]+", row["mem_gb"])  # the smallest, if there are several
            return KnownDevice(
                row["name"], formats, row["grade"], float(memory[0]) * 1e9 if memory else None
            )
    return None


def _rows() -> list[dict[str, str]]:
    text = Path(__file__).with_name("devices.csv").read_text()
    return list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))
