"""The modern model is Qwen3, weight for weight."""

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from stepglass.measure.shapes import ModernConfig
from stepglass.models import cpu_ops
from stepglass.models.modern import Modern, qwen3_config, qwen3_weights

SHAPES = [{}, {"n_kv_head": 2}, {"tie_weights": True}, {"n_inner": 48}, {"n_head_dim": 24}]


def model(**changes) -> Modern:
    sizes = {"vocab_size": 65, "block_size": 32, "n_layer": 2, "n_head": 4, "n_embd": 64}
    return Modern(ModernConfig(**(sizes | changes))).eval()


def with_opinions(net: Modern) -> Modern:
    """A model no part of which is zero or one."""
    torch.manual_seed(5)
    for parameter in net.parameters():
        parameter.data += 0.2 * torch.randn_like(parameter)
    return net


def qwen3_of(transformers: Any, net: Modern) -> nn.Module:
    config = transformers.Qwen3Config(**qwen3_config(net.config))
    other = transformers.Qwen3ForCausalLM(config).eval()
    other.load_state_dict(qwen3_weights(net), strict=True)
    return other


@pytest.mark.parametrize("changes", SHAPES)
def test_logits_are_those_of_transformers_qwen3(changes, transformers):
    net = with_opinions(model(**changes))
    idx = torch.randint(65, (3, 32))
    with torch.inference_mode():
        expected = qwen3_of(transformers, net)(idx).logits
        logits, loss = net.lm_head(net.hidden(idx)), net(idx, idx)
    torch.testing.assert_close(logits, expected, atol=2e-5, rtol=1e-4)
    assert loss.item() == pytest.approx(F.cross_entropy(expected.flatten(0, 1), idx.flatten()))


def test_a_head_in_the_wrong_place_would_be_noticed(transformers, monkeypatch):
    net = with_opinions(model())
    swapped = qwen3_weights(net)
    first = "model.layers.0.self_attn."
    swapped[first + "q_proj.weight"] = swapped[first + "k_proj.weight"]
    monkeypatch.setattr("test_modern.qwen3_weights", lambda net: swapped)
    idx = torch.randint(65, (1, 8))
    with torch.inference_mode():
        assert not torch.allclose(
            net.lm_head(net.hidden(idx)), qwen3_of(transformers, net)(idx).logits, atol=1e-3
        )


@pytest.mark.parametrize("changes", SHAPES)
def test_parameters_are_counted_without_building_the_model(changes):
    net = model(**changes)
    assert net.config.num_params() == sum(p.numel() for p in net.parameters())


@pytest.mark.parametrize("changes", [{}, {"tie_weights": True}])
def test_flops_formula_agrees_with_torchs_counter(changes, monkeypatch):
    # The counter only knows PyTorch's own operations.
    monkeypatch.setattr(cpu_ops, "uses_handwritten", lambda x: False)
    net = model(n_embd=128, n_layer=4, block_size=64, **changes)
    idx = torch.randint(65, (2, 64))
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        net(idx, idx).backward()
    counted = counter.get_total_flops() / idx.numel()
    assert net.config.flops_per_token() == pytest.approx(counted, rel=0.01)


def test_a_fresh_model_guesses():
    idx = torch.randint(65, (8, 32))
    assert model()(idx, idx).item() == pytest.approx(torch.tensor(65.0).log().item(), rel=1e-5)


def test_every_block_begins_as_if_it_were_not_there():
    net = model()
    x = torch.randn(1, 8, 64)
    for block in net.layers:
        assert torch.equal(block(x, net.cos[:8], net.sin[:8], None), x)


@pytest.mark.parametrize("changes", SHAPES)
def test_cached_and_token_by_token_equal_the_whole_forward(changes):
    net = with_opinions(model(**changes))
    idx = torch.randint(65, (1, 32))
    cache = net.new_cache(torch.float32, net.config.block_size)
    decode = net.token_decoder(cache)
    pieces = []
    with torch.inference_mode():
        pieces.append(net.next_logits(idx[:, :5], cache))
        cache.advance(5)
        for position in range(5, 20):
            pieces.append(net.next_logits(idx[:, position : position + 1], cache))
            cache.advance(1)
        pieces += [decode(token) for token in idx[0, 20:].tolist()]
        whole = net.lm_head(net.hidden(idx))
    torch.testing.assert_close(torch.cat(pieces), whole[0, 4:], atol=2e-5, rtol=1e-4)
    assert cache.length == 32


def test_dropout_acts_in_training_and_not_in_evaluation():
    net = with_opinions(model(dropout=0.5))
    idx = torch.randint(65, (1, 8))
    assert torch.equal(net.hidden(idx), net.hidden(idx))
    net.train()
    assert not torch.equal(net.hidden(idx), net.hidden(idx))


