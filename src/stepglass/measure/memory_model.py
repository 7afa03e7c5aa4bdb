"""How much memory training needs, computed from the shape of the model, without torch.

    need = memory_of(shape, batch_size=12, dtype="bfloat16", device_type="cuda", uses_muon=True)
    need.total, need.activations
    most = largest_batch(lambda batch: memory_of(shape, batch_size=batch, ...), available_bytes)

An update has two moments that can be its peak: the loss, when all activations are held, and the
step of the optimizer, when all gradients are. Tensors are counted one by one, as PyTorch's autograd
keeps them: `benchmarks/memory_model.py` compares the sums with what torch's own tracker sees. What
an allocator holds in reserve comes on top; `largest_batch` leaves room for it.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields

from stepglass.measure.shapes import GPTConfig, ModernConfig, Shape

CHUNK_LOGITS = 1 << 25  # the most logits that models/chunked_loss.py computes at once
BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
CUDA_CONTEXT = 500_000_000  # of a process on a GPU, before it allocates anything
SPARE = 0.15  # of the memory, for what the allocator holds in reserve
NANOGPT_LOGIT = 10  # bytes: in bfloat16, in float32, and their gradient, none of them in chunks
# Attention on a CPU keeps the scores of all heads up to this number: models/cpu_ops.py.
KEPT_SCORES = 1 << 25
SCORE_ROWS = 128


@dataclass(frozen=True, kw_only=True)
class MemoryNeed:
    """Bytes at the peak of an update."""

    weights: int  # in float32, and those of the blocks in half precision
    gradients: int
    optimizer: int  # its state, and at its step what it computes with
    activations: int
    logits: int  # and the rest of the loss
    context: int  # of the GPU's driver

    @property
    def total(self) -> int:
        return sum(getattr(self, field.name) for field in fields(self))


def memory_of(
    shape: Shape,
    *,
    batch_size: int,
    dtype: str,
    device_type: str,
    uses_muon: bool,
    does_compile: bool = False,
    accumulates: bool = True,
) -> MemoryNeed:
    """The memory of an update. `dtype` is that of matrix products; weights are float32. If it
    accumulates gradients over several batches, they are there during the later ones."""
    size, num_params = BYTES[dtype], shape.num_params()
    num_tokens = batch_size * shape.block_size
    inner = params_in_blocks(shape)
    moments = 8 * num_params - (4 * inner if uses_muon else 0)
    context = CUDA_CONTEXT if device_type == "cuda" else 0
    at_loss = MemoryNeed(
        weights=4 * num_params + (size * inner if size < 4 else 0),
        gradients=4 * num_params if accumulates else 0,
        optimizer=moments,
        activations=num_tokens * shape.n_layer * layer_bytes(shape, size, device_type, does_compile)
        + kept_scores(shape, batch_size, dtype, device_type, does_compile)
        + num_tokens * 12 * shape.n_embd,  # around the last norm
        logits=loss_bytes(shape, num_tokens, size),
        context=context,
    )
    at_step = MemoryNeed(
        weights=4 * num_params,
        gradients=4 * num_params,
        optimizer=moments + (muon_bytes(shape, inner) if uses_muon else 0),
        activations=0,
        logits=0,
        context=context,
    )
    return max(at_loss, at_step, key=lambda need: need.total)


def memory_of_nanogpt(shape: GPTConfig, *, batch_size: int) -> MemoryNeed:
    """The memory of nanoGPT's own train.py: AdamW, bfloat16, and all logits at once. A process
    was reported to take 12 GB with GPT-2's 124 M at batch 12 (its issue 303)."""
    num_tokens = batch_size * shape.block_size
    return MemoryNeed(
        weights=4 * shape.num_params() + 2 * params_in_blocks(shape),
        gradients=4 * shape.num_params(),
        optimizer=8 * shape.num_params(),
        activations=num_tokens * shape.n_layer * layer_bytes(shape, 2, "cuda", does_compile=False),
        logits=NANOGPT_LOGIT * num_tokens * shape.vocab_size,
        context=CUDA_CONTEXT,
    )


def largest_batch(need_of: Callable[[int], MemoryNeed], available_bytes: int) -> int | None:
    """The largest batch that fits, with room to spare. None if not even one row does."""
    room = int(available_bytes * (1 - SPARE))
    if need_of(1).total > room:
        return None
    fits, too_many = 1, 2
    while need_of(too_many).total <= room:
        fits, too_many = too_many, 2 * too_many
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        if need_of(middle).total <= room:
            fits = middle
        else:
            too_many = middle
    return fits


