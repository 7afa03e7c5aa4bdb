"""How good the model is, on the same windows every time.

Random batches make two evaluations differ by luck; fixed windows cancel that. Their order and
choice come from a generator of their own, so evaluating never changes what is trained on next.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from stepglass.config import TrainConfig
from stepglass.data.dataset import Dataset, TokenFile, as_tensors
from stepglass.device import Device


@dataclass(frozen=True)
class Windows:
    """Where the windows of every evaluation start, chosen once for a run."""

    train: "np.ndarray[Any, Any]"
    val: "np.ndarray[Any, Any]"


@dataclass(frozen=True)
class Evaluation:
    """Losses of both splits; `val_se` is the standard error of `val_loss` over its windows."""

    train_loss: float
    val_loss: float
    val_se: float | None
    windows: int


def choose_windows(data: Dataset, cfg: TrainConfig) -> Windows:
    """`eval_iters` batches of each split, or all of it."""
    count = cfg.eval_iters * cfg.batch_size
    train, val = (
        data.eval_windows(split, cfg.seed, count, cfg.block_size)
        for split in (data.train, data.val)
    )
    return Windows(train, val)


def evaluate(
    model: nn.Module,
    data: Dataset,
    windows: Windows,
    cfg: TrainConfig,
    device: Device,
    is_stopping: Callable[[], bool],
) -> Evaluation | None:
    """Score both splits, or give up (None) when the run is asked to stop."""
    model.eval()
    try:
        train = _losses(model, data.train, windows.train, cfg, device, is_stopping)
        val = _losses(model, data.val, windows.val, cfg, device, is_stopping)
    finally:
        model.train()
    if train is None or val is None:
        return None
    spread = float(val.std()) / len(val) ** 0.5 if len(val) > 1 else None
    return Evaluation(float(train.mean()), float(val.mean()), spread, len(val))


@torch.inference_mode()
def _losses(
    model: nn.Module,
    split: TokenFile,
    offsets: "np.ndarray[Any, Any]",
    cfg: TrainConfig,
    device: Device,
    is_stopping: Callable[[], bool],
) -> torch.Tensor | None:
    """The mean loss of each window, in double precision on the host."""
    scores = []
    for start in range(0, len(offsets), cfg.batch_size):
        if is_stopping():
            return None
        # The last batch is filled up: a compiled model would compile again for a smaller one.
        batch = np.resize(offsets[start : start + cfg.batch_size], cfg.batch_size)
        x, y = as_tensors(split.windows(batch, cfg.block_size + 1))
        scores.append(window_losses(model, device.send(x), device.send(y), device))
    return torch.cat(scores)[: len(offsets)].cpu().double()  # the only wait for the device


def window_losses(model: nn.Module, x: Tensor, y: Tensor, device: Device) -> Tensor:
    """The mean loss of each row. Call it in inference mode, the inputs made there too: a compiled
    model would otherwise be compiled twice."""
    with device.autocast():
        _, loss = model(x, y, reduction="none")
    mean: Tensor = loss.float().view(len(x), -1).mean(dim=1)
    return mean
