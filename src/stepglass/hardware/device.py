"""The device that the model runs on: a CPU, a CUDA GPU or an Apple GPU.

`choose.py` decides which device is used. The code for CUDA and MPS is kept short on purpose,
because parts of it were never run on such a device: docs/unverified.md lists them.
"""

import mmap
import os
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from stepglass.hardware import memory
from stepglass.hardware.host_copy import Copy, CudaCopy, SharedCopy


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
        """True if the device queues its work and the clock can put marks into the queue."""
        return self.type == "cuda"

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
        if self.type == "cuda":
            return host.pin_memory().to(self.torch_device, non_blocking=True)
        return host.to(self.torch_device)

    def fetch_later(self, value: Tensor) -> Tensor:
        """Start to copy a small tensor to the host. Read the copy only after its lap is settled.
        (`.item()` on the tensor itself would wait for all work that was queued since.)
        """
        if self.type != "cuda":
            return value
        host = torch.empty(value.shape, dtype=value.dtype, pin_memory=True)
        return host.copy_(value, non_blocking=True)

    def host_buffer(self, num_bytes: int) -> Tensor:
        """Host memory whose pages are already mapped, so that later copies are fast."""
        if self.type == "cuda":
            return torch.zeros(num_bytes, dtype=torch.uint8, pin_memory=True)
        # Do not use the heap: a large block in its middle would make the heap grow even more.
        private = {} if os.name == "nt" else {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS}
        pages = mmap.mmap(-1, max(num_bytes, 1), **private)
        array = np.frombuffer(pages, dtype=np.uint8)[:num_bytes]
        array[:] = 0
        return torch.from_numpy(array)

    def copy_to_host(self, pairs: list[tuple[Tensor, Tensor]]) -> Copy:
        """Start to copy pairs of (target on the host, source). Weights change only at the end of an
        update, so the copy can go on during the next forward and backward pass."""
        if self.type == "cuda":
            return CudaCopy(pairs)
        if self.type == "cpu":
            return SharedCopy(pairs)
        for target, source in pairs:
            target.copy_(source)
        return Copy()

    def finish_queue(self) -> None:
        """Wait for a device that queues its work but has no marks for the clock (MPS), so that its
        time counts for the right phase."""
        if self.type == "mps":
            torch.mps.synchronize()

    def drain(self) -> None:
        """Wait until everything queued is done."""
        if self.type == "cuda":
            torch.cuda.synchronize()

    def available_bytes(self) -> int | None:
        """Free memory for a model, or None if it is unknown."""
        if self.type == "cuda":
            return int(torch.cuda.mem_get_info(self.torch_device)[0])
        return memory.available_host_bytes()

    def used_bytes(self) -> int | None:
        """Memory that this process uses: reserved by torch on a GPU, resident on a CPU."""
        if self.type == "cuda":
            return int(torch.cuda.memory_reserved(self.torch_device))
        if self.type == "mps":
            return int(torch.mps.driver_allocated_memory())
        return memory.resident_bytes()


class CudaTimer:
    """Uses CUDA events as marks for the clock. Events are reused."""

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
