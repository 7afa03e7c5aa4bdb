"""Which of several processes this one is. torchrun says so in the environment.

    here = this_rank()
    here.number, here.of      # 0 of 1 if nobody has started several processes

Rank 0 leads: it runs the loop, writes the log and the checkpoints, and prints. The others compute
what it asks for (train/engines/following.py).
"""

import os
from dataclasses import dataclass

from stepglass.errors import ConfigError


@dataclass(frozen=True)
class Rank:
    """The place of this process among those of a run."""

    number: int = 0
    of: int = 1  # processes in all
    local: int = 0  # its number on this machine
    local_of: int = 1  # processes on this machine
    restarts: int = 0  # how often torchrun has started all of them again

    @property
    def is_one_of_several(self) -> bool:
        return self.of > 1

    @property
    def leads(self) -> bool:
        return self.number == 0


def this_rank() -> Rank:
    """The place of this process, from the variables that torchrun sets."""
    world = _variable("WORLD_SIZE", 1)
    if world <= 1:
        return Rank()
    if "RANK" not in os.environ or "MASTER_ADDR" not in os.environ:
        raise ConfigError(
            f"WORLD_SIZE={world}: expected RANK and MASTER_ADDR beside it, as torchrun sets them, "
            f"found none; start with `stepglass train --nproc={world}`, or unset WORLD_SIZE"
        )
    number = _variable("RANK", 0)
    if number >= world:
        raise ConfigError(f"RANK={number}: expected a number below WORLD_SIZE={world}")
    return Rank(
        number,
        world,
        _variable("LOCAL_RANK", number),
        _variable("LOCAL_WORLD_SIZE", world),
        _variable("TORCHELASTIC_RESTART_COUNT", 0),
    )


def _variable(name: str, default: int) -> int:
    text = os.environ.get(name, str(default))
    if not text.isdecimal():
        raise ConfigError(f"{name}={text}: expected a whole number, as torchrun sets it")
    return int(text)
