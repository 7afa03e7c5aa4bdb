"""The processes of a run, connected: orders from rank 0 to the others, and who is to blame if the
connection breaks.

    group = Group.connect(this_rank(), timeout_s=120)
    group.tell("update", rates=[0.1])       # rank 0
    order, what = group.listen()            # the others

torch.distributed has two groups of them here. The work goes over one: NCCL between GPUs, gloo
between CPUs, with a timeout. Orders go over the other. There the others wait longer: rank 0 may
have to prepare data or to compile before the next order. Rank 0 does not: gloo sends when the other
side has begun to receive, so an order to a process that hangs would not return.

Each process keeps a note of where it is. A thread puts it into torchrun's store once a second, so
that rank 0 can say who is late when a timeout has passed. The others read rank 0's note: if the
link to another machine is cut, nothing else would tell them for half an hour.
"""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import distributed_c10d as c10d
from torch.distributed.rendezvous import rendezvous

from stepglass import units
from stepglass.errors import TrainingFailed
from stepglass.hardware.ranks import Rank
from stepglass.train.engines.engine import EngineLost
from stepglass.train.engines.helper_process import state_of
from stepglass.train.engines.network import choose_interface
from stepglass.train.engines.signs_of_life import SignsOfLife

ORDER_BYTES = 512  # longer orders are sent in two pieces
LENGTH_BYTES = 4
ORDERS_WITHIN = timedelta(minutes=30)
NOTE_EVERY_S = 1.0
REPORT_WITHIN_S = 2.0  # the time that a process has to say why it ends
WHY_WITHIN_S = 15.0
LEADER = 0


class GroupLost(EngineLost):
    """A process of the run has ended or does not answer."""


