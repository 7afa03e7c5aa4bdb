"""The model: nanoGPT's names, its arithmetic, and a formula for its cost."""

import math

import pytest
import torch
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from stepglass.measure.shapes import GPTConfig
from stepglass.models.gpt2 import GPT, GPT2TokenDecoder

SHAPE = {"vocab_size": 65, "block_size": 32, "n_layer": 3, "n_head": 4, "n_embd": 64}


def model(**changes) -> GPT:
    torch.manual_seed(1)
    return GPT(GPTConfig(**SHAPE | changes)).eval()


def test_parameter_names_are_nanogpts():
    names = set(model(n_layer=1, bias=True).state_dict())
    parts = ("ln_1", "attn.c_attn", "attn.c_proj", "ln_2", "mlp.c_fc", "mlp.c_proj")
    block = [f"{part}.{kind}" for part in parts for kind in ("weight", "bias")]
    assert names == {
        "transformer.wte.weight",
        "transformer.wpe.weight",
        *(f"transformer.h.0.{name}" for name in block),
        "transformer.ln_f.weight",
        "transformer.ln_f.bias",
        "lm_head.weight",
    }


def by_hand(net: GPT, idx: torch.Tensor) -> torch.Tensor:
    """GPT-2 written out with plain matrix products, no fused attention: the reference."""
    w = net.state_dict()
    T, C, H = idx.size(1), net.config.n_embd, net.config.n_head
    x = w["transformer.wte.weight"][idx] + w["transformer.wpe.weight"][:T]

    def norm(x, name):
        mean, var = x.mean(-1, keepdim=True), x.var(-1, keepdim=True, unbiased=False)
        return (x - mean) / torch.sqrt(var + 1e-5) * w[f"{name}.weight"] + w.get(f"{name}.bias", 0)

    def linear(x, name):
        return x @ w[f"{name}.weight"].T + w.get(f"{name}.bias", 0)

    for layer in range(net.config.n_layer):
        h = f"transformer.h.{layer}"
        q, k, v = linear(norm(x, f"{h}.ln_1"), f"{h}.attn.c_attn").split(C, dim=-1)
        heads = []
        for i in range(H):
            part = slice(i * C // H, (i + 1) * C // H)
            scores = q[..., part] @ k[..., part].transpose(1, 2) / math.sqrt(C // H)
            scores = scores.masked_fill(torch.ones(T, T).triu(1).bool(), -math.inf)
            heads.append(scores.softmax(-1) @ v[..., part])
        x = x + linear(torch.cat(heads, -1), f"{h}.attn.c_proj")
        m = linear(norm(x, f"{h}.ln_2"), f"{h}.mlp.c_fc")
        m = 0.5 * m * (1 + torch.erf(m / math.sqrt(2)))
        x = x + linear(m, f"{h}.mlp.c_proj")
    return norm(x, "transformer.ln_f") @ w["lm_head.weight"].T


@pytest.mark.parametrize("bias", [False, True])
def test_logits_and_loss_equal_the_model_written_out_by_hand(bias):
    net = model(bias=bias)
    for parameter in net.parameters():
        parameter.data += 0.02 * torch.randn_like(parameter)  # biases are zero at the start
    idx = torch.randint(65, (2, 20))
    targets = torch.randint(65, (2, 20))
    logits, loss = net.lm_head(net.hidden(idx)), net(idx, targets)
    reference = by_hand(net, idx)
    assert torch.allclose(logits, reference, atol=1e-4)
    assert loss.item() == pytest.approx(
        F.cross_entropy(reference.view(-1, 65), targets.view(-1)).item()
    )
    assert torch.allclose(net.next_logits(idx), reference[:, -1], atol=1e-4)


def test_head_is_tied_to_the_embedding():
    net = model()
    assert net.lm_head.weight is net.transformer.wte.weight
    assert (
        len([name for name, _ in net.named_parameters() if "wte" in name or "lm_head" in name]) == 1
    )


def test_initialisation_is_gpt2s():
    net = model(n_embd=256, n_layer=2)
    weights = net.state_dict()
    assert weights["transformer.wte.weight"].std().item() == pytest.approx(0.02, rel=0.05)
    assert weights["transformer.h.0.mlp.c_fc.weight"].std().item() == pytest.approx(0.02, rel=0.05)
    assert weights["transformer.h.0.mlp.c_proj.weight"].std().item() == pytest.approx(
        0.02 / 2, rel=0.05
    )
    assert (weights["transformer.ln_f.weight"] == 1).all()


def test_first_loss_is_that_of_guessing():
    idx = torch.randint(65, (8, 32))
    assert model()(idx, torch.randint(65, (8, 32))).item() == pytest.approx(math.log(65), rel=0.02)


@pytest.mark.parametrize("bias", [False, True])
def test_parameters_are_counted_without_building_the_model(bias):
    net = model(bias=bias)
    assert net.config.num_params() == sum(p.numel() for p in net.parameters())


def test_gpt2_small_has_124m_parameters():
    config = GPTConfig(
        vocab_size=50257, block_size=1024, n_layer=12, n_head=12, n_embd=768, bias=True
    )
    assert config.num_params() == 124_439_808


@pytest.mark.slow
def test_flops_formula_agrees_with_torchs_counter():
    net = model(n_embd=128, n_layer=4, block_size=64)
    idx = torch.randint(65, (2, 64))
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        net(idx, idx).backward()
    counted = counter.get_total_flops() / idx.numel()
    assert net.config.flops_per_token() == pytest.approx(counted, rel=0.01)


def test_cached_forward_equals_the_whole_forward():
    net = model()
    idx = torch.randint(65, (1, 32))
    cache = net.new_cache(torch.float32, net.config.block_size)
    pieces = []
    with torch.inference_mode():
        logits = net.next_logits(idx[:, :5], cache)
        cache.advance(5)
        pieces.append(logits)
        for position in range(5, 32):
            logits = net.next_logits(idx[:, position : position + 1], cache)
            cache.advance(1)
            pieces.append(logits)
        whole = net.lm_head(net.hidden(idx))
    assert torch.allclose(torch.cat(pieces), whole[0, 4:], atol=1e-5)


@pytest.mark.parametrize("bias", [False, True])
def test_token_decoder_equals_the_whole_forward(bias):
    net = model(bias=bias)
    for parameter in net.parameters():
        parameter.data += 0.02 * torch.randn_like(parameter)
    idx = torch.randint(65, (1, 32))
    cache = net.new_cache(torch.float32, net.config.block_size)
    decoder = GPT2TokenDecoder(net, cache)
    with torch.inference_mode():
        pieces = torch.cat([decoder(token) for token in idx[0].tolist()])
        whole = net.lm_head(net.hidden(idx))
    assert torch.allclose(pieces, whole[0], atol=1e-5)
    assert cache.length == 32


def test_dropout_acts_in_training_and_not_in_evaluation():
    net = model(dropout=0.5)
    idx = torch.randint(65, (1, 8))
    assert torch.equal(net.hidden(idx), net.hidden(idx))
    net.train()
    assert not torch.equal(net.hidden(idx), net.hidden(idx))
