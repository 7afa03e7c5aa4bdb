"""The learning rate and the optimizer's groups."""

import math
from dataclasses import replace
from itertools import pairwise

import pytest
import torch

from stepglass.measure.shapes import GPTConfig, ModernConfig
from stepglass.models.gpt2 import GPT
from stepglass.models.modern import Modern
from stepglass.settings.lr_schedule import lr_at, rewarm_of
from stepglass.settings.train import TrainConfig
from stepglass.train import muon
from stepglass.train.muon import MARGIN, STEPS, chunks_by_height, orthogonal
from stepglass.train.optimizer import make_optimizer, set_lr

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
    cfg = replace(CFG, model="gpt2")
    decayed, plain = make_optimizer(net, cfg, torch.device("cpu")).param_groups
    assert decayed["weight_decay"] == CFG.weight_decay
    assert plain["weight_decay"] == 0
    assert all(p.dim() == 2 for p in decayed["params"])
    assert all(p.dim() == 1 for p in plain["params"])
    assert len(decayed["params"]) + len(plain["params"]) == len(list(net.parameters()))


# -- trapezoid ----------------------------------------------------------------------------------

TRAPEZOID = replace(CFG, lr_schedule="trapezoid", cooldown_iters=40)


@pytest.mark.parametrize(
    ("step", "lr"),
    [(0, 0.1), (9, 1.0), (50, 1.0), (69, 1.0), (89, 0.55), (108, 0.1225), (109, 0.1)],
)
def test_trapezoid_is_flat_and_then_falls_in_a_line(step, lr):
    assert lr_at(step, TRAPEZOID) == pytest.approx(lr)


def test_trapezoid_without_a_way_down_stays_flat():
    cfg = replace(TRAPEZOID, cooldown_iters=0)
    assert [lr_at(step, cfg) for step in (9, 108, 109)] == [1.0, 1.0, 0.1]


def test_a_way_down_longer_than_the_run_begins_after_the_warm_up():
    cfg = replace(TRAPEZOID, cooldown_iters=10_000)
    assert lr_at(9, cfg) == 1.0
    assert lr_at(59, cfg) == pytest.approx(0.55)


# -- a run that was extended ---------------------------------------------------------------------

EXTENDED = replace(TRAPEZOID, warmup_iters="10%", cooldown_iters="50%", lr_decay_iters="100%")


def test_shares_follow_the_length_of_the_run():
    assert [lr_at(step, EXTENDED) for step in (20, 100, 150)] == pytest.approx([1.0, 1.0, 0.55])
    longer = replace(EXTENDED, max_iters=400)
    assert [lr_at(step, longer) for step in (40, 200, 300)] == pytest.approx([1.0, 1.0, 0.55])


def test_a_rate_that_had_fallen_rises_again_without_a_jump():
    longer = replace(EXTENDED, max_iters=400)
    rewarm = rewarm_of(200, 0.1, longer)
    rates = [lr_at(step, longer, rewarm) for step in range(200, 260)]
    assert rates[0] == pytest.approx(0.1 + 0.9 / 41)
    assert all(0 < after - before < 0.03 for before, after in pairwise(rates[:40]))
    assert rates[45] == lr_at(245, longer)


def test_a_rate_that_had_not_fallen_stays_as_it_is():
    assert rewarm_of(200, 1.0, replace(EXTENDED, max_iters=400)) is None


# -- Muon ---------------------------------------------------------------------------------------


def modern() -> Modern:
    torch.manual_seed(0)
    shape = ModernConfig(
        vocab_size=20, block_size=8, n_layer=2, n_head=4, n_embd=32, n_kv_head=2, n_inner=48
    )
    return Modern(shape)


def singular_values(X: torch.Tensor) -> torch.Tensor:
    return torch.linalg.svdvals(X)


