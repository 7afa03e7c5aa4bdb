"""Whether a run that goes on in another number of processes gets the same weights, bit for bit.

    reasons(Together(2, "ddp"), Together(1, "ddp"), cfg, shapes)    # [] if it does

Half of one gradient plus half of another has one result in any order; more parts do not. What
docs/multi-gpu.md says about the same weights is decided here.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from stepglass.hardware.ranks import this_rank
from stepglass.settings.train import TrainConfig

REGISTER = 8  # AdamW on a CPU rounds the numbers at the end that do not fill a register differently


@dataclass(frozen=True)
class Together:
    """How processes train together."""

    processes: int
    parallel: str  # means nothing for one process

    @property
    def is_fsdp(self) -> bool:
        return self.processes > 1 and self.parallel == "fsdp"

    def __str__(self) -> str:
        return f"{self.processes} ({self.parallel})" if self.processes > 1 else "1"


def changed_processes(
    stored: dict[str, Any], cfg: TrainConfig, shapes: Iterable[tuple[int, ...]]
) -> list[str]:
    """What differs from the processes that have written a checkpoint, in words, if the weights will
    differ as well. `shapes` are those of the weights."""
    before, now = stored_together(stored), Together(this_rank().of, cfg.parallel)
    why = reasons(before, now, cfg, shapes) if before else []
    return [f"processes was {before}, is {now} ({', '.join(why)})"] if why else []


def stored_together(stored: dict[str, Any]) -> Together | None:
    """Who has written a checkpoint, if it can be told."""
    config = stored.get("config")
    if not isinstance(config, dict):
        return None
    # Earlier versions have stored only the setting, which torchrun does not change.
    processes = stored.get("processes", config.get("nproc", 1))
    if type(processes) is not int or processes < 1:
        return None
    return Together(processes, str(config.get("parallel", "ddp")))


def reasons(
    before: Together, now: Together, cfg: TrainConfig, shapes: Iterable[tuple[int, ...]]
) -> list[str]:
    """Why the weights will not be the same bits."""
    if before == now or before.processes == now.processes == 1:
        return []
    found = []
    parts = micro_batch_rows(before.processes, cfg), micro_batch_rows(now.processes, cfg)
    if parts[0] != parts[1] or len(parts[0]) > 2:
        found.append("gradients are summed up in another order")
    if cfg.dropout and before.processes != now.processes:
        found.append("each process draws its own dropout")
    if cfg.grad_clip and (before.is_fsdp or now.is_fsdp):
        found.append("fsdp rounds the norm for clipping differently")
    counts = {each.processes for each in (before, now) if each.is_fsdp}
    sizes = list(shapes)
    if any(is_cut_short(shape, processes) for processes in counts for shape in sizes):
        found.append(f"shares that are no multiple of {REGISTER} numbers")
    return found


def micro_batch_rows(processes: int, cfg: TrainConfig) -> list[int]:
    """The sequences of each micro-batch of an update, in all processes (train/batches.py)."""
    share = cfg.batch_size * cfg.gradient_accumulation_steps // processes
    whole, rest = divmod(share, cfg.batch_size)
    return processes * ([cfg.batch_size] * whole + [rest] * bool(rest))


def is_cut_short(shape: tuple[int, ...], processes: int) -> bool:
    """Whether some process's rows of a tensor end within a register. All processes have the same
    number of rows, but for the last."""
    each = -(-shape[0] // processes)
    width = 1
    for size in shape[1:]:
        width *= size
    return any(rows * width % REGISTER for rows in (each, shape[0] % each))
