"""What training asks of an engine: the gradients of a batch, an update, and losses to evaluate by.

The loop knows these few verbs and nothing of how they are carried out. Each way to compute an
update is one file here: `single.py` is one model on one device, `replicas.py` has one on every core
of a CPU.
"""

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from stepglass.checkpoint import tensors
from stepglass.checkpoint.tensors import Files, Snapshot
from stepglass.errors import TrainingFailed
from stepglass.hardware.device import Device
from stepglass.models.model import Model
from stepglass.train.muon import MuonAdamW

MicroBatch = tuple[Tensor, Tensor]  # inputs and targets, on the host


class EngineLost(TrainingFailed):
    """A part of the engine has ended or hangs: no further update is possible."""

    is_torn = False  # True if an update was half done: the weights must not be saved


class Engine(ABC):
    """A model, its optimizer, and the device they are on."""

    def __init__(self, model: Model, optimizer: MuonAdamW, device: Device) -> None:
        self.model = model
        self.optimizer = optimizer
        self.device = device
        self._scaler = device.grad_scaler()

    # -- the loop's verbs -----------------------------------------------------------------------

    @abstractmethod
    def backward(self, batches: list[MicroBatch], step: int) -> Tensor:
        """Compute the gradients of an update. Returns its loss, which may still be on its way:
        nothing waits for it. `step` seeds what is random about it."""

    @abstractmethod
    def update(self, grad_clip: float) -> Tensor | None:
        """Clip the gradients, change the weights, clear the gradients. Returns the gradients' norm
        before clipping, or None if they are not clipped."""

    @abstractmethod
    def score(self, x: Tensor, y: Tensor) -> Tensor:
        """The mean loss of each row of a batch on the host. Called in inference mode."""

    @property
    def may_skip_updates(self) -> bool:
        """True if an update with gradients that are not finite changes nothing, as loss scaling
        for float16 has it."""
        return self._scaler.is_enabled()

    # -- before the first update ----------------------------------------------------------------

    def compile(self, does_compile: bool) -> None:
        """Compile the model, from the next batch on, or go back to the plain one."""
        self.device = replace(self.device, compile=does_compile)

    @abstractmethod
    def rehearse_update(self, grad_clip: float) -> None:
        """Do an update with gradients of zero: it touches all the memory that an update does."""

    def discard_gradients(self) -> None:
        """Throw away the gradients of a batch that was only a rehearsal."""
        self.optimizer.zero_grad(set_to_none=True)

    # -- checkpoints ----------------------------------------------------------------------------

    def tensors(self) -> Files:
        """What a checkpoint keeps: the live tensors, which change with the next update."""
        return tensors.live_tensors(self.model, self.optimizer, self.device.type)

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps besides tensors."""
        return self._scaler.state_dict()

    def restore(self, snapshot: Snapshot, place: str) -> None:
        """Put weights, optimizer and loss scale back to what a checkpoint holds."""
        tensors.load_model(self.model, snapshot.model, place)
        tensors.load_optimizer(self.model, self.optimizer, snapshot.optim, place)
        if snapshot.state["scaler"]:
            self._scaler.load_state_dict(snapshot.state["scaler"])

    def close(self) -> None:
        """End what the engine has started."""
        return


def window_losses(model: nn.Module, x: Tensor, y: Tensor, device: Device) -> Tensor:
    """The mean loss of each row of a batch on the host. Call it in inference mode, and make the
    inputs there too: a compiled model would otherwise be compiled twice."""
    model.eval()
    try:
        with device.autocast():
            _, loss = model(device.send(x), device.send(y), reduction="none")
    finally:
        model.train()
    mean: Tensor = loss.float().view(len(x), -1).mean(dim=1)
    return mean
