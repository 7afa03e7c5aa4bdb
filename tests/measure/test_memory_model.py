"""The memory that training needs, computed from a shape."""

import pytest

from stepglass.measure.memory_model import (
    KEPT_SCORES,
    SCORE_ROWS,
    largest_batch,
    memory_of,
    memory_of_nanogpt,
)
from stepglass.measure.shapes import GPTConfig, ModernConfig
from stepglass.models import cpu_ops

SIZES = {"vocab_size": 50_304, "block_size": 1024, "n_layer": 12, "n_head": 12, "n_embd": 768}
GPT2_124M = GPTConfig(**SIZES)
MODERN_124M = ModernConfig(**SIZES)
GIB = 2**30


def need_of(shape, batch_size=12, **changes):
    way = {"dtype": "bfloat16", "device_type": "cuda", "uses_muon": shape.name == "modern"}
    return memory_of(shape, batch_size=batch_size, **way | changes)


def test_a_modern_model_of_124_million_fits_into_11_gib():
    need = need_of(MODERN_124M)
    assert 8 * GIB < need.total - need.context < 11 * GIB


def test_nanogpts_own_gpt2_takes_12_gb_at_batch_12():
    assert memory_of_nanogpt(GPT2_124M, batch_size=12).total == pytest.approx(12e9, rel=0.15)


def test_what_the_total_is_made_of():
    need = need_of(GPT2_124M)
    parts = vars(need)
    assert set(parts) == {
        "weights", "gradients", "optimizer", "activations", "logits", "context",
    }  # fmt: skip
    assert need.total == sum(parts.values())
    assert need.gradients == 4 * GPT2_124M.num_params()
    assert need.optimizer == 8 * GPT2_124M.num_params()
    assert need_of(GPT2_124M, device_type="cpu").context == 0 < need.context


@pytest.mark.parametrize(
    ("more", "less"),
    [
        ({"dtype": "float32"}, {"dtype": "bfloat16"}),
        ({"batch_size": 12}, {"batch_size": 8}),
        ({"accumulates": True}, {"accumulates": False}),
        ({"uses_muon": False}, {"uses_muon": True}),
        ({"does_compile": False}, {"does_compile": True}),
    ],
)
def test_what_needs_more_memory(more, less):
    assert need_of(MODERN_124M, **more).total > need_of(MODERN_124M, **less).total


def test_logits_hardly_grow_with_the_batch():
    small, large = (need_of(GPT2_124M, batch_size=size).logits for size in (4, 64))
    assert large < 1.5 * small


@pytest.mark.parametrize("gigabytes", [8, 12, 24, 80])
def test_the_largest_batch_fits_and_one_more_row_does_not(gigabytes):
    most = largest_batch(lambda size: need_of(GPT2_124M, size), gigabytes * 10**9)
    room = 0.85 * gigabytes * 10**9
    assert need_of(GPT2_124M, most).total <= room < need_of(GPT2_124M, most + 1).total


def test_where_not_even_one_row_fits_there_is_no_largest_batch():
    assert largest_batch(lambda size: need_of(GPT2_124M, size), 2 * 10**9) is None


@pytest.mark.parametrize(("gigabytes", "expected"), [(12, 8), (16, 12), (24, 20)])
def test_batches_of_nanogpt_that_common_cards_hold(gigabytes, expected):
    need = lambda size: memory_of_nanogpt(GPT2_124M, batch_size=size)  # noqa: E731
    assert abs(largest_batch(need, gigabytes * 10**9) - expected) <= 1


def test_the_attention_that_it_counts_is_the_models():
    assert (KEPT_SCORES, SCORE_ROWS) == (cpu_ops.KEPT_SCORES, cpu_ops.ROWS)


def test_every_shape_says_its_dropout():
    sizes = {"vocab_size": 65, "block_size": 8, "n_layer": 1, "n_head": 1, "n_embd": 8}
    assert [shape(**sizes, dropout=0.2).dropout for shape in (GPTConfig, ModernConfig)] == [0.2] * 2
