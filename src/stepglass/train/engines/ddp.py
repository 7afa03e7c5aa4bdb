"""Several processes with a copy of the model each: torch's DistributedDataParallel.

Each process computes the gradients of its rows. DDP averages them over all processes while the
backward pass is still going on, and only in the last micro-batch of an update. Then every process
does the same update, so that the copies stay the same.
"""

import time
import warnings
from collections import deque
from contextlib import nullcontext
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.parallel import DistributedDataParallel

from stepglass.checkpoint import tensors
from stepglass.checkpoint.tensors import Snapshot
from stepglass.hardware.device import Device
from stepglass.measure.clock import PhaseClock
from stepglass.measure.event_details import RanksEvent
from stepglass.models.model import Model
from stepglass.train.engines.engine import MicroBatch
from stepglass.train.engines.group import Group
from stepglass.train.engines.single import SingleEngine
from stepglass.train.muon import MuonAdamW

MOST_TIMES = 1000  # updates of which the processes compare their times


class DdpShare(SingleEngine):
    """What each process of a DDP run computes. All processes call the same methods."""

    def __init__(
        self,
        model: Model,
        optimizer: MuonAdamW,
        device: Device,
        clock: PhaseClock,
        group: Group,
    ) -> None:
        super().__init__(model, optimizer, device, clock)
        self._group = group
        with warnings.catch_warnings():
            # torch 2.13 has another name for `broadcast_buffers`, which earlier versions lack.
            warnings.simplefilter("ignore", FutureWarning)
            self._ddp = DistributedDataParallel(
                model, broadcast_buffers=False, gradient_as_bucket_view=True
            )
        self._ddp.register_comm_hook(self, average)
        self._ready = 0.0  # when this process had computed all its gradients
        # Of each update: milliseconds of computing, of waiting.
        self._times: deque[tuple[float, float]] = deque(maxlen=MOST_TIMES)
        self._scored_ms = 0.0  # in the evaluation after the last update
        self._train: nn.Module = self._ddp  # or its compiled form

    def backward(self, batches: list[MicroBatch], step: int, counted: float = 1.0) -> Tensor:
        losses = []
        begun, self._ready, self._scored_ms = time.perf_counter(), 0.0, 0.0
        rows = sum(len(x) for x, _ in batches) * counted
        for number, (host_x, host_y) in enumerate(batches, 1):
            with self._clock.phase("data"):
                x, y = self.device.send(host_x), self.device.send(host_y)
            is_last = number == len(batches)
            with nullcontext() if is_last else self._ddp.no_sync():
                with self.device.autocast():
                    loss = self._train(x, y) * (len(host_x) / rows)
                self._scaler.scale(loss).backward()
            losses.append(loss.detach())
        loss = self._group.mean(torch.stack(losses).sum())
        waited = time.perf_counter() - self._ready
        self._times.append((1000 * (self._ready - begun), 1000 * waited))
        return loss

    def score(self, x: Tensor, y: Tensor) -> Tensor:
        begun = time.perf_counter()
        losses = super().score(x, y)
        self._scored_ms += 1000 * (time.perf_counter() - begun)
        return losses

    def discard_gradients(self) -> None:
        super().discard_gradients()
        self._times.clear()  # they were not those of an update

    def gradients_are_ready(self) -> None:
        self._group.passed()
        self._ready = time.perf_counter()

    def rank_times(self) -> RanksEvent | None:
        # The host does not know when a GPU has computed something.
        if not self._times or self.device.type != "cpu":
            return None
        times = self._group.gather_rows(torch.tensor([list(self._times)]))
        scored = self._group.gather_rows(torch.tensor([self._scored_ms]))
        self._times.clear()
        compute, wait = times.double().mean(1).T
        # The process that is ready last waits for nothing but the sum.
        communication = times[:, :, 1].min(0).values.mean()
        return RanksEvent(
            compute_ms=to_microseconds(compute),
            wait_ms=to_microseconds(wait),
            communication_ms=round(float(communication), 3),
            eval_ms=to_microseconds(scored),
            updates=times.size(1),
        )

    def compile(self, does_compile: bool) -> None:
        super().compile(does_compile)
        self._train = torch.compile(self._ddp) if does_compile else self._ddp  # type: ignore[assignment]

    def restore(self, snapshot: Snapshot, place: str) -> None:
        super().restore(snapshot, place)
        self._share_tensors()

    def receive(self, scaler: dict[str, Any], shards: list[str] | None) -> None:
        """Get what rank 0 has restored."""
        self._set_loss_scale(scaler)
        self._share_tensors()

    def _share_tensors(self) -> None:
        for tensor in tensors.model_tensors(self.model).values():
            self._group.share(tensor)
        for tensor in tensors.optimizer_tensors(self.model, self.optimizer).values():
            self._group.share(tensor)


def to_microseconds(ms: Tensor) -> list[float]:
    """Milliseconds with three decimals: more would be noise."""
    return [round(value, 3) for value in ms.tolist()]


def average(share: DdpShare, bucket: dist.GradBucket) -> torch.futures.Future[Tensor]:  # type: ignore[name-defined]
    """Average a bucket of gradients over all processes, as DDP does by itself."""
    if bucket.is_last():
        share.gradients_are_ready()
    return allreduce_hook(dist.group.WORLD, bucket)  # type: ignore[arg-type]
