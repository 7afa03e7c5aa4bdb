"""A device that does nothing until it is told to: its queues run late, and in any order.

    with LateDevice(monkeypatch) as device:
        there = BatchSender(DEVICE).send(batch)  # queued
        device.streams[1].run()                  # now it is copied

It stands behind `torch.Event`, `torch.Stream` and `torch.accelerator`. Copies that need not be
waited for are put into the current stream, with the contents that the source has when the copy
runs, as on a real device. A stream stops at an event that it waits for.
"""

from collections import deque

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class LateEvent:
    """Complete once its stream has come to it. `device` is set by `LateDevice`."""

    device: "LateDevice"

    def __init__(self, device=None, enable_timing=False):
        self.has_time = enable_timing
        self.is_complete = False
        self.at_ms = 0.0

    def record(self, stream=None):
        self.is_complete = False
        (stream or self.device.current).queue.append(self._complete)

    def _complete(self):
        self.device.now_ms += 1
        self.at_ms, self.is_complete = self.device.now_ms, True

    def query(self):
        return self.is_complete

    def synchronize(self):
        self.device.host_waits += 1
        self.device.run_until(lambda: self.is_complete)

    def elapsed_time(self, end):
        assert self.has_time
        assert end.has_time
        assert self.is_complete, "the real one raises here"
        assert end.is_complete, "the real one raises here"
        return end.at_ms - self.at_ms


class LateStream:
    """A queue of work."""

    device: "LateDevice"

    def __init__(self, device=None):
        self.queue = deque()
        self.device.streams.append(self)

    def __enter__(self):
        self._before, self.device.current = self.device.current, self

    def __exit__(self, *error):
        self.device.current = self._before

    def record_event(self):
        event = LateEvent()
        event.record(self)
        return event

    def wait_event(self, event):
        self.queue.append(event)

    def wait_stream(self, other):
        self.wait_event(other.record_event())

    def run(self, most=1_000_000):
        """Do some of the queued work, up to an event that is not complete."""
        while self.queue and most > 0:
            if isinstance(self.queue[0], LateEvent):
                if not self.queue[0].is_complete:
                    return
                self.queue.popleft()
            else:
                self.queue.popleft()()
            most -= 1


class LateDevice(TorchDispatchMode):
    """The device. Its first stream is the one that computes."""

    def __init__(self, monkeypatch):
        super().__init__()
        self.streams = []
        self.now_ms, self.host_waits = 0.0, 0
        LateEvent.device = LateStream.device = self
        self.current = LateStream()
        monkeypatch.setattr(torch, "Event", LateEvent)
        monkeypatch.setattr(torch, "Stream", LateStream)
        monkeypatch.setattr(torch.accelerator, "current_stream", lambda device=None: self.current)
        monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: tensor.clone())
        self.kept = []  # tensors whose memory a stream still needs

        def record_stream(tensor, stream):
            self.kept.append((tensor.data_ptr(), stream))

        def to(tensor, where, non_blocking):
            """The tensor on the device, which is this host in truth."""
            return torch.full_like(tensor, -1).copy_(tensor, non_blocking=non_blocking)

        monkeypatch.setattr(torch.Tensor, "record_stream", record_stream)
        monkeypatch.setattr(torch.Tensor, "to", to)

    @property
    def compute(self):
        return self.streams[0]

    def queue(self, work):
        """Queue work on the stream that computes."""
        self.compute.queue.append(work)

    def run_until(self, is_done):
        for _ in range(10_000):
            if is_done():
                return
            for stream in self.streams:
                stream.run(1)
        raise AssertionError("the streams wait for each other for ever")

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        is_late = kwargs.get("non_blocking") or args[2:3] == (True,)
        if func is torch.ops.aten.copy_.default and is_late:
            target, source = args[:2]
            self.current.queue.append(lambda: target.detach().copy_(source))
            return target
        return func(*args, **kwargs)