@pytest.mark.parametrize("shape", [(32, 32), (96, 32), (32, 48), (1, 8), (8, 1)])
def test_orthogonal_evens_the_singular_values_out(shape):
    torch.manual_seed(1)
    X = torch.randn(*shape, dtype=torch.float64)
    [Y] = orthogonal([X * 1e-3])
    values = singular_values(Y)
    assert values.max() < 2
    assert values[singular_values(X) > 0.02 * X.norm()].min() > 0.1
    # The directions are X's own: YᵀX is symmetric and positive.
    assert torch.allclose(Y.T @ X, X.T @ Y, atol=1e-6 * X.norm().item() ** 2)
    assert torch.linalg.eigvalsh(Y.T @ X).min() > -1e-6


@pytest.mark.parametrize("shape", [(32, 32), (96, 32), (32, 48)])
def test_orthogonal_is_newton_and_schulz_step_by_step(shape):
    """The factors worked out on the small side are those of the plain iteration."""
    X = torch.randn(*shape, dtype=torch.float64)
    Y = X / (X.norm() * MARGIN)
    for a, b, c in STEPS:
        gram = Y @ Y.T
        Y = a * Y + (b * gram + c * gram @ gram) @ Y
    torch.testing.assert_close(orthogonal([X])[0], Y, atol=1e-9, rtol=1e-9)


def test_orthogonal_does_many_at_once_as_one_by_one():
    torch.manual_seed(2)
    shapes = [(32, 32), (16, 32), (32, 16), (48, 32), (32, 32)]
    matrices = [torch.randn(*shape, dtype=torch.float64) for shape in shapes]
    together = orthogonal(matrices)
    for X, Y in zip(matrices, together, strict=True):
        torch.testing.assert_close(Y, orthogonal([X])[0])


def test_orthogonal_of_nothing_is_nothing():
    assert torch.equal(orthogonal([torch.zeros(4, 8)])[0], torch.zeros(4, 8))


def test_muon_takes_the_matrices_inside_the_blocks_and_adamw_the_rest():
    net = modern()
    tables, vectors, inside = make_optimizer(net, CFG, torch.device("cpu")).param_groups
    names = {id(p): name for name, p in net.named_parameters()}
    assert [names[id(p)] for p in tables["params"]] == ["embed_tokens.weight", "lm_head.weight"]
    assert all(p.dim() == 1 for p in vectors["params"])
    assert all(names[id(p)].startswith("layers.") for p in inside["params"])
    assert inside["rows"][:4] == [[32, 16, 16], [32], [48, 48], [32]]


def test_queries_keys_and_values_are_made_orthogonal_each_by_itself():
    net = modern()
    optimizer = make_optimizer(net, replace(CFG, weight_decay=0.0), torch.device("cpu"))
    set_lr(optimizer, 1.0, CFG)
    joined = net.layers[0].self_attn.qkv_proj.weight
    before = joined.detach().clone()
    idx = torch.randint(20, (4, 8))
    with torch.no_grad():
        for block in net.layers:
            block.self_attn.o_proj.weight.normal_()
        net.lm_head.weight.normal_()
    net(idx, idx).backward()
    optimizer.step()
    moved = (before - joined.detach()) / CFG.muon_lr
    for part in torch.split(moved, [32, 16, 16]):
        values = singular_values(part)
        assert 0.3 < values.max() < 2


def test_both_rates_follow_one_schedule():
    optimizer = make_optimizer(modern(), CFG, torch.device("cpu"))
    set_lr(optimizer, 0.25, CFG)
    assert [g["lr"] for g in optimizer.param_groups] == [0.25, 0.25, 0.25 * CFG.muon_lr]


def test_the_token_table_may_have_a_rate_of_its_own():
    cfg = replace(CFG, embedding_lr=4.0)
    net = modern()
    optimizer = make_optimizer(net, cfg, torch.device("cpu"))
    set_lr(optimizer, 0.25, cfg)
    [table] = [g for g in optimizer.param_groups if g["params"][0] is net.embed_tokens.weight]
    assert table["lr"] == 1.0
    every = [p for g in optimizer.param_groups for p in g["params"]]
    assert len(every) == len({id(p) for p in every}) == len(list(net.parameters()))


