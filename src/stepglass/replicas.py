"""A replica of the model on every core: each works on its own rows of a batch.

    replicas = Replicas(model, optimizer, device)     # device.replicas of them
    loss = replicas.backward(micro_batches, seed=(1337, step))
    norm = replicas.update(grad_clip=1.0)
    replicas.close()

PyTorch shares out every single operation among the cores, which then wait for each other several
hundred times an update. Replicas meet three times: when the gradients are there, when they are
added up, and when the weights have changed. Replica 0 is this process. The others are forked from
it, so that Python's lock is not between them; weights, gradients and what the optimizer remembers
lie in memory that all of them see. Sums have a fixed order: the same run ends in the same bits.

A helper ends when its pipe does, whatever has become of this process.
"""

import gc
import mmap
import os
import signal
import threading
import time
import warnings
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from stepglass.device import Device
from stepglass.errors import TrainingFailed
from stepglass.evaluate import window_losses
from stepglass.optim import MuonAdamW, parts_of

MicroBatch = tuple[Tensor, Tensor]
SLEEP_WITHIN_S = 1.0  # or a thread has work that is none of ours
PATIENCE_S = 0.01  # to look for an answer before going to sleep
Rows = list[tuple["np.ndarray[Any, Any]", "np.ndarray[Any, Any]"]]


