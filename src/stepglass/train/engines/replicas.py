"""A replica of the model on every core: each works on its own rows of a batch.

    engine = Replicas(model, optimizer, device, seed=1337)     # device.replicas of them
    loss = engine.backward(batches, step)
    norm = engine.update(grad_clip=1.0)
    engine.close()

PyTorch splits every single operation among the cores, which then wait for each other several
hundred times per update. Replicas wait for each other three times: when the gradients are computed,
when they are added up, and when the weights have changed. Replica 0 is this process. The others are
forked from it, so they do not compete for Python's lock; weights, gradients and optimizer state are
in shared memory. Sums have a fixed order: the same run ends in the same bits.

A replica that has ended, was stopped or hangs is not waited for longer than equal work can take.
Then every call raises `ReplicaLost`; weights and generator are as the last whole update left them.
"""

import mmap
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from stepglass.hardware.device import Device
from stepglass.models.model import Model
from stepglass.train.engines.engine import Engine, MicroBatch, window_losses
from stepglass.train.engines.helper_process import Helper, Patience, ReplicaLost
from stepglass.train.muon import MuonAdamW
from stepglass.train.optimizer import split_optimizer

ReplicaRows = list[tuple["np.ndarray[Any, Any]", "np.ndarray[Any, Any]"]]

# Replicas do equal work: one that is not done long after replica 0 will never be.
WITHIN_S, WITHIN_TIMES = 60.0, 20  # the least wait, and a multiple of what replica 0 took
COMPILE_WITHIN_S = 1800.0  # one may find in a cache what another has to compile
GRACE_S, LONGEST_GRACE_S = 5.0, 30.0  # for as long as replica 0 took, once the run is to stop

UNTOUCHED, BEGUN, DONE = range(3)  # how far a replica is with its part of an update


