"""Copies the tensors of a run to the host while training goes on.

Weights change only at the end of an update. So a copy can go on while the gradients of the next
update are computed. It must be complete before the weights change.
"""

import mmap
import os
import threading
import weakref
from collections import deque
from typing import Any

import numpy as np
import torch
from torch import Tensor

PIECE = 4 << 20
WORTH_A_THREAD = 32 << 20  # for a smaller copy, a thread would slow the next step by more time


class Copy:
    """A copy to the host. This base class is for a copy that is already complete."""

    def protect(self) -> None:
        """Call this before the sources change, so that the change does not get into the copy."""

    def wait(self) -> None:
        """Wait until the copy is complete."""


class SharedCopy(Copy):
    """A copy within main memory, in pieces. A thread copies them while training goes on. If
    training has to wait for the copy, the training thread copies pieces as well."""

    def __init__(self, pairs: list[tuple[Tensor, Tensor]]) -> None:
        self._pieces = deque(
            (target, source, start)
            for target, source in pairs
            for start in range(0, source.nbytes, PIECE)
        )
        self._lock = threading.Lock()
        self._num_left = len(self._pieces)
        self._done = threading.Event()
        self._error: Exception | None = None
        if not self._pieces:
            self._done.set()
        elif sum(source.nbytes for _, source in pairs) < WORTH_A_THREAD:
            self._work()
        else:
            threading.Thread(target=self._work, name="checkpoint-copy").start()

    def _work(self) -> None:
        while True:
            try:
                target, source, start = self._pieces.popleft()
            except IndexError:
                break
            try:
                part = slice(start, start + PIECE)
                np.copyto(as_bytes(target)[part], as_bytes(source)[part])  # releases the GIL
            except Exception as error:  # noqa: BLE001 - raised by `wait`
                self._error = error
            with self._lock:
                self._num_left -= 1
                if self._num_left == 0:
                    self._done.set()
        self._done.wait()

    def protect(self) -> None:
        self._work()

    def wait(self) -> None:
        self._work()
        if self._error is not None:
            raise self._error


def as_bytes(tensor: Tensor) -> "np.ndarray[Any, Any]":
    """The bytes of a contiguous tensor on the host, without a copy."""
    return tensor.detach().view(-1).view(torch.uint8).numpy()


class StreamCopy(Copy):
    """A copy on a stream of its own during the next forward and backward pass. `protect` makes the
    device wait for the copy, but not the host."""

    def __init__(self, pairs: list[tuple[Tensor, Tensor]], device: torch.device) -> None:
        self._device = device
        stream = torch.Stream(device)
        stream.wait_stream(torch.accelerator.current_stream(device))
        with stream:
            for target, source in pairs:
                target.copy_(source, non_blocking=True)
            self._done = stream.record_event()

    def protect(self) -> None:
        torch.accelerator.current_stream(self._device).wait_event(self._done)

    def wait(self) -> None:
        self._done.synchronize()


def zeroed_pages(num_bytes: int) -> "np.ndarray[Any, Any]":
    """Host memory whose pages are already mapped. Not from the heap: a large block in its middle
    would make the heap grow even more."""
    private = {} if os.name == "nt" else {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS}
    pages = mmap.mmap(-1, max(num_bytes, 1), **private)
    array = np.frombuffer(pages, dtype=np.uint8)[:num_bytes]
    array[:] = 0
    return array


def pinned_pages(num_bytes: int, device: torch.device) -> Tensor:
    """The same, in memory that a CUDA GPU can write by itself. PyTorch's own would be rounded up to
    a power of two: 2 GB for a snapshot of 1.1 GB."""
    pages = zeroed_pages(num_bytes)
    cudart, address = torch.cuda.cudart(), pages.ctypes.data  # type: ignore[no-untyped-call]
    # A new thread would use the first GPU, and take hundreds of megabytes of it for that.
    with torch.cuda.device(device):
        if num_bytes == 0 or int(cudart.cudaHostRegister(address, num_bytes, 0)) != 0:
            return torch.zeros(num_bytes, dtype=torch.uint8, pin_memory=True)
    weakref.finalize(pages, cudart.cudaHostUnregister, address)
    return torch.from_numpy(pages)
