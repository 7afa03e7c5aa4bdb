"""A helper process that runs the methods of one replica: the parent's side and the helper's side.

    helper = Helper(replica)                        # forked from this process
    helper.send("backward", arguments, patience)
    result = helper.receive(patience)               # or a ReplicaLost that says what happened
    helper.close()

Every wait for a helper is limited by a `Patience`, and is shorter once the run is asked to stop. A
helper that does not answer in time is killed and reaped. A helper works until its pipe is closed.
It does not outlive this process, even if it is stopped or hangs.
"""

import ctypes
import gc
import os
import select
import signal
import socket
import struct
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import torch

from stepglass import units
from stepglass.train.engines.engine import EngineLost

SLEEP_WITHIN_S = 1.0  # a thread that still runs after this time does work that is not ours
SPIN_S = 0.01  # busy waiting for an answer, before the process sleeps
PIECE_S = 0.05  # a wait is made of pieces of this length; signals are noticed after each
END_WITHIN_S = 2.0  # a helper that has not ended this long after its pipe was closed is killed
STATES = {
    "T": "stopped",
    "t": "stopped by a debugger",
    "D": "waiting for a disk",
    "R": "running",
    "S": "asleep",
    "Z": "gone",
}
PR_SET_PDEATHSIG = 1  # from <sys/prctl.h>
LENGTH = struct.Struct("!Q")  # of the message that follows


class ReplicaLost(EngineLost):
    """A helper has ended, or was killed because it did not answer. The weights are those of the
    last complete update, unless `is_torn` is set: then only some of them have changed, and they
    must not be saved."""


class NoAnswer(Exception):
    """Another process has not answered in time."""


class Patience:
    """How long to wait for helpers: at most `seconds`, and at most `grace_s` once the run is asked
    to stop.

    Only the time in which this process was running counts. The time while a laptop sleeps does not
    count, nor the time after Ctrl-Z, which stops the helpers as well.
    """

    def __init__(self, seconds: float, grace_s: float, is_stopping: Callable[[], bool]) -> None:
        self._seconds = self._left_s = seconds
        self._grace_s = grace_s
        self._is_stopping = is_stopping

    def spend(self, seconds: float) -> None:
        if self._is_stopping():
            self._left_s = min(self._left_s, self._grace_s)
        self._left_s -= seconds
        if self._left_s < 0:
            raise NoAnswer

    def in_words(self) -> str:
        if self._is_stopping():
            return "after the run was asked to stop"
        return f"within {units.duration(self._seconds * 1000)}"


# -- the parent's side --------------------------------------------------------------------------


class Helper:
    """A helper process, as the parent process uses it."""

    def __init__(self, replica: Any) -> None:
        self._number = replica.number
        self._exit_code: str | None = None
        self._lost: ReplicaLost | None = None
        ours, theirs = socket.socketpair()
        self._channel = Channel(ours)
        try:
            self._pid = fork()
        except BaseException:
            ours.close()
            theirs.close()
            raise
        if self._pid == 0:
            try:
                serve(replica, theirs)
            finally:
                os._exit(1)  # a helper must never return into the parent's code
        theirs.close()

    def send(self, name: str, arguments: tuple[Any, ...], patience: Patience) -> None:
        try:
            self._channel.send((name, arguments), patience)
        except NoAnswer:
            self._give_up(patience)
        except OSError:
            pass  # `receive` will report that the helper is lost

    def receive(self, patience: Patience, is_updating: bool = False) -> Any:
        """The result of the replica's method, or an exception that says why there is none."""
        if self._lost is not None:
            return self._lost
        try:
            return self._channel.receive(patience)
        except NoAnswer:
            self._give_up(patience, is_updating)
        except (EOFError, OSError):
            self.close()
            self._lost = ReplicaLost(
                f"{self._name()} ended, exit code {self._exit_code}; if there was too little "
                "memory, lower --batch_size"
            )
        return self._lost

    def has_ended(self) -> bool:
        """True if the process has ended and can no longer change shared memory."""
        return self._is_over(0.0)

    def hang_up(self) -> None:
        """Close the pipe. The helper ends by itself when its current task is done."""
        self._channel.close()

    def kill(self) -> None:
        """End the helper at once, whatever it does."""
        self.hang_up()
        self._kill()

    def close(self) -> None:
        """Close the pipe, and kill the helper if it does not end. It ignores other signals."""
        self.hang_up()
        if not self._is_over(END_WITHIN_S):
            self._kill()

    def _give_up(self, patience: Patience, is_updating: bool = False) -> None:
        state = state_of(self._pid)
        if is_updating:
            self._let_finish()
        self._kill()
        self.hang_up()
        if "stopped" in state:
            advice = "something has stopped it"
        else:
            advice = "if memory is short, lower --batch_size"
        self._lost = ReplicaLost(
            f"{self._name()}, {state}, gave no answer {patience.in_words()} and was killed; "
            f"{advice}"
        )

    def _let_finish(self) -> None:
        """Continue a helper that was stopped in the middle of an update, so that the update is not
        left half done."""
        with suppress(OSError, EOFError, NoAnswer):
            os.kill(self._pid, signal.SIGCONT)
            self._channel.receive(Patience(END_WITHIN_S, END_WITHIN_S, lambda: False))

    def _kill(self) -> None:
        if not self._is_over(0.0):  # the pid still belongs to the helper
            with suppress(OSError):
                os.kill(self._pid, signal.SIGKILL)
            self._is_over(END_WITHIN_S)

    def _is_over(self, within_s: float) -> bool:
        """True if the helper has ended, or ends within this time."""
        while self._exit_code is None:
            try:
                pid, status = os.waitpid(self._pid, os.WNOHANG)
            except ChildProcessError:  # other code has reaped it
                self._exit_code = "n/a"
                break
            if pid != 0:
                self._exit_code = str(os.waitstatus_to_exitcode(status))
            elif within_s <= 0:
                return False
            else:
                time.sleep(0.001)
                within_s -= 0.001
        return True

    def _name(self) -> str:
        return f"replica {self._number} of the model (process {self._pid})"