class Replicas:
    """All replicas, seen from replica 0."""

    def __init__(self, model: nn.Module, optimizer: MuonAdamW, device: Device) -> None:
        share_memory(model, optimizer)
        parts = parts_of(optimizer, device.replicas)
        size = sum(p.numel() for p in model.parameters())
        gradients = [shared(torch.zeros(size)) for _ in range(device.replicas)]
        self._optimizer = optimizer
        self._threads = device.threads
        self._helpers: list[Helper] = []
        try:
            for number in range(1, device.replicas):
                self._helpers.append(Helper(Replica(number, model, parts, gradients, device)))
        except BaseException:
            self.close()
            raise
        torch.set_num_threads(1)  # the other cores are taken
        self._first = Replica(0, model, parts, gradients, device)

    def backward(self, micro_batches: list[MicroBatch], seed: tuple[int, ...]) -> Tensor:
        """Work out the gradients of an update. Returns its loss."""
        shares = [self._rows_of_each(x, y) for x, y in micro_batches]
        rows = sum(len(x) for x, _ in micro_batches)
        work = [([share[i] for share in shares], rows, seed) for i in range(len(shares[0]))]
        return torch.tensor(sum(self._all_do("backward", work)))

    def update(self, grad_clip: float) -> Tensor | None:
        """Clip and update. Returns the gradient's norm before clipping, where it clips."""
        norms = self._all_do("add_up", [()] * (1 + len(self._helpers)))
        norm = sum(norm**2 for norm in norms) ** 0.5 if grad_clip > 0 else None
        rates = [group["lr"] for group in self._optimizer.param_groups]
        self._all_do("update", [(rates, grad_clip, norm)] * len(norms))
        return None if norm is None else torch.tensor(norm)

    def compile(self, does_compile: bool) -> None:
        """From the next batch on. Each replica compiles for itself; they share a cache on disk."""
        self._all_do("compile", [(does_compile,)] * (1 + len(self._helpers)))

    def score(self, x: Tensor, y: Tensor) -> Tensor:
        """The mean loss of each row."""
        work = [(part,) for part in self._rows_of_each(x, y)]
        return torch.from_numpy(np.concatenate(self._all_do("score", work)))

    def close(self) -> None:
        """End the helpers, and give this process its threads back."""
        for helper in self._helpers:
            helper.close()
        torch.set_num_threads(self._threads)

    def _rows_of_each(self, x: Tensor, y: Tensor) -> Rows:
        number = 1 + len(self._helpers)
        parts = (np.array_split(tensor.numpy(), number) for tensor in (x, y))
        return list(zip(*parts, strict=True))

    def _all_do(self, name: str, work: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Every replica does its part. Waits for all of them, whatever has happened to one."""
        for helper, arguments in zip(self._helpers, work[1:], strict=True):
            helper.send(name, arguments)
        try:
            results = [getattr(self._first, name)(*work[0])]
        finally:
            theirs = [helper.receive() for helper in self._helpers]
        for result in theirs:
            if isinstance(result, Exception):
                raise result
        return results + theirs


class Replica:
    """One of them: all of the weights, and a part of them to look after."""

    def __init__(
        self,
        number: int,
        model: nn.Module,
        parts: list[MuonAdamW],
        gradients: list[Tensor],
        device: Device,
    ) -> None:
        self.number = number
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

    def backward(self, micro_batches: Rows, rows_of_all: int, seed: tuple[int, ...]) -> float:
        """The gradients of this replica's rows. Returns their share of the loss."""
        if self.number > 0:  # replica 0 draws from the generator that checkpoints keep
            mixed = np.random.SeedSequence((*seed, self.number))
            torch.default_generator.manual_seed(int(mixed.generate_state(1)[0]))
        self._gradient.zero_()
        for parameter, gradient in zip(self._parameters, self._gradients, strict=True):
            parameter.grad = gradient
        total = 0.0
        for x, y in micro_batches:
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
        """The whole batch's gradients of the weights it looks after. Returns their norm."""
        for other in self._others:
            self._sum.add_(other)
        return float(torch.linalg.vector_norm(self._sum))

    def update(self, rates: list[float], grad_clip: float, norm: float | None) -> None:
        if norm is not None:
            self._sum.mul_(min(1.0, grad_clip / (norm + 1e-6)))
        for parameter, gradient in zip(self._part.parameters(), self._sums, strict=True):
            parameter.grad = gradient
        for group, lr in zip(self._part.param_groups, rates, strict=True):
            group["lr"] = lr
        self._part.step()

    @torch.inference_mode()
    def score(self, rows: tuple["np.ndarray[Any, Any]", "np.ndarray[Any, Any]"]) -> Any:
        x, y = (torch.from_numpy(part) for part in rows)
        if len(x) == 0:
            return np.zeros(0, dtype=np.float32)
        return window_losses(self._model, x, y, self._device).numpy()


class Helper:
    """A process that does what a replica is told to, seen from outside."""

    def __init__(self, replica: Replica) -> None:
        self._exit_code: str | None = None
        self._pipe, theirs = Pipe()
        with warnings.catch_warnings():
            # Python 3.12 warns of threads that a fork leaves behind. A helper needs none of them:
            # it works alone.
            warnings.simplefilter("ignore", DeprecationWarning)
            let_other_threads_sleep()
            self._pid = os.fork()
        if self._pid == 0:
            try:
                serve(replica, theirs)
            finally:
                os._exit(1)  # nothing of what is above on this stack is a helper's to do
        theirs.close()

    def send(self, name: str, arguments: tuple[Any, ...]) -> None:
        with suppress(OSError):  # `receive` says that it is lost
            self._pipe.send((name, arguments))

    def receive(self) -> Any:
        """What the replica returned, or the exception that says why it did not."""
        try:
            return receive(self._pipe)
        except (EOFError, OSError):
            self.close()
            return TrainingFailed(
                f"a replica of the model ended, exit code {self._exit_code}; if there was too "
                "little memory, lower --batch_size"
            )

    def close(self) -> None:
        """It ends by itself, once it has done what it was told last."""
        self._pipe.close()
        if self._exit_code is None:
            self._exit_code = "n/a"
            with suppress(ChildProcessError):  # somebody else has asked how it ended
                _, status = os.waitpid(self._pid, 0)
                self._exit_code = str(os.waitstatus_to_exitcode(status))


def let_other_threads_sleep() -> None:
    """Wait until no other thread of this process runs. MKL's memory has locks of its own: one that
    a thread holds at the moment of a fork, and be it a thread that is just ending, is locked in the
    new process for ever.
    """
    deadline = time.perf_counter() + SLEEP_WITHIN_S
    while is_any_other_thread_awake() and time.perf_counter() < deadline:
        time.sleep(0.0005)


def is_any_other_thread_awake() -> bool:
    for name in os.listdir("/proc/self/task"):
        if int(name) == threading.get_native_id():
            continue
        with suppress(OSError):  # it has just ended
            status = Path(f"/proc/self/task/{name}/stat").read_text()
            if status.rpartition(")")[2].split()[0] != "S":
                return True
    return False


def serve(replica: Replica, pipe: Connection) -> None:
    """In a helper: do as told until the pipe ends."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # replica 0 decides when to stop
    close_all_but(pipe.fileno())
    torch.set_num_threads(1)
    gc.freeze()
    while True:
        try:
            name, arguments = receive(pipe)
        except (EOFError, OSError):
            return
        try:
            result = getattr(replica, name)(*arguments)
        except Exception as error:  # noqa: BLE001  raised by the one who asked
            result = RuntimeError(f"{type(error).__name__}: {error}")
        try:
            pipe.send(result)
        except OSError:
            return


def receive(pipe: Connection) -> Any:
    """What the other side says. Mostly it is about to: looking takes microseconds, being woken up
    up to a millisecond."""
    deadline = time.perf_counter() + PATIENCE_S
    while not pipe.poll() and time.perf_counter() < deadline:
        os.sched_yield()  # the other side may be waiting for this very core
    return pipe.recv()


def close_all_but(kept: int) -> None:
    """Files of the run, and its lock, must not be held by a helper that outlives it."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) != kept:
            with suppress(OSError):  # the folder itself was one of them
                os.close(int(name))


# -- memory that all replicas see ---------------------------------------------------------------


def share_memory(model: nn.Module, optimizer: MuonAdamW) -> None:
    """Move weights and what the optimizer remembers of them to where helpers can change them."""
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
