"""The batches of an update."""

import torch

from stepglass.data.dataset import Dataset
from stepglass.settings.train import TrainConfig
from stepglass.train.engines.engine import MicroBatch


def micro_batches(data: Dataset, cfg: TrainConfig, step: int) -> list[MicroBatch]:
    """The micro-batches of an update, on the host. All of them are read before the update starts,
    so that a read error cannot interrupt an update halfway."""
    rows = cfg.gradient_accumulation_steps * cfg.batch_size
    x, y = data.batch(cfg.seed, step, rows, cfg.block_size)
    parts = torch.split(x, cfg.batch_size), torch.split(y, cfg.batch_size)
    return list(zip(*parts, strict=True))
