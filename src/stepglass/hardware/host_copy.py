"""Copies the tensors of a run to the host while training goes on.

Weights change only at the end of an update. So a copy can go on while the gradients of the next
update are computed. It must be complete before the weights change.
"""

import threading
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


class CudaCopy(Copy):
    """A copy on a separate CUDA stream during the next forward and backward pass. `protect` makes
    the device wait for the copy, but not the host."""

    def __init__(self, pairs: list[tuple[Tensor, Tensor]]) -> None:
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for target, source in pairs:
                target.copy_(source, non_blocking=True)
            self._done = torch.cuda.Event()  # type: ignore[no-untyped-call]
            self._done.record()

    def protect(self) -> None:
        torch.cuda.current_stream().wait_event(self._done)

    def wait(self) -> None:
        self._done.synchronize()
