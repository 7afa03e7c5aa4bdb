"""Events, streams and copies, against a device that works late and out of order."""

import contextlib
import gc

import pytest
import torch

from helpers import FakeTime
from late_device import LateDevice
from stepglass.hardware import device_queue, host_copy
from stepglass.hardware.device_queue import (
    AppleSender,
    AppleTimer,
    BatchSender,
    EventTimer,
    fetch_later,
)
from stepglass.hardware.host_copy import StreamCopy, pinned_pages
from stepglass.measure.clock import PhaseClock

DEVICE = torch.device("meta")  # never used: the fake is on this host


@pytest.fixture
def device(monkeypatch):
    with LateDevice(monkeypatch) as late:
        yield late


def test_a_lap_is_read_once_all_its_marks_are_passed(device):
    clock = PhaseClock(FakeTime())
    clock.attach(EventTimer(DEVICE))
    laps = []
    for _ in range(3):
        with clock.phase("data"):
            pass
        with clock.phase("forward_backward"):
            device.queue(lambda: setattr(device, "now_ms", device.now_ms + 50))
        laps.append(clock.lap())
    assert [lap.is_settled() for lap in laps] == [False, False, False]
    device.compute.run(5)  # all but the last mark of the first lap
    assert not laps[0].is_settled()
    device.compute.run(2)
    assert [lap.is_settled() for lap in laps] == [True, False, False]
    device.compute.run()
    assert [lap.is_settled() for lap in laps] == [True, True, True]
    assert laps[2].device_phases == {"other": 3.0, "data": 1.0, "forward_backward": 51.0}
    assert device.host_waits == 0


def test_events_are_used_again(device):
    timer = EventTimer(DEVICE)
    mark = timer.mark()
    timer.recycle(mark)
    assert timer.mark() is mark


def test_a_batch_is_sent_while_the_device_computes_and_read_only_after_it_arrived(
    device,
):
    device.queue(lambda: None)  # the update before, which is not done yet
    batch = torch.arange(4)
    there = BatchSender(DEVICE).send(batch)
    read = []
    device.queue(lambda: read.append(there.tolist()))
    batch.zero_()  # the host may use its memory again at once
    _, copies = device.streams
    copies.run()
    assert there.tolist() == [0, 1, 2, 3]  # although the update before is not done
    device.compute.run()
    assert read == [[0, 1, 2, 3]]
    assert device.host_waits == 0


def test_the_model_waits_for_a_batch_that_is_late(device):
    there = BatchSender(DEVICE).send(torch.arange(4))
    read = []
    device.queue(lambda: read.append(there.tolist()))
    device.compute.run()  # the other stream has not begun
    assert read == []
    device.run_until(lambda: read)
    assert read == [[0, 1, 2, 3]]


def test_the_memory_of_a_batch_is_not_given_away_before_the_model_has_read_it(device):
    there = BatchSender(DEVICE).send(torch.arange(4))
    assert device.kept == [(there.data_ptr(), device.compute)]


def test_a_loss_is_complete_when_the_mark_after_it_is_passed(device, monkeypatch):
    monkeypatch.setattr(device_queue, "pinned_like", torch.zeros_like)
    clock = PhaseClock(FakeTime())
    clock.attach(EventTimer(DEVICE))
    loss = torch.tensor(0.0)
    device.queue(lambda: loss.fill_(2.5))  # computed late
    fetched = fetch_later(loss)
    lap = clock.lap()
    device.queue(lambda: loss.fill_(9.9))  # the next update
    device.compute.run(3)  # mark, loss, copy
    assert not lap.is_settled()
    device.compute.run(1)
    assert lap.is_settled()
    assert fetched.item() == 2.5
    device.compute.run()
    assert fetched.item() == 2.5
    assert device.host_waits == 0


def test_a_snapshot_has_the_weights_of_its_step_whichever_stream_is_faster(device):
    for order in ("compute first", "copy first"):
        weights, snapshot = torch.tensor([1.0]), torch.zeros(1)
        device.queue(lambda weights=weights: weights.fill_(2.0))  # the update before
        copy = StreamCopy([(snapshot, weights)], DEVICE)
        device.queue(lambda: None)  # forward and backward
        copy.protect()
        device.queue(lambda weights=weights: weights.fill_(3.0))  # the next update
        streams = [device.compute, device.streams[-1]]
        for stream in streams if order == "compute first" else reversed(streams):
            stream.run()
        assert device.host_waits == 0
        copy.wait()
        device.run_until(lambda: not device.compute.queue)
        assert (snapshot.item(), weights.item()) == (2.0, 3.0)
        device.host_waits = 0


def test_without_protection_a_snapshot_could_be_torn(device):
    """The fake can fail: this is what `protect` prevents."""
    weights, snapshot = torch.tensor([2.0]), torch.zeros(1)
    copy = StreamCopy([(snapshot, weights)], DEVICE)
    device.queue(lambda: weights.fill_(3.0))
    device.compute.run()
    copy.wait()
    assert snapshot.item() == 3.0


