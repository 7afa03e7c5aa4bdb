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

from stepglass.data.dataset import Dataset, TokenFile, as_tensors
from stepglass.hardware.device import Device
from stepglass.models.registry import Shape
from stepglass.settings.train import TrainConfig

Score = Callable[[Tensor, Tensor], Tensor]  # a batch on the host -> the mean loss of each row

CPU_LOGITS = 1 << 24
CPU_TOKENS = 8192  # at once: 512 to 16384 take the same time, within noise


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
    """`eval_iters` batches of each split, or all of it. A target is for all of validation."""
    count = cfg.eval_iters * cfg.batch_size
    all_of_val = len(data.val) if cfg.target_val_loss else count
    return Windows(
        data.eval_windows(data.train, cfg.seed, count, cfg.block_size),
        data.eval_windows(data.val, cfg.seed, all_of_val, cfg.block_size),
    )


def rows_at_once(windows: Windows, cfg: TrainConfig, shape: Shape, device: Device) -> int:
    """As many windows in a batch as fit: nothing is kept for a way back. A CPU has them pass
    through its caches instead."""
    most = max(len(windows.train), len(windows.val), 1)
    if device.type == "cpu":
        tokens = min(CPU_TOKENS, CPU_LOGITS // shape.vocab_size)
        return min(most, max(device.replicas, tokens // cfg.block_size))
    # Logits in float32 and once more for the loss, and a few activations of the widest layer.
    row = cfg.block_size * (8 * shape.vocab_size + 32 * shape.n_embd)
    available = device.available_bytes()
    fitting = most if available is None else max(1, int(available * 0.5) // row)
    return min(most, fitting)


def evaluate(
    score: Score,
    data: Dataset,
    windows: Windows,
    cfg: TrainConfig,
    rows: int,
    device: Device,
    is_stopping: Callable[[], bool],
) -> Evaluation | None:
    """Score both splits, or give up (None) when the run is asked to stop."""
    train, val = (
        _losses(score, split, offsets, cfg.block_size, rows, device, is_stopping)
        for split, offsets in ((data.train, windows.train), (data.val, windows.val))
    )
    if train is None or val is None:
        return None
    spread = float(val.std()) / len(val) ** 0.5 if len(val) > 1 else None
    return Evaluation(float(train.mean()), float(val.mean()), spread, len(val))


@torch.inference_mode()
def _losses(
    score: Score,
    split: TokenFile,
    offsets: "np.ndarray[Any, Any]",
    block_size: int,
    rows: int,
    device: Device,
    is_stopping: Callable[[], bool],
) -> torch.Tensor | None:
    """The mean loss of each window, in double precision on the host."""
    scores = []
    for start in range(0, len(offsets), rows):
        if is_stopping():
            return None
        # The last batch is filled up: a compiled model would compile again for a smaller one.
        batch = offsets[start : start + rows]
        if device.compile:
            batch = np.resize(batch, rows)
        x, y = as_tensors(split.windows(batch, block_size + 1))
        scores.append(score(x, y))
    return torch.cat(scores)[: len(offsets)].cpu().double()  # the only wait for the device


def window_losses(model: nn.Module, x: Tensor, y: Tensor, device: Device) -> Tensor:
    """The mean loss of each row of a batch, which is on the host. Call it in inference mode, the
    inputs made there too: a compiled model would otherwise be compiled twice."""
    model.eval()
    try:
        with device.autocast():
            _, loss = model(device.send(x), device.send(y), reduction="none")
    finally:
        model.train()
    mean: Tensor = loss.float().view(len(x), -1).mean(dim=1)
    return mean
