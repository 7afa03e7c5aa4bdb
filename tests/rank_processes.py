"""Several processes that train one model, started as torchrun would start them."""

import socket
from pathlib import Path
from typing import Any

from helpers import tiny_args
from processes import Forked, ForkServer

# Two micro-batches: half of each gradient plus half of the other has one result in any order.
# Width 32: torch's AdamW rounds the last few numbers of a tensor differently, those that do not
# fill a register, and a share of a shorter vector would have nothing else.
TWO = {
    "gradient_accumulation_steps": 2,
    "n_embd": 32,
    "max_iters": 20,
    "lr_decay_iters": 20,
    "eval_interval": 10,
    "compile": False,
}


def start_ranks(
    fork_server: ForkServer,
    *,
    folders: tuple[str, ...] = (".", "."),
    rest_s: float = 0.0,
    may_gather: bool = True,
    **settings: Any,
) -> list[Forked]:
    """A process for each folder, as torchrun would start them, without its restarts."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    world = {
        "WORLD_SIZE": str(len(folders)),
        "LOCAL_WORLD_SIZE": str(len(folders)),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    return [
        fork_server.start(
            "train",
            *tiny_args(**TWO | settings),
            cwd=Path(folder),
            rest_s=rest_s,
            may_gather=may_gather,
            env=world | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
        )
        for rank, folder in enumerate(folders)
    ]


def train_ranks(fork_server: ForkServer, **settings: Any) -> list[str]:
    """Train to the end; what each process printed."""
    processes = start_ranks(fork_server, **settings)
    ends = [process.communicate() for process in processes]
    assert [process.wait() for process in processes] == [0, 0], ends
    return [out + error for out, error in ends]