# -- pinned memory ------------------------------------------------------------------------------


class Driver:
    """The calls of CUDA's runtime that lock host memory."""

    def __init__(self, monkeypatch, fails=False):
        self.fails, self.locked, self.gpus = fails, {}, []
        self.current = 0
        monkeypatch.setattr(torch.cuda, "cudart", lambda: self)
        monkeypatch.setattr(torch.cuda, "device", self.on)

    @contextlib.contextmanager
    def on(self, device):
        self.current = device.index
        yield
        self.current = 0

    def cudaHostRegister(self, address, num_bytes, flags):
        self.gpus.append(self.current)
        self.locked[address] = num_bytes
        return 2 if self.fails else 0

    def cudaHostUnregister(self, address):
        del self.locked[address]


def test_pinned_memory_is_not_rounded_up_and_is_unlocked_when_it_is_freed(monkeypatch):
    driver = Driver(monkeypatch)
    buffer = pinned_pages(1_100_000, torch.device("cuda:1"))
    assert driver.gpus == [1]  # the other one is not touched
    assert driver.locked == {buffer.data_ptr(): 1_100_000}
    view = buffer[8:16].view(torch.float32)
    del buffer
    gc.collect()
    assert driver.locked  # a view still uses it
    assert view.tolist() == [0.0, 0.0]
    del view
    gc.collect()
    assert driver.locked == {}


def test_memory_that_cannot_be_locked_is_left_to_torch(monkeypatch):
    Driver(monkeypatch, fails=True)
    asked = []
    monkeypatch.setattr(
        host_copy.torch, "zeros", lambda size, **options: asked.append((size, options))
    )
    pinned_pages(100, torch.device("cuda:0"))
    assert asked == [(100, {"dtype": torch.uint8, "pin_memory": True})]


# -- Apple GPUs ---------------------------------------------------------------------------------


class AppleEvent:
    """An event as Apple's are in PyTorch (MPSEvent.mm): reading a time waits for the whole queue,
    and then for a signal of the end event, which comes once for each time it is recorded. Two marks
    with nothing between them are an error."""

    recorded = passed = waits = 0

    def __init__(self, enable_timing=False):
        self.number = 0
        self.has_signal = False

    def record(self):
        AppleEvent.recorded += 1
        self.number = AppleEvent.recorded
        self.has_signal = True

    def query(self):
        return self.number <= AppleEvent.passed

    def elapsed_time(self, end):
        if AppleEvent.passed < AppleEvent.recorded:
            AppleEvent.waits += 1
            AppleEvent.passed = AppleEvent.recorded
        assert end.has_signal, "the real one waits for ever"
        end.has_signal = False
        if end.number - self.number == 1:
            raise RuntimeError("End event 2 was not recorded after start event 1")
        return float(end.number - self.number)


@pytest.fixture
def apple(monkeypatch):
    monkeypatch.setattr(torch.mps.event, "Event", AppleEvent)
    AppleEvent.recorded = AppleEvent.passed = AppleEvent.waits = 0


def test_an_apple_gpu_is_waited_for_once_in_many_updates(apple):
    clock = PhaseClock(FakeTime())
    clock.attach(AppleTimer(torch.device("mps")))
    waiting, settled = [], 0
    for _ in range(300):
        for _ in range(4):  # micro-batches
            with clock.phase("data"):
                pass
        waiting.append(clock.lap())
        while waiting and waiting[0].is_settled():
            waiting.pop(0)
            settled += 1
    num_marks = 300 * 9
    assert AppleEvent.waits == pytest.approx(num_marks / AppleTimer.MANY, abs=1)
    assert settled > 250


def test_the_times_of_an_idle_apple_gpu_are_read_without_a_wait(apple):
    clock = PhaseClock(FakeTime())
    clock.attach(AppleTimer(torch.device("mps")))
    with clock.phase("data"):
        pass
    lap = clock.lap()
    assert not lap.is_settled()
    AppleEvent.passed = AppleEvent.recorded
    assert lap.is_settled()
    assert lap.device_phases == {"other": 0.0, "data": 0.0}
    assert AppleEvent.waits == 0


def test_the_host_memory_of_a_batch_is_kept_until_an_apple_gpu_has_copied_it(apple, monkeypatch):
    monkeypatch.setattr(torch.Tensor, "to", lambda host, device, non_blocking: host)
    sender = AppleSender(torch.device("mps"))
    for _ in range(3):
        sender.send(torch.zeros(4))
    assert len(sender._in_flight) == 3
    AppleEvent.passed = 2
    sender.send(torch.zeros(4))
    assert len(sender._in_flight) == 2
    AppleEvent.passed = AppleEvent.recorded + 1
    sender.send(torch.zeros(4))
    assert len(sender._in_flight) == 0