@pytest.mark.parametrize(
    "changes", [{"n_embd": 66}, {"n_head": 64}, {"n_kv_head": 3}, {"n_inner": -1}, {"n_layer": 0}]
)
def test_shapes_that_cannot_be_are_refused(changes):
    with pytest.raises(ValueError, match="n_"):
        model(**changes)


# -- the operations with their gradients by hand ------------------------------------------------


def gradients(function, *inputs):
    """A value and its gradients under a random weighting."""
    leaves = [x.clone().requires_grad_() for x in inputs]
    value = function(*leaves)
    torch.manual_seed(9)
    value.backward(torch.randn(value.shape, dtype=value.dtype))
    return [value.detach(), *(leaf.grad for leaf in leaves)]


def double(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def rotation(T: int, D: int) -> tuple[torch.Tensor, torch.Tensor]:
    angle = double(T, 1, D // 2)
    sin = angle.sin()
    return torch.cat([angle.cos()] * 2, -1), torch.cat([-sin, sin], -1)


COS, SIN = rotation(6, 8)
OPERATIONS = {
    "rms_norm": (cpu_ops.rms_norm, (double(2, 3, 8), double(8))),
    "swiglu": (cpu_ops.swiglu, (double(2, 3, 16),)),
    "normed_and_rotated": (
        lambda x, w: cpu_ops.normed_and_rotated(x, w, COS, SIN),
        (double(2, 6, 5, 8), double(5, 8)),
    ),
    "attention": (cpu_ops.attention, tuple(double(2, 3, 6, 8) for _ in range(3))),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_by_hand_equal_their_formulas(name, monkeypatch):
    function, inputs = OPERATIONS[name]
    by_hand = gradients(function, *inputs)
    monkeypatch.setattr(cpu_ops, "uses_handwritten", lambda x: False)
    for mine, theirs in zip(by_hand, gradients(function, *inputs), strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-10, rtol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("name", OPERATIONS)
def test_gradients_by_hand_are_the_slopes_of_the_values(name):
    function, inputs = OPERATIONS[name]
    leaves = tuple(x.clone().requires_grad_() for x in inputs)
    assert torch.autograd.gradcheck(function, leaves)


@pytest.mark.parametrize("tokens", [2, 3, 4, 7, 12])
def test_attention_in_blocks_is_attention(tokens, monkeypatch):
    """Blocks of 3 queries and one head at a time, and sizes that do not divide."""
    inputs = [double(2, 3, tokens, 8) for _ in range(3)]
    monkeypatch.setattr(cpu_ops, "ROWS", 3)
    monkeypatch.setattr(cpu_ops, "CACHED_SCORES", 3 * tokens)
    assert len(cpu_ops.attention_blocks(6, tokens)) == 6 * -(-tokens // 3)
    by_hand = gradients(cpu_ops.attention, *inputs)
    monkeypatch.setattr(cpu_ops, "uses_handwritten", lambda x: False)
    for mine, theirs in zip(by_hand, gradients(cpu_ops.attention, *inputs), strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-10, rtol=1e-8)


def test_the_formula_for_the_compiler_is_attention():
    q, k, v = (double(2, heads, 6, 8) for heads in (4, 2, 2))  # grouped: two queries share a key
    torch.testing.assert_close(cpu_ops.plain_attention(q, k, v), cpu_ops.attention(q, k, v))


def test_the_future_does_not_reach_the_past():
    q, k, v = (double(1, 2, 6, 8) for _ in range(3))
    before = cpu_ops.attention(q, k, v)
    k[:, :, 4:] += 1
    v[:, :, 4:] += 1
    after = cpu_ops.attention(q, k, v)
    assert torch.equal(before[:, :, :4], after[:, :, :4])
    assert not torch.allclose(before[:, :, 4:], after[:, :, 4:])


def test_long_sequences_leave_attention_to_pytorch_which_keeps_no_scores(monkeypatch):
    monkeypatch.setattr(cpu_ops, "KEPT_SCORES", 2 * 3 * 6 * 6 - 1)
    monkeypatch.setattr(cpu_ops, "_Attention", None)  # would fail if it were asked
    cpu_ops.attention(*(double(2, 3, 6, 8) for _ in range(3)))


def test_a_few_queries_with_more_keys_are_refused_not_masked_wrongly():
    with pytest.raises(AssertionError):
        cpu_ops.attention(double(1, 1, 2, 8), double(1, 1, 6, 8), double(1, 1, 6, 8))
