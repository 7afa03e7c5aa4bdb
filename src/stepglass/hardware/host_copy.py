"""Copies of a run's tensors to the host, made beside training.

Weights change only at the end of an update. A copy may therefore go on while the next update's
gradients are computed, as long as it is protected from the change at its end.
"""

import threading
from collections import deque
from typing import Any

import numpy as np
import torch
from torch import Tensor

PIECE = 4 << 20
WORTH_A_THREAD = 32 << 20  # a smaller copy takes less time than a thread would cost the next step


class Copy:
    """A copy to the host that is done."""

    def protect(self) -> None:
        """Call before the sources change, and the copy will not see it."""

    def wait(self) -> None:
        """Wait until the targets hold everything."""


class SharedCopy(Copy):
    """A copy from memory to memory, in pieces. A thread works through them while training goes on;
    if training needs the weights back sooner, it helps."""

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
                np.copyto(as_bytes(target)[part], as_bytes(source)[part])  # without Python's lock
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
    """The bytes of a contiguous tensor on the host, not copied."""
    return tensor.detach().view(-1).view(torch.uint8).numpy()


class CudaCopy(Copy):
    """A copy on a stream of its own, while the next forward and backward pass run. Before the
    weights change it holds the device back, not the host."""

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
