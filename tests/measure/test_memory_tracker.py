"""The memory that is computed from a shape is what torch counts."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from memory_model import Case, gpt2, modern, tracked_peak

CASES = [
    Case(shape(vocab_size, block_size, 2, n_embd, **more), batch_size, dtype, device, *rest)
    for shape in (gpt2, modern)
    for vocab_size, block_size, n_embd, batch_size, dtype, device, more, *rest in (
        (65, 64, 128, 12, "float32", "cpu", {}, "muon", False),  # the recipe for a CPU
        (65, 256, 128, 12, "float32", "cuda", {"dropout": 0.0}, "adamw", False),
        (65, 128, 128, 8, "float32", "cpu", {"dropout": 0.1}, "adamw", False),
        (65, 512, 128, 8, "float32", "mps", {}, "muon", False),  # keeps attention's scores
        (65, 256, 128, 8, "float32", "mps", {"dropout": 0.1}, "adamw", False),
        (50_304, 512, 64, 4, "bfloat16", "cuda", {}, "adamw", True),  # the loss in chunks
        (50_304, 512, 64, 4, "float32", "cpu", {}, "muon", False),
        (512, 32, 256, 1, "float16", "cuda", {}, "muon", True),  # at the optimizer's step
    )
] + [
    Case(modern(65, 256, 2, 256, n_kv_head=2), 8, "bfloat16"),
    Case(modern(4096, 512, 2, 128, tie_weights=True), 24, "float32"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_is_what_torchs_tracker_counts(case):
    assert case.predicted() == pytest.approx(tracked_peak(case), rel=0.1)
