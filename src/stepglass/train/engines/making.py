"""Chooses the engine of a run. Only this module knows all engines."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from stepglass.errors import os_reason
from stepglass.hardware.device import Device
from stepglass.measure.clock import PhaseClock
from stepglass.models.model import Model
from stepglass.settings.train import TrainConfig
from stepglass.train.console import Console
from stepglass.train.engines.engine import Engine
from stepglass.train.engines.replicas import Replicas
from stepglass.train.engines.single import SingleEngine
from stepglass.train.muon import MuonAdamW

if TYPE_CHECKING:
    from stepglass.train.engines.ddp import DdpShare
    from stepglass.train.engines.fsdp import FsdpShare
    from stepglass.train.engines.group import Group


def make_engine(
    model: Model,
    optimizer: MuonAdamW,
    device: Device,
    *,
    seed: int,
    clock: PhaseClock,
    console: Console,
    is_stopping: Callable[[], bool],
) -> Engine:
    """Replicas if `device.replicas` is above 1, otherwise a single model."""
    if device.replicas > 1:
        try:
            return Replicas(model, optimizer, device, seed, is_stopping)
        except OSError as error:  # a limit on processes or memory
            console.say(
                f"note: one model instead of {device.replicas} replicas: {os_reason(error)}"
            )
            device = replace(device, replicas=1)
    return SingleEngine(model, optimizer, device, clock)


def make_share(
    model: Model,
    make_optimizer: Callable[[Model], MuonAdamW],
    device: Device,
    clock: PhaseClock,
    group: "Group",
    cfg: TrainConfig,
) -> "DdpShare | FsdpShare":
    """What one of several processes computes. All of them must call this. `checkpoint_shards` is
    what rank 0 has decided."""
    # Imported here, because torch's distributed parts take a second.
    if cfg.parallel == "fsdp":
        from stepglass.train.engines import fsdp  # noqa: PLC0415

        fsdp.shard(model, device, group)
        saves_shards = cfg.checkpoint_shards is True
        return fsdp.FsdpShare(model, make_optimizer(model), device, clock, group, saves_shards)
    from stepglass.train.engines.ddp import DdpShare  # noqa: PLC0415

    return DdpShare(model, make_optimizer(model), device, clock, group)
