"""The interface of an engine: gradients of a batch, an update, and the losses of an evaluation.

The loop calls these methods and does not know how an engine implements them. Each engine is one
file in this folder: `single.py` runs one model on one device, `replicas.py` runs one model on every
core of a CPU. With several processes, `leading.py` is the engine of rank 0, and `ddp.py` or
`fsdp.py` is what each process computes.
"""

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from stepglass.checkpoint import tensors
from stepglass.checkpoint.tensors import Files, Snapshot
from stepglass.data.dataset import IGNORED
from stepglass.errors import TrainingFailed
from stepglass.hardware.device import Device
from stepglass.measure.event_details import RanksEvent, SilenceEvent
from stepglass.models.model import Model
from stepglass.run_dir.commit import OtherShards
from stepglass.run_dir.folder import RunFolder
from stepglass.train.muon import MuonAdamW

MicroBatch = tuple[Tensor, Tensor]  # inputs and targets, on the host


class EngineLost(TrainingFailed):
    """A part of the engine has ended or hangs: no further update is possible."""

    is_torn = False  # True if an update was interrupted halfway: the weights must not be saved
    unsaved = "were half changed"  # what has become of the weights then


class Engine(ABC):
    """A model, its optimizer, and the device they are on."""

    is_spread = False  # True if each process has only a share of the weights
    saves_shards = False  # True if each process saves this share itself

    def __init__(self, model: Model, optimizer: MuonAdamW, device: Device) -> None:
        self.model = model
        self.optimizer = optimizer
        self.device = device
        self._scaler = device.grad_scaler()

    # -- called by the loop ---------------------------------------------------------------------

    @abstractmethod
    def backward(self, batches: list[MicroBatch], step: int, counted: float = 1.0) -> Tensor:
        """Compute the gradients of an update. Returns the loss without waiting for it: on a GPU it
        may not be computed yet. `step` seeds the random numbers. `counted` is the share of the
        update's targets that count, in all processes together: the loss is the mean of these."""

    @abstractmethod
    def update(self, grad_clip: float) -> Tensor | None:
        """Clip the gradients, change the weights, clear the gradients. Returns the gradients' norm
        before clipping, or None if they are not clipped."""

    @abstractmethod
    def score(self, x: Tensor, y: Tensor) -> Tensor:
        """The mean loss of each row of a batch on the host. Called in inference mode."""

    @property
    def may_skip_updates(self) -> bool:
        """True if an update with non-finite gradients is skipped, as loss scaling for float16
        does."""
        return self._scaler.is_enabled()

    def rank_times(self) -> RanksEvent | None:
        """How long each of several processes has computed and waited since the last call, where
        that can be told."""
        return None

    def silences(self) -> list[SilenceEvent]:
        """Which of several processes gave no sign of life for a while, since the last call."""
        return []

    # -- before the first update ----------------------------------------------------------------

    def compile(self, does_compile: bool) -> None:
        """Use a compiled model from the next batch on, or go back to the plain one."""
        self.device = replace(self.device, compile=does_compile)

    @abstractmethod
    def rehearse_update(self, grad_clip: float) -> None:
        """Do an update with zero gradients, so that all memory of an update is touched once."""

    def discard_gradients(self) -> None:
        """Discard the gradients of the warm-up batch."""
        self.optimizer.zero_grad(set_to_none=True)

    # -- checkpoints ----------------------------------------------------------------------------

    def tensors(self) -> Files:
        """The tensors for a checkpoint. They are not copies: the next update changes them."""
        return tensors.live_tensors(self.model, self.optimizer, self.device.type)

    def check_folder(self, folder: RunFolder) -> None:  # noqa: B027  one process needs no check
        """Raise ConfigError if other processes must write to this folder and cannot."""

    def save_shards(self, has_room: bool) -> OtherShards | None:
        """Let other processes save their part of the state, or return None if `tensors` has all of
        it. `has_room`: this process can write its part in the background."""
        return None

    def state(self) -> dict[str, Any]:
        """The engine's state for a checkpoint, besides tensors."""
        return self._scaler.state_dict()

    def has_finite_weights(self) -> bool:
        """Whether the weights may be saved."""
        sums = torch.stack([p.detach().sum() for p in self.model.parameters()])
        return bool(sums.isfinite().all())

    def restore(self, snapshot: Snapshot, place: str) -> None:
        """Restore weights, optimizer and loss scale from a checkpoint."""
        self.check_fits(snapshot, place)
        tensors.load_model(self.model, snapshot.model, place)
        tensors.load_optimizer(self.model, self.optimizer, snapshot.optim, place)
        self._set_loss_scale(snapshot.state["scaler"])

    def check_fits(self, snapshot: Snapshot, place: str) -> None:
        """Raise a CheckpointError if the tensors are not those of this model and optimizer."""
        tensors.check_fits(tensors.model_tensors(self.model), snapshot.model, place)
        own = tensors.optimizer_tensors(self.model, self.optimizer)
        tensors.check_fits(own, snapshot.optim, place)

    def _set_loss_scale(self, stored: dict[str, Any]) -> None:
        if stored:
            self._scaler.load_state_dict(stored)

    def close(self) -> None:  # noqa: B027  an engine that starts nothing has nothing to end
        """End the processes that the engine has started."""


def compiled(model: nn.Module) -> nn.Module:
    """The compiled model: one graph for training and one for evaluation, each for one size of a
    batch. Anything that would need more of them is an error here, not a slow run."""
    return torch.compile(model, fullgraph=True, dynamic=False)  # type: ignore[return-value]


def window_losses(model: nn.Module, x: Tensor, y: Tensor, device: Device) -> Tensor:
    """The mean loss of each row of a batch on the host, of the targets that count. Call it in
    inference mode, and create the inputs in inference mode too: otherwise a compiled model would be
    compiled twice."""
    counted = (y != IGNORED).sum(dim=1).clamp(min=1)
    model.eval()
    try:
        with device.autocast():
            loss = model(device.send(x), device.send(y), reduction="none")
    finally:
        model.train()
    mean: Tensor = loss.float().view(len(x), -1).mean(dim=1)
    return mean * device.send(y.size(1) / counted)
