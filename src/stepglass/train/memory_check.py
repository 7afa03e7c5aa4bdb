"""Whether a run fits into memory, asked before anything is allocated."""

from dataclasses import replace

from stepglass import units
from stepglass.errors import DeviceError
from stepglass.hardware.device import Device
from stepglass.hardware.ranks import this_rank
from stepglass.measure.memory_model import MemoryNeed, largest_batch, memory_of, same_rows
from stepglass.measure.shapes import Shape
from stepglass.settings.train import TrainConfig


def refuse_what_cannot_fit(cfg: TrainConfig, shape: Shape, device: Device) -> None:
    """Compare the memory that the run needs with the memory that is available. Raises a DeviceError
    that names settings which do fit, if there are any."""
    available = device.available_bytes()
    if available is not None and device.type == "cpu":
        available //= this_rank().local_of  # the processes of a run share this machine's memory
    tokens = 16 * cfg.tokens_per_iter  # bytes: inputs and targets of an update, on the host
    need = need_of(cfg, shape, device, cfg.batch_size, cfg.gradient_accumulation_steps > 1)
    if available is None or need.total + tokens <= available:
        return
    split = ", ".join(f"{name} {units.size(part)}" for name, part in vars(need).items() if part)
    raise DeviceError(
        f"a model of {shape.num_params():,} parameters with batch_size={cfg.batch_size} and "
        f"block_size={cfg.block_size} needs at least {units.size(need.total + tokens)} ({split}), "
        f"found {units.size(available)}; {what_fits(cfg, shape, device, available - tokens)}"
    )


def what_fits(cfg: TrainConfig, shape: Shape, device: Device, available: int) -> str:
    """What to type instead."""
    if available <= 0:
        return "lower --gradient_accumulation_steps or --batch_size"
    most = largest_batch(lambda size: need_of(cfg, shape, device, size, True), available)
    if most is None:
        return "no batch of this model fits: lower --n_layer, --n_embd or --block_size"
    rows = cfg.batch_size * cfg.gradient_accumulation_steps
    batch_size, steps = same_rows(rows, min(most, cfg.batch_size))
    return (
        f"--batch_size={batch_size} --gradient_accumulation_steps={steps} fits, with the same "
        "tokens per iteration"
    )


def need_of(
    cfg: TrainConfig, shape: Shape, device: Device, batch_size: int, accumulates: bool
) -> MemoryNeed:
    """The first updates of every run are not compiled, so that is what it must have."""
    need = memory_of(
        shape,
        batch_size=batch_size,
        dtype=str(device.dtype).removeprefix("torch."),
        device_type=device.type,
        uses_muon=cfg.uses_muon,
        accumulates=accumulates,
    )
    need = replace(need, context=0)  # it exists already, and what is available is without it
    if cfg.parallel == "ddp" or this_rank().of == 1:
        return need
    of = this_rank().of  # each has its share of what is not activations
    weights, gradients = need.weights // of, need.gradients // of
    return replace(need, weights=weights, gradients=gradients, optimizer=need.optimizer // of)
