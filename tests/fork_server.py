"""Starts `stepglass` processes in a moment: imports once, then forks for each command.

Talks to `processes.ForkServer` over a socket. An order is a JSON object with `argv`, `cwd`,
`threads`, `encoding`, `new_session`, `rest_s`, `may_gather` and `env`. It comes with three files:
the command's output, its errors, and a pipe for its process id and, when it has ended, its exit
code. Nothing is computed before the fork, so no thread is lost in it.
"""

import json
import os
import signal
import socket
import sys
import time
from typing import Any
from unittest import mock

import torch._dynamo  # torch loads it with the first optimizer, which takes seconds
from torch.distributed.tensor import DTensor

import stepglass.train.following
import stepglass.train.loop  # noqa: F401
from stepglass.__main__ import process
from stepglass.data.dataset import Dataset
from stepglass.hardware import cpu_peak
from stepglass.train import pace
from stepglass.train.engines.fsdp import FsdpShare  # torch.distributed takes seconds as well

# Nobody looks at the MFUs of these runs, or at when they will end.
cpu_peak.ROUND_S, cpu_peak.MOST_ROUNDS = 0.01, 1
pace.LEAST_S, pace.LEAST_TRIES = 0.0, 1


COLLECTIVES = (
    "gather",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_to_all",
    "broadcast",
    "all_reduce",
    "reduce",
    "recv",
)


def serve(orders: socket.socket) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the minders
    while True:
        message, files, _, _ = socket.recv_fds(orders, 1 << 16, 3)
        if not message:
            return
        if os.fork() == 0:
            orders.close()
            mind(json.loads(message), *files)
            return
        for file in files:
            os.close(file)


def mind(order: dict[str, Any], output: int, errors: int, status: int) -> None:
    """Be the parent that waits for the command."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = os.fork()
    if pid == 0:
        os.close(status)
        command(order, output, errors)
    os.close(output)
    os.close(errors)
    os.write(status, f"{pid}\n".encode())
    _, code = os.waitpid(pid, 0)
    os.write(status, f"{os.waitstatus_to_exitcode(code)}\n".encode())
    os._exit(0)


def command(order: dict[str, Any], output: int, errors: int) -> None:
    """Be the command, from its first line to the end of its interpreter."""
    for file, number in ((os.open(os.devnull, os.O_RDONLY), 0), (output, 1), (errors, 2)):
        os.dup2(file, number)
        os.close(file)
    sys.stdout = os.fdopen(1, "w", encoding=order["encoding"], closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
    os.chdir(order["cwd"])
    os.environ.update(order["env"])
    torch.set_num_threads(order["threads"])
    if order["new_session"]:
        os.setsid()
    if order["rest_s"]:
        rest_before_each_batch(order["rest_s"])
    if not order["may_gather"]:
        forbid_gathering()
    sys.argv = ["stepglass", *order["argv"]]
    sys.exit(process())


def forbid_gathering() -> None:
    """Refuse every way in which a process could get rows that others hold, while it collects the
    tensors of a checkpoint."""

    def refuse(*args: Any, **options: Any) -> Any:
        raise AssertionError("a whole tensor was gathered")

    real = FsdpShare.tensors
    refused = dict.fromkeys(COLLECTIVES, refuse)

    def tensors(share: FsdpShare) -> Any:
        with (
            mock.patch.multiple(torch.distributed, **refused),
            mock.patch.object(DTensor, "full_tensor", refuse),
        ):
            return real(share)

    FsdpShare.tensors = tensors  # type: ignore[method-assign]


def rest_before_each_batch(seconds: float) -> None:
    """A training that goes on while a test looks at something else need not keep a core busy."""
    real = Dataset.batch

    def batch(*args: Any) -> Any:
        time.sleep(seconds)
        return real(*args)

    Dataset.batch = batch  # type: ignore[method-assign]


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
    os._exit(0)  # nothing is left to tidy up, and the interpreter would search torch for it