def state_of(pid: int) -> str:
    """The state of a process according to the operating system, in words."""
    try:
        letter = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "gone"
    return STATES.get(letter, f"in state {letter}")


def fork() -> int:
    with warnings.catch_warnings():
        # Python 3.12 warns that a fork does not copy the other threads. A helper needs none.
        warnings.simplefilter("ignore", DeprecationWarning)
        let_other_threads_sleep()
        return os.fork()


def let_other_threads_sleep() -> None:
    """Wait until no other thread of this process is running. MKL's allocator uses locks. If a
    thread holds one during a fork, that lock stays locked forever in the new process.
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


# -- the helper's side --------------------------------------------------------------------------


def serve(replica: Any, end: socket.socket) -> None:
    """In a helper: run the requested methods until the pipe is closed."""
    # Let the kernel kill this process when its parent ends: a helper that is stopped or hangs would
    # not notice that the pipe is closed.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # only replica 0 handles signals
    close_all_but(end.fileno())
    channel = Channel(end)
    torch.set_num_threads(1)
    gc.freeze()
    while True:
        try:
            name, arguments = channel.receive()
        except (EOFError, OSError):
            return
        try:
            result = getattr(replica, name)(*arguments)
        except Exception as error:  # noqa: BLE001  raised in the parent
            result = RuntimeError(f"{type(error).__name__}: {error}")
        try:
            channel.send(result)
        except OSError:
            return


def close_all_but(kept: int) -> None:
    """Close all inherited files except standard input, output and error and `kept`. A helper that
    outlives the run must not hold the run's files or its lock."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) != kept:
            with suppress(OSError):  # listing the folder used one of them, which is closed already
                os.close(int(name))


# -- the pipe between them ----------------------------------------------------------------------


class Channel:
    """Messages to and from another process. The connections of multiprocessing are not used,
    because they wait forever if the other side is stopped: for an answer, for the rest of an
    answer, or for space in the pipe."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._can_receive, self._can_send = select.poll(), select.poll()
        self._can_receive.register(end, select.POLLIN)
        self._can_send.register(end, select.POLLOUT)

    def send(self, message: Any, patience: Patience | None = None) -> None:
        data = ForkingPickler.dumps(message)
        left = memoryview(LENGTH.pack(len(data)) + data)
        while left:
            try:
                left = left[self._socket.send(left, socket.MSG_DONTWAIT) :]
            except BlockingIOError:
                wait_until(self._can_send, patience)

    def receive(self, patience: Patience | None = None) -> Any:
        [length] = LENGTH.unpack(self._read(LENGTH.size, patience))
        return ForkingPickler.loads(self._read(length, patience))

    def close(self) -> None:
        self._socket.close()

    def _read(self, size: int, patience: Patience | None) -> bytearray:
        data = bytearray(size)
        left = memoryview(data)
        while left:
            try:
                count = self._socket.recv_into(left, 0, socket.MSG_DONTWAIT)
            except BlockingIOError:
                wait_until(self._can_receive, patience)
                continue
            if count == 0:
                raise EOFError
            left = left[count:]
        return data


def wait_until(ready: select.poll, patience: Patience | None) -> None:
    """Wait until a pipe is ready. The other side usually answers soon, so this polls for a while
    before it sleeps: a poll takes microseconds, but waking up takes up to a millisecond. Without
    `patience` there is no time limit."""
    deadline = time.perf_counter() + SPIN_S
    while not ready.poll(0):
        if time.perf_counter() >= deadline:
            break
        os.sched_yield()  # the other side may need this core
    else:
        return
    if patience is None:
        ready.poll()
        return
    while not ready.poll(1000 * PIECE_S):
        patience.spend(PIECE_S)
