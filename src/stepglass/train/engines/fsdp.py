"""Several processes with a share of the model each: torch's FSDP2 (`fully_shard`).

Each process holds some rows of every matrix, and the optimizer's state of these rows. The whole
weights of a block exist only while the block computes: FSDP gathers them before and frees them
after. Gradients are averaged and split again in the backward pass.

The optimizer works on the shares as plain tensors. A checkpoint is gathered in rank 0's memory, so
that it is the same as that of one process. If it is saved in shards, nothing is gathered: every
process writes what it holds, and reads its rows when the run is resumed.
"""

from collections.abc import Iterator
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor

from stepglass.checkpoint import tensors
from stepglass.checkpoint.sharded import ShardedTensors, open_shards
from stepglass.checkpoint.tensors import Files, Snapshot
from stepglass.hardware.device import Device
from stepglass.measure.clock import PhaseClock
from stepglass.models.model import Model
from stepglass.run_dir import checkpoints
from stepglass.train.engines.engine import Engine, MicroBatch, window_losses
from stepglass.train.engines.group import LEADER, Group
from stepglass.train.engines.sharded_muon import ShardedMuonAdamW, rows_of_each
from stepglass.train.muon import MuonAdamW


def shard(model: Model, device: Device, group: Group) -> None:
    """Keep only this process's share of the weights."""
    mesh = init_device_mesh(device.type, (group.here.of,))
    blocks = model.get_submodule(model.config.block_prefix.rstrip("."))
    for block in blocks.children():
        fully_shard(block, mesh=mesh)
        # Before FSDP's own hooks, which wait for the other processes.
        block.register_forward_pre_hook(lambda module, inputs: group.passed(), prepend=True)
        block.register_full_backward_pre_hook(lambda module, grads: group.passed(), prepend=True)
    fully_shard(model, mesh=mesh)


