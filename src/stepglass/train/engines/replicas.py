"""One replica of the model per core. Each replica computes its own rows of a batch.

    engine = Replicas(model, optimizer, device, seed=1337)     # device.replicas of them
    loss = engine.backward(batches, step)
    norm = engine.update(grad_clip=1.0)
    engine.close()

PyTorch splits every single operation among the cores, so the cores wait for each other several
hundred times per update. Replicas wait for each other three times per update: when the gradients
are computed, when they are added up, and when the weights have changed. Replica 0 is this process.
The others are forked from it, so that they do not compete for Python's global lock. Weights,
gradients and optimizer state are in shared memory. Sums are computed in a fixed order, so a run is
reproducible bit for bit.

Replicas do equal work, so one that takes much longer than replica 0 has ended, is stopped or hangs.
Then every call raises `ReplicaLost`, and the weights and the random generator are as they were
after the last complete update.
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
from stepglass.process import Interrupted
from stepglass.train.engines.engine import Engine, MicroBatch, compiled, window_losses
from stepglass.train.engines.helper_process import Helper, Patience, ReplicaLost
from stepglass.train.muon import MuonAdamW
from stepglass.train.optimizer import split_optimizer

ReplicaRows = list[tuple["np.ndarray[Any, Any]", "np.ndarray[Any, Any]"]]

# The longest wait for a replica: 60 seconds, or 20 times the time that replica 0 took if that is
# longer. Replicas do equal work, so a replica that is not done by then never will be.
WITHIN_S, WITHIN_TIMES = 60.0, 20
COMPILE_WITHIN_S = 1800.0  # one replica may have to compile what another finds in a cache
# Once the run is asked to stop: the time that replica 0 took, but within these limits.
GRACE_S, LONGEST_GRACE_S = 5.0, 30.0

UNTOUCHED, BEGUN, DONE = range(3)  # the progress of a replica's part of an update


class Replicas(Engine):
    """The engine in replica 0, which controls all replicas."""

    def __init__(
        self,
        model: Model,
        optimizer: MuonAdamW,
        device: Device,
        seed: int = 0,
        is_stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        """Once `is_stopping` returns True, waits for replicas are short."""
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
        self._generator: Tensor | None = None  # the generator's state before the current update
        self._to_compile: set[str] = set()
        try:
            for replica in self._replicas[1:]:
                self._helpers.append(Helper(replica))
        except BaseException:
            self.close()
            raise
        torch.set_num_threads(1)  # the helpers use the other cores

    def backward(self, batches: list[MicroBatch], step: int, counted: float = 1.0) -> Tensor:
        self._generator = torch.get_rng_state()
        shares = [self._rows_of_each(x, y) for x, y in batches]
        rows = sum(len(x) for x, _ in batches) * counted
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
        """Every backward pass starts with zero gradients, so only the generator is forgotten."""
        self._generator = None

    def close(self) -> None:
        """End the helpers, and let this process use all threads again."""
        for helper in self._helpers:
            helper.hang_up()  # all of them first, so that they end at the same time
        for helper in self._helpers:
            helper.close()
        torch.set_num_threads(self._threads)

    def _rows_of_each(self, x: Tensor, y: Tensor) -> ReplicaRows:
        parts = (np.array_split(tensor.numpy(), len(self._replicas)) for tensor in (x, y))
        return list(zip(*parts, strict=True))

    def _all_do(self, name: str, work: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call a method that changes no weights on every replica, and return the results."""
        results = self._ask(name, work)
        if self._lost is not None and self._generator is not None:
            torch.set_rng_state(self._generator)  # a resumed run will repeat this update
        for result in results:
            if isinstance(result, Exception):
                raise result
        return results

    def _update_all(self, arguments: tuple[Any, ...]) -> None:
        """Let every replica change its part of the weights. If a replica was lost before it began,
        this process does its part, so that the update is complete. The next call then raises
        `ReplicaLost`.
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
        """Call a method on every replica, and return each result or the exception. Waits for all
        replicas, even if one is lost. A signal that interrupts a compilation ends the helpers."""
        if self._lost is not None:
            raise self._lost
        try:
            return self._ask_each(name, work)
        except Interrupted:
            for helper in self._helpers:
                helper.kill()
            self._lost = ReplicaLost("the helpers were ended while they compiled")
            raise

    def _ask_each(self, name: str, work: Sequence[tuple[Any, ...]]) -> list[Any]:
        for helper, arguments in zip(self._helpers, work[1:], strict=True):
            helper.send(name, arguments, self._patience(name, 0.0))
        start = time.perf_counter()
        failure = None
        try:
            own = getattr(self._replicas[0], name)(*work[0])
        except Exception as error:  # raised below, when the helpers have answered
            if name in self._to_compile and self._is_stopping():
                raise Interrupted from error  # the compiler has wrapped it in an error of its own
            failure = error
        patience = self._patience(name, time.perf_counter() - start)
        theirs = [h.receive(patience, is_updating=name == "update") for h in self._helpers]
        lost = (result for result in theirs if isinstance(result, ReplicaLost))
        self._lost = next(lost, None)
        if failure is not None:
            raise failure
        self._to_compile.discard(name)
        return [own, *theirs]

    def _patience(self, name: str, own_s: float) -> Patience:
        """How long to wait for the helpers, given the seconds that replica 0 took."""
        least = COMPILE_WITHIN_S if name in self._to_compile else WITHIN_S
        grace_s = min(max(GRACE_S, own_s), LONGEST_GRACE_S)
        return Patience(max(least, WITHIN_TIMES * own_s), grace_s, self._is_stopping)


class Replica:
    """One replica. It uses all weights, and updates one part of them."""

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
        self._progress = progress  # shared memory: one byte per replica
        self._plain_model = self._model = model
        self._part, self._device = parts[number], device
        # All gradients of a replica are in one flat tensor, ordered by part.
        in_order = [list(part.parameters()) for part in parts]
        self._parameters = [p for part in in_order for p in part]
        self._gradient = gradients[number]
        self._gradients = pieces(gradients[number], self._parameters)
        first = sum(p.numel() for part in in_order[:number] for p in part)
        owned = slice(first, first + sum(p.numel() for p in in_order[number]))
        self._sum, *self._others = [gradient[owned] for gradient in gradients]
        self._sums = pieces(self._sum, in_order[number])

    def backward(self, batches: ReplicaRows, rows_of_all: float, seed: tuple[int, ...]) -> float:
        """Compute the gradients of this replica's rows. Returns their share of the loss."""
        if self.number > 0:  # replica 0 uses the generator that checkpoints save
            mixed = np.random.SeedSequence((*seed, self.number))
            torch.default_generator.manual_seed(int(mixed.generate_state(1)[0]))
        self._gradient.zero_()
        for parameter, gradient in zip(self._parameters, self._gradients, strict=True):
            parameter.grad = gradient
        total = 0.0
        for x, y in batches:
            if len(x) == 0:
                continue
            loss = self._model(torch.from_numpy(x), torch.from_numpy(y))
            loss = loss * (len(x) / rows_of_all)
            loss.backward()
            total += loss.item()
        return total

    def compile(self, does_compile: bool) -> None:
        if does_compile and self.number > 0:
            # A fork does not copy the compiler threads that an earlier run may have started, so the
            # pool must be made again.
            from torch._inductor.async_compile import AsyncCompile  # noqa: PLC0415  takes a second

            AsyncCompile.pool.cache_clear()
        plain = self._plain_model
        self._model = compiled(plain) if does_compile else plain

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
        """The progress of this replica's part of an update. If it is lost after it has begun, the
        update is left half done. The value is in shared memory, so the other replicas can read it
        after this process has ended."""
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


# -- shared memory ------------------------------------------------------------------------------


def share_memory(model: nn.Module, optimizer: MuonAdamW) -> None:
    """Move weights and optimizer state to memory that is shared with the helpers."""
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
    """A copy of a tensor in memory that is shared with processes forked from this one."""
    pages = mmap.mmap(-1, max(source.nbytes, 1))  # not a file: /dev/shm of a container may be small
    target = torch.frombuffer(pages, dtype=source.dtype, count=source.numel())
    return target.view(source.shape).copy_(source)
