"""The learning rate and the optimizer's groups."""

import math

import pytest
import torch

from stepglass.config import TrainConfig
from stepglass.models.gpt2 import GPT, GPTConfig
from stepglass.optim import lr_at, make_optimizer

CFG = TrainConfig(learning_rate=1.0, min_lr=0.1, warmup_iters=9, lr_decay_iters=109, max_iters=200)


@pytest.mark.parametrize(
    ("step", "lr"),
    [
        (0, 0.1),
        (8, 0.9),
        (9, 1.0),
        (59, 0.55),
        (34, 0.1 + 0.45 * (1 + math.cos(math.pi / 4))),
        (109, 0.1),
        (199, 0.1),
    ],
)
def test_rate_warms_up_and_follows_a_cosine(step, lr):
    assert lr_at(step, CFG) == pytest.approx(lr)


def test_rate_is_constant_when_asked():
    assert lr_at(0, TrainConfig(decay_lr=False, learning_rate=0.5)) == 0.5


def test_no_warm_up_and_no_decay_is_allowed():
    cfg = TrainConfig(warmup_iters=0, lr_decay_iters=1, learning_rate=1.0, min_lr=0.5)
    assert [lr_at(step, cfg) for step in (0, 1, 2)] == [1.0, 0.5, 0.5]


def test_only_matrices_decay():
    net = GPT(GPTConfig(vocab_size=10, block_size=4, n_layer=1, n_head=1, n_embd=8, bias=True))
    decayed, plain = make_optimizer(net, CFG, torch.device("cpu")).param_groups
    assert decayed["weight_decay"] == CFG.weight_decay
    assert plain["weight_decay"] == 0
    assert all(p.dim() == 2 for p in decayed["params"])
    assert all(p.dim() == 1 for p in plain["params"])
    assert len(decayed["params"]) + len(plain["params"]) == len(list(net.parameters()))