class FsdpShare(Engine):
    """What each process of an FSDP run computes. All processes call the same methods."""

    is_spread = True

    def __init__(
        self,
        model: Model,
        optimizer: MuonAdamW,
        device: Device,
        clock: PhaseClock,
        group: Group,
        saves_shards: bool = False,
    ) -> None:
        """The model is sharded already, and the optimizer is one for it."""
        assert isinstance(model, FSDPModule)
        self.saves_shards = saves_shards
        self._weights = dict(model.named_parameters())
        own = {p: nn.Parameter(local(p)) for p in self._weights.values()}
        self._own = {name: own[p] for name, p in self._weights.items()}
        sharded = ShardedMuonAdamW(optimizer, own)
        super().__init__(model, sharded, device)
        self._clock, self._group = clock, group
        self._fsdp: FSDPModule = model
        self._forward: nn.Module = model  # or its compiled form
        self._host: Files = {}  # rank 0: whole tensors for a checkpoint

    def backward(self, batches: list[MicroBatch], step: int, counted: float = 1.0) -> Tensor:
        losses = []
        rows = sum(len(x) for x, _ in batches) * counted
        for number, (host_x, host_y) in enumerate(batches, 1):
            with self._clock.phase("data"):
                x, y = self.device.send(host_x), self.device.send(host_y)
            self._fsdp.set_requires_gradient_sync(number == len(batches))
            with self.device.autocast():
                loss = self._forward(x, y) * (len(host_x) / rows)
            loss.backward()
            losses.append(loss.detach())
        return self._group.mean(torch.stack(losses).sum())

    def update(self, grad_clip: float) -> Tensor | None:
        for name, weight in self._weights.items():
            if weight.grad is not None:
                self._own[name].grad = local(weight.grad)
        norm = self._clip(grad_clip) if grad_clip > 0 else None
        self.optimizer.step()
        self.discard_gradients()
        return norm

    def _clip(self, grad_clip: float) -> Tensor:
        """Scale the gradients as torch's `clip_grad_norm_` does. The squares of a parameter are
        summed up in another order than in one process, so the last digit may differ. In double
        precision it differs less often."""
        gradients = [p.grad for p in self._own.values() if p.grad is not None]
        norms = [torch.linalg.vector_norm(g, dtype=torch.float64) for g in gradients]
        squares = torch.stack(norms).square()
        dist.all_reduce(squares)
        norm: Tensor = torch.linalg.vector_norm(squares.sqrt().float())
        torch._foreach_mul_(gradients, (grad_clip / (norm + 1e-6)).clamp(max=1.0))
        return norm

    def score(self, x: Tensor, y: Tensor) -> Tensor:
        return window_losses(self._forward, x, y, self.device)

    def compile(self, does_compile: bool) -> None:
        super().compile(does_compile)
        self._forward = torch.compile(self.model) if does_compile else self.model  # type: ignore[assignment]

    def rehearse_update(self, grad_clip: float) -> None:
        for parameter in self._own.values():
            parameter.grad = torch.zeros_like(parameter)
        if grad_clip > 0:
            self._clip(grad_clip)
        self.optimizer.step()
        self.discard_gradients()

    def discard_gradients(self) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        self.model.zero_grad(set_to_none=True)

    # -- checkpoints ----------------------------------------------------------------------------

    def has_finite_weights(self) -> bool:
        sums = torch.stack([p.detach().sum() for p in self._own.values()])
        is_finite = sums.isfinite().all().float()
        dist.all_reduce(is_finite, dist.ReduceOp.MIN)
        return bool(is_finite)

    def tensors(self) -> Files:
        return self._own_files() if self.saves_shards else self._whole_files()

    def _own_files(self) -> Files:
        """The rows of every tensor that this process holds. Counters are the same in all processes,
        and rank 0 has them."""
        here, files = self._group.here, Files()
        for file, name, whole, share in self._named():
            if whole.dim() or here.leads:
                kind = file.removesuffix(".safetensors")
                own = checkpoints.shard_name(kind, here.number, here.of)
                files.setdefault(own, {})[name] = share
        if here.leads:
            files["rank-00000.safetensors"] = tensors.rng_tensors(self.device.type)
        return files

    def _whole_files(self) -> Files:
        """Gather the whole tensors in rank 0's memory on the host, one at a time."""
        for file, name, whole, share in self._named():
            on_host = self._host.setdefault(file, {})
            if whole.dim() == 0:
                on_host[name] = share
                continue
            found = self._gathered(share, whole)
            if found is not None:
                target = on_host.setdefault(name, torch.empty(whole.shape, dtype=whole.dtype))
                target.copy_(found)
        if not self._group.here.leads:
            return {}
        rng = {"rank-00000.safetensors": tensors.rng_tensors(self.device.type)}
        return self._host | rng

    def check_fits(self, snapshot: Snapshot, place: str) -> None:
        for file, found in (
            ("model.safetensors", snapshot.model),
            ("optim.safetensors", snapshot.optim),
        ):
            own = {name: whole for of, name, whole, _ in self._named() if of == file}
            tensors.check_fits(own, found, place)

    def restore(self, snapshot: Snapshot, place: str) -> None:
        model, optim = snapshot.model, snapshot.optim
        if isinstance(model, ShardedTensors) and isinstance(optim, ShardedTensors):
            self._read_rows(model, optim)
        else:
            self._distribute({**model, **optim})

    @torch.no_grad()
    def _read_rows(self, model: ShardedTensors, optim: ShardedTensors) -> None:
        """Read this process's rows of every tensor from a checkpoint in shards."""
        here = self._group.here
        for file, name, whole, share in self._named():
            found = model if file == "model.safetensors" else optim
            if whole.dim() == 0:
                share.copy_(found[name])
                continue
            each = rows_of_each(whole.size(0), here.of)
            first = sum(each[: here.number])
            share.copy_(found.rows(name, first, first + len(share)))

    def receive(self, scaler: dict[str, object], shards: list[str] | None) -> None:
        """Get what rank 0 restores. `shards`: read it from this checkpoint, by path and hash."""
        if shards is not None:
            self._read_rows(*open_shards(Path(shards[0]), shards[1]))
        else:
            self._distribute({})

    @torch.no_grad()
    def _distribute(self, found: dict[str, Tensor]) -> None:
        """Rank 0 sends each process its share of every tensor."""
        for _, name, whole, share in self._named():
            if self._group.here.leads:
                whole = found[name].to(share.device)
            if whole.dim() == 0:
                share.copy_(self._group.share(whole if found else torch.empty_like(share)))
                continue
            buffer = padded(share, whole.size(0), self._group.here.of)
            parts = None
            if self._group.here.leads:
                parts = [
                    padded(part, whole.size(0), self._group.here.of)
                    for part in torch.split(whole, rows_of_each(whole.size(0), self._group.here.of))
                ]
            dist.scatter(buffer, parts, LEADER)
            share.copy_(buffer[: len(share)])

    def _named(self) -> Iterator[tuple[str, str, Tensor, Tensor]]:
        """Every tensor of a checkpoint: its file, its name, a tensor like the whole one but without
        memory, and this process's share."""
        for name, weight in self._weights.items():
            like = torch.empty(weight.shape, dtype=weight.dtype, device="meta")
            yield "model.safetensors", name, like, self._own[name].detach()
        for name, own in self._own.items():
            shape = self._weights[name].shape
            for key, value in self.optimizer.state[own].items():
                like = torch.empty(shape if value.dim() else (), dtype=value.dtype, device="meta")
                yield "optim.safetensors", f"{name}.{key}", like, value

    def _gathered(self, share: Tensor, whole: Tensor) -> Tensor | None:
        here = self._group.here
        mine = padded(share, whole.size(0), here.of)
        parts = [torch.empty_like(mine) for _ in range(here.of)] if here.leads else None
        dist.gather(mine, parts, LEADER)
        return None if parts is None else torch.cat(parts)[: whole.size(0)]


def local(tensor: Tensor) -> Tensor:
    """The rows that this process holds, in the same memory."""
    assert isinstance(tensor, DTensor)
    rows: Tensor = tensor._local_tensor.detach()
    return rows


def padded(share: Tensor, rows: int, processes: int) -> Tensor:
    """A share with as many rows as the largest: the last processes may have fewer."""
    most = max(rows_of_each(rows, processes))
    if len(share) == most:
        return share.contiguous()
    whole = share.new_zeros((most, *share.shape[1:]))
    whole[: len(share)] = share
    return whole
