"""One model on one device. It does the same as nanoGPT, in the same order."""

import torch
from torch import Tensor, nn

from stepglass.hardware.device import Device
from stepglass.measure.clock import PhaseClock
from stepglass.models.model import Model
from stepglass.train.engines.engine import Engine, MicroBatch, compiled, window_losses
from stepglass.train.muon import MuonAdamW


class SingleEngine(Engine):
    """Forward, backward, clip, update, on a CPU or a GPU."""

    def __init__(
        self, model: Model, optimizer: MuonAdamW, device: Device, clock: PhaseClock
    ) -> None:
        super().__init__(model, optimizer, device)
        self._clock = clock
        self._forward: nn.Module = model  # or its compiled form

    def backward(self, batches: list[MicroBatch], step: int, counted: float = 1.0) -> Tensor:
        losses = []
        for host_x, host_y in batches:
            with self._clock.phase("data"):
                x, y = self.device.send(host_x), self.device.send(host_y)
            with self.device.autocast():
                loss = self._forward(x, y) / (len(batches) * counted)
            self._scaler.scale(loss).backward()
            losses.append(loss.detach())
        return torch.stack(losses).sum()

    def update(self, grad_clip: float) -> Tensor | None:
        norm = None
        if grad_clip > 0:
            self._scaler.unscale_(self.optimizer)
            norm = nn.utils.clip_grad_norm_(self.model.parameters(), grad_clip)
        if self._scaler.is_enabled():
            self._clock.look()  # with Muon, the scaler waits for the gradients
        self._scaler.step(self.optimizer)
        self._scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        return norm

    def score(self, x: Tensor, y: Tensor) -> Tensor:
        return window_losses(self._forward, x, y, self.device)

    def compile(self, does_compile: bool) -> None:
        super().compile(does_compile)
        self._forward = compiled(self.model) if does_compile else self.model

    def rehearse_update(self, grad_clip: float) -> None:
        # Without the scaler: it would count this update and change the loss scale.
        for parameter in self.model.parameters():
            parameter.grad = torch.zeros_like(parameter)
        if grad_clip > 0:
            nn.utils.clip_grad_norm_(self.model.parameters(), grad_clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