def test_muon_can_train_gpt2_and_adamw_the_modern_model():
    net = GPT(GPTConfig(vocab_size=10, block_size=4, n_layer=1, n_head=1, n_embd=8))
    cfg = replace(CFG, model="gpt2", optimizer="muon")
    assert make_optimizer(net, cfg, torch.device("cpu")).param_groups[2]["rows"][0] == [8, 8, 8]
    cfg = replace(CFG, optimizer="adamw")
    assert len(make_optimizer(modern(), cfg, torch.device("cpu")).param_groups) == 2


def test_a_skipped_update_moves_nothing():
    """float16's scaler skips an update whose gradients overflowed: Muon's part as well."""
    net = modern()
    optimizer = make_optimizer(net, CFG, torch.device("cpu"))
    scaler = torch.amp.GradScaler("cpu")
    idx = torch.randint(20, (4, 8))
    scaler.scale(net(idx, idx)).backward()
    net.layers[0].mlp.down_proj.weight.grad.fill_(torch.inf)
    before = [p.detach().clone() for p in net.parameters()]
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    assert all(torch.equal(a, b) for a, b in zip(before, net.parameters(), strict=True))


def test_chunks_hold_matrices_of_one_height_and_are_not_too_large(monkeypatch):
    monkeypatch.setattr(muon, "MUON_CHUNK", 3 * 32 * 48)
    shapes = [(32, 48), (16, 48), (48, 32), (32, 48), (100, 100), (32, 48), (48, 16)]
    chunks = list(chunks_by_height([torch.empty(shape) for shape in shapes]))
    assert chunks == [[0, 2, 3], [5], [1, 6], [4]]  # one that is too large has its own


def test_an_update_in_chunks_is_the_update(monkeypatch):
    def updated(most):
        monkeypatch.setattr(muon, "MUON_CHUNK", most)
        net = modern()
        optimizer = make_optimizer(net, CFG, torch.device("cpu"))
        torch.manual_seed(3)
        for parameter in net.parameters():
            parameter.grad = torch.randn_like(parameter)
        optimizer.step()
        return list(net.parameters())

    torch.testing.assert_close(updated(1 << 24), updated(2000))


class Rounded(torch.utils._python_dispatch.TorchDispatchMode):
    """Matrix products of numbers with few bits, summed up in float32, as a GPU computes them."""

    PRODUCTS = (torch.ops.aten.bmm.default, torch.ops.aten.baddbmm.default)

    def __init__(self, bits: int):
        super().__init__()
        self.bits = bits

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func in self.PRODUCTS:
            first = len(args) - 2  # baddbmm adds a third matrix, which keeps its bits
            args = (*args[:first], *(self.rounded(X) for X in args[first:]))
        return func(*args, **(kwargs or {}))

    def rounded(self, X):
        mantissa, exponent = torch.frexp(X)
        scale = 2.0 ** (self.bits + 1)
        return torch.ldexp(torch.round(mantissa * scale) / scale, exponent)


@pytest.mark.parametrize("rank", [8, 96])
def test_muon_may_use_tf32_but_not_bfloat16(rank):
    """10 bits keep the direction within 5 %, 7 bits do not: the powers of X Xᵀ cancel."""
    torch.manual_seed(4)
    X = torch.randn(96, rank) @ torch.randn(rank, 256) + 0.01 * torch.randn(96, 256)
    exact = orthogonal([X.double()])[0]

    def error(bits):
        with Rounded(bits):
            found = orthogonal([X])[0]
        return float((found - exact).norm() / exact.norm())

    assert error(10) < 0.05
    assert error(7) > 2 * error(10)
