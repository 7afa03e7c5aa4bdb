"""Makes the optimizer: which weights are updated by which algorithm, and at which learning rate.

Either AdamW updates everything, as in nanoGPT, or Muon updates the matrices inside the blocks and
AdamW updates the rest: embeddings, head and vectors.
"""

from typing import Any

import torch
from torch import Tensor

from stepglass.models.model import Model
from stepglass.settings.train import TrainConfig
from stepglass.train.muon import MuonAdamW


def set_lr(optimizer: torch.optim.Optimizer, lr: float, cfg: TrainConfig) -> None:
    """Set the learning rate to `lr`, and scale the other rates by the same factor."""
    for group in optimizer.param_groups:
        peak = group.get("peak_lr")
        group["lr"] = lr if peak is None else peak * lr / cfg.learning_rate


def make_optimizer(model: Model, cfg: TrainConfig, device: torch.device) -> MuonAdamW:
    """Weight decay applies to matrices and embeddings, but not to vectors (norms and biases). Muon
    is used only for the matrices in the blocks: embeddings and the head have one row per token, and
    are not linear maps. The fused AdamW is used on devices that have it.
    """
    shape = model.config
    named = {name: p for name, p in model.named_parameters() if p.requires_grad}
    inner = {
        name: p
        for name, p in named.items()
        if cfg.uses_muon and p.dim() == 2 and name.startswith(shape.block_prefix)
    }
    is_tied = "lm_head.weight" not in named
    tables = {
        name: p
        for name, p in named.items()
        if cfg.embedding_lr and not is_tied and name == shape.token_table
    }
    rest = [p for name, p in named.items() if name not in inner and name not in tables]
    groups: list[dict[str, Any]] = [
        {"params": [p for p in rest if p.dim() >= 2], "weight_decay": cfg.weight_decay},
        {"params": [p for p in rest if p.dim() < 2], "weight_decay": 0.0},
    ]
    if tables:
        groups.append(
            {
                "params": list(tables.values()),
                "weight_decay": cfg.weight_decay,
                "peak_lr": cfg.embedding_lr,
            }
        )
    if inner:
        rows = [list(model.joined_rows(name).values()) or [len(p)] for name, p in inner.items()]
        groups.append(
            {
                "params": list(inner.values()),
                "weight_decay": cfg.weight_decay,
                "is_muon": True,
                "peak_lr": cfg.muon_lr,
                "rows": rows,
                "momentum": cfg.muon_momentum,
            }
        )
    return MuonAdamW(
        groups,
        lr=cfg.learning_rate,
        betas=(cfg.beta1, cfg.beta2),
        fused=device.type in ("cpu", "cuda", "mps"),
    )


def leave_compiler_out() -> None:
    """Prevent torch from importing its compiler in runs that compile nothing. The import takes a
    second, and torch does it only to mark the optimizer's methods as not compiled. There is no
    public setting for this."""
    for method in vars(torch.optim.Optimizer).values():
        plain = getattr(method, "__wrapped__", None)
        if plain is not None:
            plain.__dynamo_disable = plain


def split_optimizer(whole: MuonAdamW, number: int) -> list[MuonAdamW]:
    """Split an optimizer into `number` parts that share its state. Each part gets about the same
    number of weights."""
    owner: dict[int, int] = {}
    weights = [0] * number
    for parameter in sorted(whole.parameters(), key=Tensor.numel, reverse=True):
        lightest = weights.index(min(weights))
        owner[id(parameter)] = lightest
        weights[lightest] += parameter.numel()
    parts = []
    for part in range(number):
        groups = []
        for group in whole.param_groups:
            mine = [i for i, p in enumerate(group["params"]) if owner[id(p)] == part]
            per_parameter = [key for key in ("params", "rows") if key in group]
            groups.append(group | {key: [group[key][i] for i in mine] for key in per_parameter})
        parts.append(MuonAdamW(groups, whole.state))  # the groups hold all settings
    return parts
