"""How good the model is, on the same windows every time.

Random batches make two evaluations differ by luck; fixed windows cancel that. Their order and
choice come from a generator of their own, so evaluating never changes what is trained on next.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from stepglass.config import TrainConfig
from stepglass.data.dataset import Dataset, TokenFile, as_tensors
from stepglass.device import Device


@dataclass(frozen=True)
class Evaluation:
    """Losses of both splits; `val_se` is the standard error of `val_loss` over its windows."""

    train_loss: float
    val_loss: float
    val_se: float | None
    windows: int


def evaluate(
    model: nn.Module,
    data: Dataset,
    cfg: TrainConfig,
    device: Device,
    is_stopping: Callable[[], bool],
) -> Evaluation | None:
    """Score both splits, or give up (None) when the run is asked to stop."""
    losses = {}
    model.eval()
    try:
        for name, split in (("train", data.train), ("val", data.val)):
            scores = _window_losses(model, data, split, cfg, device, is_stopping)
            if scores is None:
                return None
            losses[name] = scores
    finally:
        model.train()
    val = losses["val"]
    spread = float(val.std()) / len(val) ** 0.5 if len(val) > 1 else None
    return Evaluation(float(losses["train"].mean()), float(val.mean()), spread, len(val))


def _window_losses(
    model: nn.Module,
    data: Dataset,
    split: TokenFile,
    cfg: TrainConfig,
    device: Device,
    is_stopping: Callable[[], bool],
) -> torch.Tensor | None:
    """The mean loss of each window, in double precision on the host."""
    offsets = data.eval_windows(split, cfg.seed, cfg.eval_iters * cfg.batch_size, cfg.block_size)
    scores = []
    with torch.inference_mode():
        for start in range(0, len(offsets), cfg.batch_size):
            if is_stopping():
                return None
            x, y = as_tensors(
                split.windows(offsets[start : start + cfg.batch_size], cfg.block_size + 1)
            )
            with device.autocast():
                _, loss = model(device.send(x), device.send(y), reduction="none")
            scores.append(loss.float().view(len(x), -1).mean(dim=1))
    return torch.cat(scores).double().cpu()  # the only wait for the device
