"""The device that the model runs on: a CPU, a CUDA GPU or an Apple GPU.

`choose.py` decides which device is used. The code for CUDA and MPS is kept short on purpose,
because parts of it were never run on such a device: docs/unverified.md lists them.
"""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from stepglass.hardware import memory
from stepglass.hardware.device_queue import fetch_later, sender_of
from stepglass.hardware.host_copy import (
    Copy,
    SharedCopy,
    StreamCopy,
    pinned_pages,
    zeroed_pages,
)


@dataclass(frozen=True)
class Device:
    """A device, and how the model runs on it."""

    torch_device: torch.device
    name: str
    dtype: torch.dtype
    threads: int  # of a CPU
    compile: bool
    replicas: int  # of the model, each with its own rows of a batch
    reasons: tuple[str, ...]  # one line per choice

    @property
    def type(self) -> str:
        return self.torch_device.type

    @property
    def is_async(self) -> bool:
        """True if the device queues its work. Then the clock puts marks into the queue."""
        return self.type != "cpu"

    def autocast(self) -> AbstractContextManager[Any]:
        """Context manager: matrix products use `dtype`, weights stay float32."""
        if self.dtype is torch.float32:
            return nullcontext()
        return torch.autocast(self.type, dtype=self.dtype)

    def grad_scaler(self) -> torch.amp.GradScaler:
        """A loss scaler. Without it, float16 gradients underflow. With other formats it does
        nothing."""
        return torch.amp.GradScaler(self.type, enabled=self.dtype is torch.float16)

    def send(self, host: Tensor) -> Tensor:
        """Copy a batch to the device without waiting for it."""
        if self.is_async:
            return sender_of(self.torch_device).send(host)
        return host.to(self.torch_device)

    def fetch_later(self, value: Tensor) -> Tensor:
        """Start to copy a small tensor to the host. Read the copy only after its lap is settled.
        (`.item()` on the tensor itself would wait for all work that was queued since. On an Apple
        GPU, a lap is read when nothing is queued, so the tensor itself will do.)
        """
        return fetch_later(value) if self.type == "cuda" else value

    def host_buffer(self, num_bytes: int) -> Tensor:
        """Host memory whose pages are already mapped, so that later copies are fast."""
        if self.type == "cuda":
            return pinned_pages(num_bytes, self.torch_device)
        return torch.from_numpy(zeroed_pages(num_bytes))

    def copy_to_host(self, pairs: list[tuple[Tensor, Tensor]]) -> Copy:
        """Start to copy pairs of (target on the host, source). Weights change only at the end of an
        update, so the copy can go on during the next forward and backward pass."""
        if self.type == "cuda":
            return StreamCopy(pairs, self.torch_device)
        if self.type == "cpu":
            return SharedCopy(pairs)
        for target, source in pairs:
            target.copy_(source)
        return Copy()

    def drain(self) -> None:
        """Wait until everything queued is done."""
        if self.is_async:
            torch.accelerator.synchronize(self.torch_device)

    def available_bytes(self) -> int | None:
        """Free memory for a model, or None if it is unknown."""
        if self.type == "cuda":
            return int(torch.cuda.mem_get_info(self.torch_device)[0])
        if self.type == "mps":
            return torch.mps.recommended_max_memory() - torch.mps.driver_allocated_memory()
        return memory.available_host_bytes()

    def used_bytes(self) -> int | None:
        """Memory that this process uses: reserved by torch on a GPU, resident on a CPU."""
        if self.type == "cuda":
            return int(torch.cuda.memory_reserved(self.torch_device))
        if self.type == "mps":
            return int(torch.mps.driver_allocated_memory())
        return memory.resident_bytes()
