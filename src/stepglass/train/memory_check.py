"""Whether a run fits into memory, asked before anything is allocated."""

from dataclasses import replace

from stepglass import units
from stepglass.errors import DeviceError
from stepglass.hardware import choose
from stepglass.hardware.device import Device
from stepglass.hardware.ranks import this_rank
from stepglass.measure.memory_model import (
    SPARE,
    MemoryNeed,
    largest_batch,
    memory_of,
    same_rows,
)
from stepglass.measure.shapes import Shape
from stepglass.settings.train import TrainConfig


def rows_before_compiling(cfg: TrainConfig, shape: Shape, device: Device) -> int:
    """Compare the memory that the run needs with the memory that is available. Raises a DeviceError
    that names settings which do fit, if there are any.

    Returns how many rows of a batch the warm-up can use: it begins before the model is compiled,
    and a batch may fit into a GPU only afterwards."""
    available = device.available_bytes()
    of_what = ""
    if available is not None and device.type == "cpu":
        # The processes of a run share this machine's memory, and their heaps grow by more than is
        # in use (docs/memory.md). A machine that runs out of memory may hang for minutes.
        available = int(available * (1 - SPARE) / this_rank().local_of)
        of_what = f", {1 - SPARE:.0%} of what is free"
    tokens = 16 * cfg.tokens_per_iter  # bytes: inputs and targets of an update, on the host
    accumulates = cfg.gradient_accumulation_steps > 1
    need = need_of(cfg, shape, device, cfg.batch_size, accumulates)
    if available is None or need.total + tokens <= available:
        return cfg.batch_size
    if may_compile(cfg, device):
        need = need_of(cfg, shape, device, cfg.batch_size, accumulates, does_compile=True)
        rows = largest_fitting(cfg, shape, device, available - tokens)
        if need.total + tokens <= available and rows is not None:
            return min(rows, cfg.batch_size)
    split = ", ".join(f"{name} {units.size(part)}" for name, part in vars(need).items() if part)
    raise DeviceError(
        f"a model of {shape.num_params():,} parameters with batch_size={cfg.batch_size} and "
        f"block_size={cfg.block_size} needs at least {units.size(need.total + tokens)} ({split}), "
        f"found {units.size(available)}{of_what}; "
        f"{what_fits(cfg, shape, device, available - tokens)}"
    )


def what_fits(cfg: TrainConfig, shape: Shape, device: Device, available: int) -> str:
    """What to type instead."""
    if available <= 0:
        return "lower --gradient_accumulation_steps or --batch_size"
    compiles = may_compile(cfg, device)
    most = largest_fitting(cfg, shape, device, available, compiles)
    if most is None or largest_fitting(cfg, shape, device, available) is None:
        return "no batch of this model fits: lower --n_layer, --n_embd or --block_size"
    rows = cfg.batch_size * cfg.gradient_accumulation_steps
    batch_size, steps = same_rows(rows, min(most, cfg.batch_size))
    return (
        f"--batch_size={batch_size} --gradient_accumulation_steps={steps} fits, with the same "
        "tokens per iteration"
    )


def may_compile(cfg: TrainConfig, device: Device) -> bool:
    """Whether a run that fits only compiled would be compiled. On a CPU it would save no memory,
    and several processes compile in another way."""
    is_wanted = cfg.compile is not False and device.type == "cuda"
    is_alone = not this_rank().is_one_of_several
    return is_wanted and is_alone and choose.why_not_compiled(device.type) is None


def largest_fitting(
    cfg: TrainConfig, shape: Shape, device: Device, available: int, does_compile: bool = False
) -> int | None:
    """The largest batch that fits, with room to spare."""
    return largest_batch(
        lambda size: need_of(cfg, shape, device, size, True, does_compile), available
    )


def need_of(
    cfg: TrainConfig,
    shape: Shape,
    device: Device,
    batch_size: int,
    accumulates: bool,
    does_compile: bool = False,
) -> MemoryNeed:
    """The memory that an update of this run takes, besides what the GPU's driver has taken."""
    need = memory_of(
        shape,
        batch_size=batch_size,
        dtype=str(device.dtype).removeprefix("torch."),
        device_type=device.type,
        uses_muon=cfg.uses_muon,
        accumulates=accumulates,
        does_compile=does_compile,
    )
    replicas, _ = choose.pick_replicas(device, batch_size, shape.num_params())
    # The driver's part exists already, and what is available is without it.
    need = replace(
        need, context=0, gradients=need.gradients + 4 * shape.num_params() * (replicas - 1)
    )
    if cfg.parallel == "ddp" or this_rank().of == 1:
        return need
    of = this_rank().of  # each has its share of what is not activations
    weights, gradients = need.weights // of, need.gradients // of
    return replace(need, weights=weights, gradients=gradients, optimizer=need.optimizer // of)