class Group:
    """The connection between the processes of a run."""

    def __init__(self, here: Rank, store: c10d.Store, timeout_s: float) -> None:
        self.here, self.timeout_s = here, timeout_s
        self.step = 0  # for messages
        self._store = store
        within = timedelta(seconds=timeout_s) if here.leads else ORDERS_WITHIN
        self._orders = dist.new_group(backend="gloo", timeout=within)
        self._passed = 0  # points passed in the current order
        self._unheard = 0  # seconds without a sign of rank 0, but for those of a standstill here
        self._closed = threading.Event()
        store.set(f"pid/{here.number}", str(os.getpid()))
        self.signs = SignsOfLife()  # rank 0
        self._threads = [
            threading.Thread(target=self._keep_noting, args=(self.own_store(),), daemon=True)
        ]
        if not here.leads:
            self._threads.append(threading.Thread(target=self._end_without_leader, daemon=True))
        for thread in self._threads:
            thread.start()

    @classmethod
    def connect(cls, here: Rank, timeout_s: float) -> "Group":
        """Connect to the other processes, which have to do the same."""
        choose_interface(here)
        within = timedelta(seconds=timeout_s)
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
        try:
            found, number, of = next(iter(rendezvous("env://", timeout=within)))
            # torchrun's store outlives a restart, with the addresses of the processes before it.
            store = c10d.PrefixStore(f"stepglass/{here.restarts}", found)
            dist.init_process_group(
                backend, store=store, rank=number, world_size=of, timeout=within
            )
            return cls(here, store, timeout_s)
        except (RuntimeError, ValueError, OSError) as error:
            used = os.environ.get("GLOO_SOCKET_IFNAME", "none")
            hint = f"; GLOO_SOCKET_IFNAME={used} names the network interface to use"
            raise TrainingFailed(
                f"rank {here.number} of {here.of} found no connection to the others at "
                f"{os.environ.get('MASTER_ADDR')}:{os.environ.get('MASTER_PORT')}: "
                f"{first_line(error)}{hint if here.local_of < here.of else ''}"
            ) from error

    def close(self) -> None:
        self._closed.set()
        for thread in self._threads:
            # The interpreter aborts if it ends while a thread is inside of torch's code. A store
            # that does not answer would hold the thread there for ever.
            thread.join(REPORT_WITHIN_S)
        with suppress(RuntimeError):  # the others may be gone
            dist.destroy_process_group()

    def own_store(self) -> c10d.Store:
        """Another connection to the store, for another thread: the first one may be waiting for an
        answer."""
        store: Any = self._store
        connection: c10d.Store = store.clone()
        return connection

    # -- orders ---------------------------------------------------------------------------------

    def tell(self, order: str, **what: Any) -> None:
        """Rank 0: give an order to all others."""
        self.begin(what.get("step", self.step))
        data = json.dumps([order, what]).encode()
        room = ORDER_BYTES - LENGTH_BYTES
        first, rest = data[:room].ljust(room), data[room:]
        self._send(len(data).to_bytes(LENGTH_BYTES, "big") + first)
        if rest:
            self._send(rest)

    def listen(self) -> tuple[str, dict[str, Any]]:
        """The others: wait for the next order."""
        first = self._receive(ORDER_BYTES)
        length = int.from_bytes(first[:LENGTH_BYTES], "big")
        data = first[LENGTH_BYTES:][:length]
        if length > len(data):
            data += self._receive(length - len(data))
        order, what = json.loads(data)
        self.begin(what.get("step", self.step))
        return order, what

    def _send(self, data: bytes) -> None:
        dist.broadcast(torch.frombuffer(bytearray(data), dtype=torch.uint8), LEADER, self._orders)

    def _receive(self, size: int) -> bytes:
        buffer = torch.empty(size, dtype=torch.uint8)
        dist.broadcast(buffer, LEADER, self._orders)
        return buffer.numpy().tobytes()

    # -- tensors --------------------------------------------------------------------------------

    def mean(self, value: Tensor) -> Tensor:
        """The mean of a number over all processes."""
        dist.all_reduce(value)
        return value / self.here.of

    def share(self, tensor: Tensor) -> Tensor:
        """Copy a tensor of rank 0 to all others, in place."""
        dist.broadcast(tensor, LEADER)
        return tensor

    def gather_rows(self, rows: Tensor) -> Tensor:
        """The rows of all processes, one after the other. All have the same number of rows."""
        of_each = [torch.empty_like(rows) for _ in range(self.here.of)]
        dist.all_gather(of_each, rows)
        return torch.cat(of_each)

    def say_yes(self, is_yes: bool) -> list[int]:
        """The processes that do not say yes. All of them must ask at the same time."""
        answers = self.gather_rows(torch.tensor([is_yes], dtype=torch.uint8))
        return [number for number, answer in enumerate(answers.tolist()) if not answer]

    # -- who is late ----------------------------------------------------------------------------

    def begin(self, step: int) -> None:
        self.step, self._passed = step, 0

    def passed(self) -> None:
        """Note that this process has passed one more point on its way through an order."""
        self._passed += 1

    def _keep_noting(self, store: c10d.Store) -> None:
        beat, at_leader, heard = 0, f"at/{LEADER}", b""
        with suppress(RuntimeError):  # torchrun is gone
            while not self._closed.wait(NOTE_EVERY_S):
                beat += 1
                store.set(f"at/{self.here.number}", f"{self.step} {self._passed} {beat}")
                if self.here.leads:
                    self.signs.see(self._notes_of_others(store), time.monotonic())
                elif store.check([at_leader]) and store.get(at_leader) != heard:
                    heard, self._unheard = store.get(at_leader), 0

    def _end_without_leader(self) -> None:
        """The others: end this process if rank 0 gives no more signs of life, or if the store does
        not answer. A call to it need not return, and neither need one of gloo's."""
        leader = self._pids_here([LEADER])
        while not self._closed.wait(NOTE_EVERY_S):
            self._unheard += 1
            if self._unheard * NOTE_EVERY_S > self.timeout_s:
                within = units.duration(1000 * self.timeout_s)
                sys.stderr.write(
                    f"error: step {self.step}: rank {self.here.number} has heard nothing from rank "
                    f"0 for {within} (--rank_timeout)\n"
                )
                sys.stderr.flush()
                self._kill(leader)  # or torchrun would wait for it
                os._exit(1)

    def _notes_of_others(self, store: c10d.Store) -> dict[int, bytes]:
        keys = [f"at/{number}" for number in range(1, self.here.of)]
        return dict(enumerate(store.multi_get(keys), 1)) if store.check(keys) else {}

    def notes(self) -> dict[int, list[int]]:
        """Where each process was a moment ago: its step, the points it has passed, and a number
        that changes while it lives."""
        keys = {number: f"at/{number}" for number in range(self.here.of)}
        found = {n: self._store.get(key) for n, key in keys.items() if self._store.check([key])}
        return {n: [int(word) for word in note.split()] for n, note in found.items()}

    def _silent(self) -> tuple[list[int], dict[int, list[int]]]:
        """The processes that give no more notes, and the notes of all."""
        before = self.notes()
        time.sleep(2.5 * NOTE_EVERY_S)
        now = self.notes()
        return [n for n in range(self.here.of) if n not in now or before.get(n) == now[n]], now

    def _late(self) -> list[int]:
        """The processes that others wait for: those that give no more notes, or else those that
        have come least far."""
        silent, now = self._silent()
        if silent:
            return silent
        least = min(note[:2] for note in now.values())
        return [n for n, note in now.items() if note[:2] == least]

    # -- who is to blame ------------------------------------------------------------------------

    def report(self, error: BaseException) -> None:
        """Tell rank 0 why this process ends. Only the first such report counts."""
        with suppress(RuntimeError):  # torchrun is gone
            if self._store.add("reports", 1) == 1:
                self._store.set("error", f"rank {self.here.number}: {first_line(error)}")

    @contextmanager
    def blaming(self) -> Iterator[None]:
        """Rank 0: turn an error of the connection into one that says which process is to blame."""
        try:
            yield
        except RuntimeError as error:
            if not is_group_error(error):
                raise
            raise GroupLost(self._why(error)) from error

    def _why(self, error: RuntimeError) -> str:
        """Who is to blame. The store may be on a machine that does not answer any more."""
        found: list[str | None] = []
        asking = threading.Thread(target=lambda: found.append(self._ask_why(error)), daemon=True)
        asking.start()
        asking.join(WHY_WITHIN_S)
        lost = f"the connection to another process was lost: {first_line(error)}"
        return f"step {self.step}: {found[0] if found and found[0] else lost}"

    def _ask_why(self, error: RuntimeError) -> str | None:
        is_late = "timed out" in str(error).lower() or "timeout" in str(error).lower()
        try:
            said = self._first_report()
            if said is not None:
                return said
            gone = self.gone()
            if gone:
                return f"{', '.join(gone)} ended without a word: killed, or out of memory"
            if is_late:
                late = self._late()
                self._kill(self._pids_here(n for n in late if n != LEADER))
                within = units.duration(1000 * self.timeout_s)
                return f"{ranks_in_words(late)} did not answer within {within} (--rank_timeout)"
            silent, _ = self._silent()
            if silent:
                who = ranks_in_words(silent)
                return f"{who} ended without a word: killed, or its machine was lost"
        except RuntimeError:
            pass  # the store is gone as well
        return None

    def _first_report(self) -> str | None:
        deadline = time.monotonic() + REPORT_WITHIN_S
        while not self._store.check(["error"]):
            if time.monotonic() > deadline or self.gone():
                return None
            time.sleep(0.05)
        return str(self._store.get("error").decode())

    def gone(self) -> list[str]:
        """The other processes that have ended."""
        pids = self._pids_here(range(1, self.here.of))
        return [f"rank {n} (process {pid})" for n, pid in pids.items() if state_of(pid) == "gone"]

    def _kill(self, pids: dict[int, int]) -> None:
        """End processes that would keep torchrun waiting: they may not react to a signal."""
        for pid in pids.values():
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)

    def _pids_here(self, ranks: Iterable[int]) -> dict[int, int]:
        """The processes of these ranks, if all are on this machine and it can be asked about
        them."""
        if self.here.local_of < self.here.of or not os.path.isdir("/proc/self"):
            return {}
        return {n: int(self._store.get(f"pid/{n}")) for n in ranks}


def ranks_in_words(numbers: list[int]) -> str:
    return ", ".join(f"rank {number}" for number in numbers)


def is_group_error(error: BaseException) -> bool:
    """True for an error of the connection between processes."""
    is_of_torch = isinstance(error, dist.DistError)
    return is_of_torch or any(name in str(error) for name in ("gloo", "Gloo", "NCCL"))


def first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:300]
