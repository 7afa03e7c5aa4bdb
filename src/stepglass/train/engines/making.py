"""Chooses the engine of a run. Only this module knows all engines."""

from collections.abc import Callable
from dataclasses import replace

from stepglass.errors import os_reason
from stepglass.hardware.device import Device
from stepglass.measure.clock import PhaseClock
from stepglass.models.model import Model
from stepglass.train.console import Console
from stepglass.train.engines.engine import Engine
from stepglass.train.engines.replicas import Replicas
from stepglass.train.engines.single import SingleEngine
from stepglass.train.muon import MuonAdamW


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
