"""Talking to a device that works through a queue, without waiting for it.

    timer = EventTimer(device)          # marks in the queue, read once they are passed
    x = BatchSender(device).send(x)     # a copy beside the computation

CUDA is reached by PyTorch's general `torch.Event`, `torch.Stream` and `torch.accelerator`, so that
a fake can stand for the device in tests. Apple GPUs have one queue and their own events.
"""

import functools
from collections import deque
from typing import Any

import torch
from torch import Tensor


class EventTimer:
    """Uses a device's events as marks for the clock. Events are reused."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._free = [self._new() for _ in range(64)]

    def _new(self) -> Any:
        return torch.Event(self._device, enable_timing=True)

    def mark(self) -> Any:
        event = self._free.pop() if self._free else self._new()
        event.record()
        return event

    def is_passed(self, mark: Any) -> bool:
        return bool(mark.query())

    def is_readable(self, mark: Any) -> bool:
        return self.is_passed(mark)

    def elapsed_ms(self, start: Any, end: Any) -> float:
        return float(start.elapsed_time(end))

    def recycle(self, mark: Any) -> None:
        self._free.append(mark)


class AppleTimer(EventTimer):
    """Marks for an Apple GPU. Reading a time there waits for everything that was queued. So times
    are read when the newest mark is passed anyway, or when many marks have come together. It also
    waits for a signal of the end mark, which comes once: a second read would wait for ever."""

    MANY = 400  # marks: some ten updates

    def __init__(self, device: torch.device) -> None:
        super().__init__(device)
        self._newest: Any = None
        self._num_open = 0

    def _new(self) -> Any:
        return torch.mps.event.Event(enable_timing=True)

    def mark(self) -> Any:
        self._newest = super().mark()
        self._num_open += 1
        return self._newest

    def is_readable(self, mark: Any) -> bool:
        return self._num_open >= self.MANY or self.is_passed(self._newest)

    def elapsed_ms(self, start: Any, end: Any) -> float:
        try:
            return float(start.elapsed_time(end))
        except RuntimeError:  # nothing was queued between them: both have the same time
            return 0.0

    def recycle(self, mark: Any) -> None:
        self._num_open -= 1
        super().recycle(mark)


def timer_of(device: torch.device) -> EventTimer:
    """Marks for the clock, on a device with a queue."""
    return AppleTimer(device) if device.type == "mps" else EventTimer(device)


class BatchSender:
    """Copies batches on a stream of their own: a batch arrives while the device computes the one
    before. Only the computation waits for it, not the host."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream = torch.Stream(device)

    def send(self, host: Tensor) -> Tensor:
        source = pinned_copy(host)
        computing = torch.accelerator.current_stream(self._device)
        with self._stream:
            there = source.to(self._device, non_blocking=True)
            arrived = self._stream.record_event()
        computing.wait_event(arrived)
        there.record_stream(computing)  # its memory is not given away before that stream is done
        return there


class AppleSender:
    """Copies batches to an Apple GPU without a wait. The GPU reads the host's memory when it comes
    to the copy, so that memory is kept until then."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._in_flight: deque[tuple[Any, Tensor]] = deque()

    def send(self, host: Tensor) -> Tensor:
        there = host.to(self._device, non_blocking=True)
        copied = torch.mps.event.Event()
        copied.record()
        self._in_flight.append((copied, host))
        while self._in_flight[0][0].query():
            self._in_flight.popleft()
            if not self._in_flight:
                break
        return there


@functools.cache
def sender_of(device: torch.device) -> BatchSender | AppleSender:
    """The sender of a device with a queue: one for all batches of a process."""
    return AppleSender(device) if device.type == "mps" else BatchSender(device)


def pinned_copy(host: Tensor) -> Tensor:
    """A copy in memory that the device can read by itself."""
    return host.pin_memory()


def fetch_later(value: Tensor) -> Tensor:
    """Start to copy a small tensor to the host. The copy is complete when the device has passed a
    mark that is queued after it."""
    host = pinned_like(value)
    return host.copy_(value, non_blocking=True)


def pinned_like(value: Tensor) -> Tensor:
    return torch.empty(value.shape, dtype=value.dtype, pin_memory=True)
