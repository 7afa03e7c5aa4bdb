"""The batches of an update."""

import torch

from stepglass.data.dataset import Dataset
from stepglass.errors import ConfigError
from stepglass.hardware.device import Device
from stepglass.hardware.ranks import this_rank
from stepglass.settings.train import TrainConfig
from stepglass.train.engines.engine import MicroBatch


def micro_batches(data: Dataset, cfg: TrainConfig, step: int) -> list[MicroBatch]:
    """This process's micro-batches of an update, on the host. All of them are read before the
    update starts, so that a read error cannot interrupt an update halfway.

    Several processes share the rows that one process would read, each a run of them.
    """
    here = this_rank()
    rows = cfg.gradient_accumulation_steps * cfg.batch_size
    share = rows // here.of
    mine = slice(here.number * share, (here.number + 1) * share)
    x, y = data.batch(cfg.seed, step, rows, cfg.block_size, mine)
    parts = torch.split(x, cfg.batch_size), torch.split(y, cfg.batch_size)
    return list(zip(*parts, strict=True))


def first_rows(batches: list[MicroBatch], rows: int) -> list[MicroBatch]:
    """The first micro-batch, or so many rows of it."""
    return [(x[:rows], y[:rows]) for x, y in batches[:1]]


def counted_share(data: Dataset, cfg: TrainConfig, step: int) -> float:
    """The share of the targets of an update that count, in all processes together."""
    rows = cfg.gradient_accumulation_steps * cfg.batch_size
    return data.counted_share(cfg.seed, step, rows, cfg.block_size)


def check_shares(cfg: TrainConfig, device: Device) -> None:
    """Raise an error if the processes of a run cannot share its batches, or its model."""
    rows, processes = cfg.gradient_accumulation_steps * cfg.batch_size, this_rank().of
    if processes > 1 and cfg.parallel == "fsdp":
        check_fsdp(cfg, device)
    if rows % processes:
        more = processes * -(-rows // processes)
        raise ConfigError(
            f"{processes} processes cannot share the {rows} sequences of an update "
            f"(batch_size={cfg.batch_size}, "
            f"gradient_accumulation_steps={cfg.gradient_accumulation_steps}) equally; make them "
            f"{more}"
        )


def check_fsdp(cfg: TrainConfig, device: Device) -> None:
    """Raise an error for settings that need the whole model in one process."""
    if cfg.sample_tokens:
        raise ConfigError(
            "sample_tokens needs the whole model in one process; leave it out, or --parallel=ddp"
        )
    if device.dtype is torch.float16:
        raise ConfigError(
            "--dtype=float16 with --parallel=fsdp: the loss scale is not shared among processes; "
            "use --dtype=bfloat16, or --parallel=ddp"
        )
