"""The memory that training needs: what is computed from a shape is what torch counts."""

import sys
from pathlib import Path

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

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from memory_model import Case, gpt2, modern, tracked_peak

GPT2_124M = gpt2(50_304, 1024, 12, 768)
MODERN_124M = modern(50_304, 1024, 12, 768)
GIB = 2**30
CASES = [
    Case(shape(vocab_size, block_size, 2, n_embd, **more), batch_size, dtype, device, *rest)
    for shape in (gpt2, modern)
    for vocab_size, block_size, n_embd, batch_size, dtype, device, more, *rest in (
        (65, 64, 128, 12, "float32", "cpu", {}, "muon", False),  # the recipe for a CPU
        (65, 256, 128, 12, "float32", "cuda", {"dropout": 0.0}, "adamw", False),
        (65, 128, 128, 8, "float32", "cpu", {"dropout": 0.1}, "adamw", False),
        (50_304, 512, 64, 4, "bfloat16", "cuda", {}, "adamw", True),  # the loss in chunks
        (50_304, 512, 64, 4, "float32", "cpu", {}, "muon", False),
        (512, 32, 256, 1, "float16", "cuda", {}, "muon", True),  # at the optimizer's step
    )
] + [
    Case(modern(65, 256, 2, 256, n_kv_head=2), 8, "bfloat16"),
    Case(modern(4096, 512, 2, 128, tie_weights=True), 24, "float32"),
]


def need_of(shape, batch_size=12, **changes):
    way = {"dtype": "bfloat16", "device_type": "cuda", "uses_muon": shape.name == "modern"}
    return memory_of(shape, batch_size=batch_size, **way | changes)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_is_what_torchs_tracker_counts(case):
    assert case.predicted() == pytest.approx(tracked_peak(case), rel=0.1)


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
