"""STAND-IN until the memory model is merged."""

from dataclasses import dataclass

from stepglass.measure.shapes import Shape


@dataclass(frozen=True)
class MemoryNeed:
    weights: float
    gradients: float
    optimizer: float
    activations: float
    logits: float
    context: float

    @property
    def total(self) -> float:
        return (
            self.weights
            + self.gradients
            + self.optimizer
            + self.activations
            + self.logits
            + self.context
        )


def memory_of(
    shape: Shape,
    *,
    batch_size: int,
    dtype: str,
    does_compile: bool,
    uses_muon: bool,
    device_type: str,
    dropout: float,
) -> MemoryNeed:
    N, tokens = shape.num_params(), batch_size * shape.block_size
    return MemoryNeed(
        6.0 * N,
        4.0 * N,
        (6.0 if uses_muon else 8.0) * N,
        34.0 * shape.n_layer * shape.n_embd * tokens,
        10.0 * tokens * shape.vocab_size,
        0.5e9,
    )


nanogpt_memory_of = memory_of
