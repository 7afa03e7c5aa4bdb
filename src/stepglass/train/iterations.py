"""Logs and prints iterations once the device has finished them.

On a GPU, an iteration is queued long before it is done. Its loss and gradient norm are read once
they have arrived, which may be some iterations later. Only `drain` waits for them.
"""

import math
from collections import deque
from dataclasses import dataclass

import torch
from torch import Tensor

from stepglass import units
from stepglass.hardware.peak import Peak, measured_again
from stepglass.measure import mfu
from stepglass.measure.clock import Lap
from stepglass.measure.console_lines import new_peak_line
from stepglass.measure.event_details import PeakEvent, SilenceEvent
from stepglass.measure.records import IterRecord
from stepglass.train.run import NotFinite, Run

# Read the memory use once in this many iterations: it changes rarely, and reading it takes longer
# than reading the clock.
MEMORY_EVERY = 16


@dataclass
class QueuedIteration:
    """An iteration whose loss and norm may not have arrived from the device yet."""

    step: int
    lr: float
    loss_and_norm: Tensor
    lap: Lap


class Iterations:
    """Logs and prints every iteration, with the MFU it reached."""

    def __init__(self, run: Run, peak: Peak) -> None:
        self.run = run
        self.peak = peak
        self.highest_mfu = 0.0
        self._queued: deque[QueuedIteration] = deque()
        config = run.engine.model.config
        self._flops_per_iter = float(config.flops_per_token()) * run.cfg.tokens_per_iter

    def add(self, step: int, lr: float, loss: Tensor, grad_norm: Tensor | None) -> None:
        """End the time window of this iteration, and log every iteration that is finished."""
        norm = loss.new_full((), math.nan) if grad_norm is None else grad_norm
        values = self.run.device.fetch_later(torch.stack((loss, norm)))
        self._queued.append(QueuedIteration(step, lr, values, self.run.clock.lap()))
        self._log_finished()

    def drain(self) -> None:
        """Wait for the device and log all queued iterations. The wait counts as
        `forward_backward`, because the device is computing the model."""
        with self.run.clock.phase("forward_backward"):
            self.run.device.drain()
        with self.run.clock.phase("log"):
            self._log_finished()

    def correct_peak(self) -> None:
        """Measure the peak of a CPU again if it is unknown, or if a step was faster than it."""
        is_unknown = self.run.device.type == "cpu" and self.peak.flops_per_s is None
        if not is_unknown and not self._is_peak_too_low(self.highest_mfu):
            return
        before, self.highest_mfu = self.peak, 0.0
        self.peak = measured_again(before, self.run.device)
        if self.peak is not before:
            self.run.console.say(new_peak_line(self.peak.source))
            self.run.event(
                PeakEvent(peak_flops=self.peak.flops_per_s, peak_source=self.peak.source)
            )

    def _log_finished(self) -> None:
        while self._queued and self._queued[0].lap.is_settled():
            self._log(self._queued.popleft())

    def _log(self, done: QueuedIteration) -> None:
        run, step = self.run, done.step
        run.clock.add_device_times(done.lap)
        loss, grad_norm = done.loss_and_norm.tolist()
        step_ms = done.lap.step_ms()
        share = mfu.share_of_peak(self._flops_per_iter, step_ms, self.peak.flops_per_s)
        self.highest_mfu = max(self.highest_mfu, share or 0.0)
        record = IterRecord(
            iter=step,
            loss=loss,
            lr=done.lr,
            grad_norm=grad_norm if math.isfinite(grad_norm) else None,
            tokens=run.cfg.tokens_per_iter,
            wall_ms=done.lap.wall_ms,
            phases=done.lap.phases_ms(),
            mfu=None if self._is_peak_too_low(share or 0.0) else share,
            device_phases=done.lap.device_phases,
            memory_bytes=run.device.used_bytes() if step % MEMORY_EVERY == 0 else None,
        )
        run.log.write(record)
        if not math.isfinite(loss):
            raise NotFinite(f"iter {step}: the loss is {loss}", spoilt_step=step)
        has_norm = run.cfg.grad_clip > 0 and not run.engine.may_skip_updates
        if has_norm and not math.isfinite(grad_norm):
            # The loss of this iteration is finite, but its gradient cannot be used.
            what = f"iter {step}: the gradient's norm is {grad_norm}"
            raise NotFinite(what, spoilt_step=step)
        is_printed = step % run.cfg.log_interval == 0
        total = run.clock.total()
        run.console.iteration(record, step_ms, is_printed, total, self._flops_per_iter)
        run.say_what_failed()
        for silence in run.engine.silences():
            run.console.say(silence_line(silence))
            run.event(silence)

    def _is_peak_too_low(self, share: float) -> bool:
        """No step can exceed the peak, so an MFU above 100 % means it was measured too low."""
        return self.run.device.type == "cpu" and share > 1


def silence_line(event: SilenceEvent) -> str:
    """What the console says about it.

    >>> silence_line(SilenceEvent(rank=1, silent_ms=14_200.0))
    'note: rank 1 was silent for 14.2s and answers again; the run goes on'
    """
    return (
        f"note: rank {event.rank} was silent for {units.duration(event.silent_ms)} and answers "
        "again; the run goes on"
    )