class Replicas(Engine):
    """All replicas, seen from replica 0."""

    def __init__(
        self,
        model: Model,
        optimizer: MuonAdamW,
        device: Device,
        seed: int = 0,
        is_stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        """Nobody waits long for a replica once the run `is_stopping`."""
        super().__init__(model, optimizer, device)
        self._seed, self._is_stopping = seed, is_stopping
        share_memory(model, optimizer)
        parts = split_optimizer(optimizer, device.replicas)
        size = sum(p.numel() for p in model.parameters())
        gradients = [shared(torch.zeros(size)) for _ in range(device.replicas)]
        progress = mmap.mmap(-1, device.replicas)
        self._threads = device.threads
        self._replicas = [
            Replica(number, model, parts, gradients, progress, device)
            for number in range(device.replicas)
        ]
        self._helpers: list[Helper] = []
        self._lost: ReplicaLost | None = None
        self._generator: Tensor | None = None  # as it was before an update that is not done yet
        self._to_compile: set[str] = set()
        try:
            for replica in self._replicas[1:]:
                self._helpers.append(Helper(replica))
        except BaseException:
            self.close()
            raise
        torch.set_num_threads(1)  # the other cores are taken

    def backward(self, batches: list[MicroBatch], step: int) -> Tensor:
        self._generator = torch.get_rng_state()
        shares = [self._rows_of_each(x, y) for x, y in batches]
        rows = sum(len(x) for x, _ in batches)
        seed = (self._seed, step)
        work = [([share[i] for share in shares], rows, seed) for i in range(len(shares[0]))]
        return torch.tensor(sum(self._all_do("backward", work)))

    def update(self, grad_clip: float) -> Tensor | None:
        norms = self._all_do("add_up", [()] * len(self._replicas))
        norm = sum(norm**2 for norm in norms) ** 0.5 if grad_clip > 0 else None
        rates = [group["lr"] for group in self.optimizer.param_groups]
        self._update_all((rates, grad_clip, norm))
        self._generator = None
        return None if norm is None else torch.tensor(norm)

    def compile(self, does_compile: bool) -> None:
        # Each replica compiles for itself; they share a cache on disk.
        super().compile(does_compile)
        self._to_compile = {"compile", "backward", "score"} if does_compile else set()
        self._all_do("compile", [(does_compile,)] * len(self._replicas))

    def score(self, x: Tensor, y: Tensor) -> Tensor:
        work = [(part,) for part in self._rows_of_each(x, y)]
        return torch.from_numpy(np.concatenate(self._all_do("score", work)))

    def rehearse_update(self, grad_clip: float) -> None:
        nothing = torch.zeros((0, 1), dtype=torch.int64)
        self.backward([(nothing, nothing)], 0)
        self.update(grad_clip)

    def discard_gradients(self) -> None:
        """Every backward pass begins with gradients of zero."""

    def close(self) -> None:
        """End the helpers, and give this process its threads back."""
        for helper in self._helpers:
            helper.hang_up()  # all of them, so that they end side by side
        for helper in self._helpers:
            helper.close()
        torch.set_num_threads(self._threads)

    def _rows_of_each(self, x: Tensor, y: Tensor) -> ReplicaRows:
        parts = (np.array_split(tensor.numpy(), len(self._replicas)) for tensor in (x, y))
        return list(zip(*parts, strict=True))

    def _all_do(self, name: str, work: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Every replica does its part, which changes no weights."""
        results = self._ask(name, work)
        if self._lost is not None and self._generator is not None:
            torch.set_rng_state(self._generator)  # the update under way will begin again
        for result in results:
            if isinstance(result, Exception):
                raise result
        return results

    def _update_all(self, arguments: tuple[Any, ...]) -> None:
        """Every replica changes its part of the weights. Where one is lost that had not begun, its
        part is done in its place: the update is whole, and the loss is the next call's to raise.
        """
        results = self._ask("update", [arguments] * len(self._replicas))
        for replica, result in zip(self._replicas, results, strict=True):
            if isinstance(result, ReplicaLost):
                if not self._helpers[replica.number - 1].has_ended() or replica.progress == BEGUN:
                    result.is_torn = True
                    raise result
                if replica.progress == UNTOUCHED:
                    replica.update(*arguments)
            elif isinstance(result, Exception):
                raise result

    def _ask(self, name: str, work: Sequence[tuple[Any, ...]]) -> list[Any]:
        """What every replica returns, or why it does not. Waits for all of them, whatever has
        happened to one."""
        if self._lost is not None:
            raise self._lost
        for helper, arguments in zip(self._helpers, work[1:], strict=True):
            helper.send(name, arguments, self._patience(name, 0.0))
        start = time.perf_counter()
        try:
            results = [getattr(self._replicas[0], name)(*work[0])]
        finally:
            patience = self._patience(name, time.perf_counter() - start)
            theirs = [h.receive(patience, is_updating=name == "update") for h in self._helpers]
            lost = (result for result in theirs if isinstance(result, ReplicaLost))
            self._lost = next(lost, None)
        self._to_compile.discard(name)
        return results + theirs

    def _patience(self, name: str, own_s: float) -> Patience:
        """With helpers, where replica 0 took some seconds for its own part."""
        least = COMPILE_WITHIN_S if name in self._to_compile else WITHIN_S
        grace_s = min(max(GRACE_S, own_s), LONGEST_GRACE_S)
        return Patience(max(least, WITHIN_TIMES * own_s), grace_s, self._is_stopping)


class Replica:
    """One replica: it has all weights, and updates a part of them."""

    def __init__(
        self,
        number: int,
        model: nn.Module,
        parts: list[MuonAdamW],
        gradients: list[Tensor],
        progress: mmap.mmap,
        device: Device,
    ) -> None:
        self.number = number
        self._progress = progress  # a byte for each replica, seen by all
        self._plain_model = self._model = model
        self._part, self._device = parts[number], device
        # All gradients of a replica are one tensor, those of a part side by side in it.
        in_order = [list(part.parameters()) for part in parts]
        self._parameters = [p for part in in_order for p in part]
        self._gradient = gradients[number]
        self._gradients = pieces(gradients[number], self._parameters)
        first = sum(p.numel() for part in in_order[:number] for p in part)
        owned = slice(first, first + sum(p.numel() for p in in_order[number]))
        self._sum, *self._others = [gradient[owned] for gradient in gradients]
        self._sums = pieces(self._sum, in_order[number])

    def backward(self, batches: ReplicaRows, rows_of_all: int, seed: tuple[int, ...]) -> float:
        """The gradients of this replica's rows. Returns their share of the loss."""
        if self.number > 0:  # replica 0 draws from the generator that checkpoints keep
            mixed = np.random.SeedSequence((*seed, self.number))
            torch.default_generator.manual_seed(int(mixed.generate_state(1)[0]))
        self._gradient.zero_()
        for parameter, gradient in zip(self._parameters, self._gradients, strict=True):
            parameter.grad = gradient
        total = 0.0
        for x, y in batches:
            if len(x) == 0:
                continue
            _, loss = self._model(torch.from_numpy(x), torch.from_numpy(y))
            loss = loss * (len(x) / rows_of_all)
            loss.backward()
            total += loss.item()
        return total

    def compile(self, does_compile: bool) -> None:
        if does_compile and self.number > 0:
            # Threads that an earlier run of this process compiled with are not here after a fork.
            from torch._inductor.async_compile import AsyncCompile  # noqa: PLC0415  a second

            AsyncCompile.pool.cache_clear()
        plain = self._plain_model
        self._model = torch.compile(plain) if does_compile else plain  # type: ignore[assignment]

    def add_up(self) -> float:
        """Sum the gradients of the weights that this replica updates. Returns their norm."""
        self.progress = UNTOUCHED
        for other in self._others:
            self._sum.add_(other)
        return float(torch.linalg.vector_norm(self._sum))

    def update(self, rates: list[float], grad_clip: float, norm: float | None) -> None:
        self.progress = BEGUN
        if norm is not None:
            self._sum.mul_(min(1.0, grad_clip / (norm + 1e-6)))
        for parameter, gradient in zip(self._part.parameters(), self._sums, strict=True):
            parameter.grad = gradient
        for group, lr in zip(self._part.param_groups, rates, strict=True):
            group["lr"] = lr
        self._part.step()
        self.progress = DONE

    @property
    def progress(self) -> int:
        """How far it is with its part of an update: an update is torn by a part that is begun and
        will not be done. Others see it too, after its process has ended."""
        return self._progress[self.number]

    @progress.setter
    def progress(self, value: int) -> None:
        self._progress[self.number] = value

    @torch.inference_mode()
    def score(self, rows: tuple["np.ndarray[Any, Any]", "np.ndarray[Any, Any]"]) -> Any:
        x, y = (torch.from_numpy(part) for part in rows)
        if len(x) == 0:
            return np.zeros(0, dtype=np.float32)
        return window_losses(self._model, x, y, self._device).numpy()


# -- memory that all replicas see ---------------------------------------------------------------


def share_memory(model: nn.Module, optimizer: MuonAdamW) -> None:
    """Move weights and optimizer state to memory that helpers can change."""
    for parameter in model.parameters():
        parameter.data = shared(parameter.data)
    for remembered in optimizer.state.values():
        for name, value in remembered.items():
            remembered[name] = shared(value)


def pieces(flat: Tensor, parameters: list[Tensor]) -> list[Tensor]:
    """Views of a flat tensor, one shaped like each parameter."""
    parts = torch.split(flat, [p.numel() for p in parameters])
    return [part.view(p.shape) for part, p in zip(parts, parameters, strict=True)]


def shared(source: Tensor) -> Tensor:
    """A copy of a tensor that processes forked from this one have in common with it."""
    pages = mmap.mmap(-1, max(source.nbytes, 1))  # no file: a container's /dev/shm may be small
    target = torch.frombuffer(pages, dtype=source.dtype, count=source.numel())
    return target.view(source.shape).copy_(source)
