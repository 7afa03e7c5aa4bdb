"""Builds the model, the optimizer and the engine of a run, in one process or in several."""

import random
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from stepglass import units
from stepglass.checkpoint.background import MEMORY_MARGIN
from stepglass.data.dataset import Dataset
from stepglass.data.tokenizer import Tokenizer
from stepglass.hardware import choose
from stepglass.hardware.device import Device
from stepglass.hardware.memory import available_host_bytes
from stepglass.hardware.peak import Peak
from stepglass.hardware.ranks import this_rank
from stepglass.measure import console_lines
from stepglass.measure.clock import PhaseClock
from stepglass.measure.shapes import Shape
from stepglass.models import registry
from stepglass.models.model import Model
from stepglass.process import StopRequest, end_with_parent
from stepglass.settings.train import TrainConfig
from stepglass.train.console import Console
from stepglass.train.engines.engine import Engine
from stepglass.train.engines.making import make_engine, make_share
from stepglass.train.optimizer import leave_compiler_out, make_optimizer
from stepglass.train.starting_model import StartingModel

BYTES_OF_STATE = 12  # of a parameter: its weight and AdamW's two moments

if TYPE_CHECKING:
    from stepglass.train.engines.ddp import DdpShare
    from stepglass.train.engines.fsdp import FsdpShare
    from stepglass.train.engines.group import Group


@dataclass(frozen=True)
class Surroundings:
    """What a run gets from its caller: a clock, a console, the request to stop, the names of the
    settings that nobody chose, which may be fitted to the data, and the other processes."""

    clock: PhaseClock
    console: Console
    stop: StopRequest
    free: frozenset[str] = frozenset()
    measures_batch: bool = False
    group: "Group | None" = None


@dataclass(frozen=True)
class Plan:
    """The parts of a run that has been checked but not built yet."""

    cfg: TrainConfig
    device: Device
    data: Dataset
    shape: Shape
    peak: Peak
    rows_before_compiling: int  # of a batch
    tokenizer: Tokenizer | None  # set if a sample of text is kept with each evaluation
    start_from: StartingModel | None = None


def connect_others(cfg: TrainConfig) -> "Group | None":
    """The other processes of the run, if torchrun has started several."""
    here = this_rank()
    if not here.is_one_of_several:
        return None
    from stepglass.train.engines.group import Group  # noqa: PLC0415  imports torch.distributed

    end_with_parent()
    return Group.connect(here, cfg.rank_timeout)


def new_engine(plan: Plan, around: Surroundings) -> Engine:
    """The engine of a run: that of this process, or that of rank 0 among several processes."""
    cfg, console = plan.cfg, around.console
    if around.group is not None:
        return new_leader(plan, around, around.group)
    model = new_model(plan, console)
    console.say(console_lines.peak_line(plan.peak.source))
    device = choose_replicas(plan, console)
    leave_compiler_out()
    return make_engine(
        model,
        make_optimizer(model, cfg, device.torch_device),
        device,
        seed=cfg.seed,
        clock=around.clock,
        console=console,
        is_stopping=around.stop.is_set,
    )


def new_leader(plan: Plan, around: Surroundings, group: "Group") -> Engine:
    """Tell the other processes what to build, and build the share of this one."""
    from stepglass.train.engines.leading import Leader  # noqa: PLC0415  imports torch.distributed

    # The others take the choices of this process, which may depend on what is free.
    dtype = str(plan.device.dtype).removeprefix("torch.")
    shards = choose_shards(plan, around.console)
    chosen = replace(
        plan.cfg,
        device=plan.device.type,
        dtype=dtype,  # type: ignore[arg-type]
        checkpoint_shards=shards,
    )
    with group.blaming():
        group.tell("start", config=asdict(chosen), data=plan.data.fingerprint)
        share = new_share(replace(plan, cfg=chosen), around.console, around.clock, group)
    around.console.say(console_lines.peak_line(plan.peak.source))
    processes = f"processes: {group.here.of}, {plan.cfg.parallel}"
    each = plan.cfg.gradient_accumulation_steps * plan.cfg.batch_size // group.here.of
    around.console.say(f"{processes}: {each} sequences of an update each")
    return Leader(share, group)


def new_share(
    plan: Plan, console: Console, clock: PhaseClock, group: "Group"
) -> "DdpShare | FsdpShare":
    """What this process computes, as one of several. All of them call this at the same time."""
    leave_compiler_out()
    return make_share(
        new_model(plan, console),
        lambda model: make_optimizer(model, plan.cfg, plan.device.torch_device),
        plan.device,
        clock,
        group,
        plan.cfg,
    )


def new_model(plan: Plan, console: Console) -> Model:
    cfg, shape, device = plan.cfg, plan.shape, plan.device
    console.say(console_lines.tokens_per_iter_line(cfg.tokens_per_iter))
    console.say(console_lines.parameters_line(shape.num_params_shown()))
    if device.type == "cuda":
        torch.set_float32_matmul_precision("high")  # TF32, as nanoGPT does
    torch.manual_seed(cfg.seed)
    random.seed(cfg.seed)
    np.random.seed(cfg.seed % 2**32)  # Stepglass uses neither of the two; user code may
    model = registry.model_of(shape)
    if plan.start_from is not None:
        plan.start_from.fill(model)
    return model.to(device.torch_device)


def choose_shards(plan: Plan, console: Console) -> bool:
    """Decide whether each process saves its own part of a checkpoint. If not, rank 0 gathers all
    parts, and needs memory for all weights, the optimizer's state, and a copy while it is written.
    Such a checkpoint is that of one process, and only rank 0 needs the run directory."""
    cfg = plan.cfg
    if cfg.parallel != "fsdp" or cfg.checkpoint_shards is False:
        return False
    why = "as asked for"
    if cfg.checkpoint_shards == "auto":
        needed = 2 * BYTES_OF_STATE * plan.shape.num_params()
        available = available_host_bytes()
        if available is None or MEMORY_MARGIN * needed < available:
            return False
        why = f"whole ones need {units.size(needed)} of memory in rank 0, found "
        why += units.size(available)
    console.say(f"checkpoints: each process writes its own part: {why}")
    return True


def choose_replicas(plan: Plan, console: Console) -> Device:
    """Decide how many replicas to use. Whether to compile is decided later, when an update has been
    timed."""
    device = plan.device
    replicas, why = choose.pick_replicas(device, plan.cfg.batch_size, plan.shape.num_params())
    console.say(f"replicas: {replicas}: {why}")
    return replace(device, replicas=replicas)