def same_rows(rows: int, most: int) -> tuple[int, int]:
    """The largest batch_size up to `most` that gives an update this number of rows, and its
    gradient_accumulation_steps.

    >>> same_rows(480, 9), same_rows(7, 6), same_rows(12, 64)
    ((8, 60), (1, 7), (12, 1))
    """
    batch_size = next(size for size in range(min(most, rows), 0, -1) if rows % size == 0)
    return batch_size, rows // batch_size


# -- the parts ----------------------------------------------------------------------------------


def params_in_blocks(shape: Shape) -> int:
    return shape.num_params() - shape.num_looked_up() - shape.vocab_size * shape.n_embd


def is_handwritten(size: int, device_type: str, does_compile: bool) -> bool:
    """True if the operations with hand-written gradients are used: models/cpu_ops.py."""
    return device_type == "cpu" and size == 4 and not does_compile


def layer_bytes(shape: Shape, size: int, device_type: str, does_compile: bool) -> int:
    """Bytes that a layer keeps for the backward pass, for one token."""
    C = shape.n_embd
    masks = 0
    if shape.dropout:
        masks = 2 * C * (size if device_type == "cpu" else 1)
    # Inputs of the norms and of the products, attention's result, and the logarithms of its sums.
    common = 2 * 4 * C + 2 * size * C + size * C + 4 * shape.n_head + masks
    if isinstance(shape, ModernConfig):
        return common + _modern_bytes(shape, size, device_type, does_compile)
    return common + size * (3 * C + 2 * 4 * C)  # heads; around the GELU


def _modern_bytes(shape: ModernConfig, size: int, device_type: str, does_compile: bool) -> int:
    C, D = shape.n_embd, shape.head_dim
    queries_and_keys, values = (shape.n_head + shape.kv_heads) * D, shape.kv_heads * D
    heads = size * (queries_and_keys + values) + size * queries_and_keys  # projected; rotated
    mlp = size * 3 * shape.inner  # gate and up, and their product
    if does_compile:
        return heads + mlp
    if is_handwritten(size, device_type, does_compile):
        return heads + mlp + size * 2 * shape.inner
    normed = 2 * 4 * C + size * queries_and_keys + (4 * queries_and_keys if size < 4 else 0)
    return heads + mlp + normed + size * shape.inner


def kept_scores(
    shape: Shape, batch_size: int, dtype: str, device_type: str, does_compile: bool
) -> int:
    """Bytes of the attention scores that are kept, of all layers. Only CPUs keep any."""
    T, num_heads = shape.block_size, batch_size * shape.n_head
    if device_type != "cpu" or does_compile:
        return 0
    if shape.dropout:  # PyTorch's plain formula: shares, mask and product
        return shape.n_layer * num_heads * T * T * 3 * 4
    is_kept = num_heads * T * T <= KEPT_SCORES and shape.kv_heads == shape.n_head
    if not is_handwritten(BYTES[dtype], device_type, does_compile) or not is_kept:
        return 0
    rows = [min(start + SCORE_ROWS, T) for start in range(0, T, SCORE_ROWS)]
    return shape.n_layer * num_heads * 4 * sum(min(SCORE_ROWS, T) * seen for seen in rows)


def num_chunks(num_tokens: int, vocab_size: int) -> int:
    """The number of parts in which the logits are computed.

    >>> num_chunks(12 * 1024, 65), num_chunks(12 * 1024, 50_304)
    (1, 19)
    """
    return min(num_tokens, -(-num_tokens * vocab_size // CHUNK_LOGITS))


def loss_bytes(shape: Shape, num_tokens: int, size: int) -> int:
    V, C = shape.vocab_size, shape.n_embd
    chunks = num_chunks(num_tokens, V)
    short = size if size < 4 else 0
    if chunks == 1:  # PyTorch's: log-probabilities, their gradient, and that of the logits
        return (12 + short) * num_tokens * V + short * V * C + 4 * V * C
    of_chunk = (4 + short) * -(-num_tokens // chunks) * V
    return of_chunk + (4 + short + size) * V * C + size * num_tokens * C


def muon_bytes(shape: Shape, inner: int) -> int:
    """What Muon computes with: copies of all gradients and directions, and the small squares."""
    C, D = shape.n_embd, shape.head_dim
    if isinstance(shape, ModernConfig):
        key_width = shape.kv_heads * D
        squares = 2 * C * C + 2 * min(key_width, C) ** 2 + 3 * min(shape.inner, C) ** 2
    else:
        squares = 6 * C * C
    return 8 * inner + 4 * 4 * shape.n_layer * squares
