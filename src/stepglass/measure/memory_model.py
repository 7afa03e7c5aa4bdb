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
MUON_CHUNK = 1 << 24  # the most elements of matrices that train/muon.py copies at once
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
    way = Way(BYTES[dtype], device_type, does_compile)
    num_params, inner = shape.num_params(), params_in_blocks(shape)
    moments = 8 * num_params - (4 * inner if uses_muon else 0)
    context = CUDA_CONTEXT if device_type == "cuda" else 0
    at_loss = MemoryNeed(
        weights=4 * num_params + way.short * inner,
        gradients=4 * num_params if accumulates else 0,
        optimizer=moments,
        activations=activation_bytes(shape, batch_size, way),
        logits=loss_bytes(shape, batch_size * shape.block_size, way),
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
        activations=activation_bytes(shape, batch_size, Way(2, "cuda", does_compile=False)),
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


@dataclass(frozen=True)
class Way:
    """How a model is computed."""

    size: int  # bytes of a number in a matrix product
    device_type: str
    does_compile: bool

    @property
    def short(self) -> int:
        """Bytes of a copy in half precision, or 0 if there are none."""
        return self.size if self.size < 4 else 0

    @property
    def is_handwritten(self) -> bool:
        """True if the operations with hand-written gradients are used: models/cpu_ops.py."""
        return self.device_type == "cpu" and self.size == 4 and not self.does_compile


def activation_bytes(shape: Shape, batch_size: int, way: Way) -> int:
    """What the layers keep for the backward pass, and the inputs and output of the last norm."""
    T, C = shape.block_size, shape.n_embd
    # Inputs of the norms and of the products, attention's result, and the logarithms of its sums.
    token = 2 * 4 * C + 2 * way.size * C + way.size * C + 4 * shape.n_head
    if shape.dropout:
        token += 2 * C * (way.size if way.device_type == "cpu" else 1)  # masks
    scores = kept_scores(shape, batch_size, way)
    if isinstance(shape, ModernConfig):
        token += modern_bytes(shape, way, keeps_scores=scores > 0)
    else:
        token += way.size * (3 * C + 2 * 4 * C)  # heads; around the GELU
    return shape.n_layer * (batch_size * T * token + scores) + batch_size * T * 12 * C


def modern_bytes(shape: ModernConfig, way: Way, keeps_scores: bool) -> int:
    """Bytes of a layer for one token, besides what both models keep."""
    C, D, size = shape.n_embd, shape.head_dim, way.size
    queries_and_keys, values = (shape.n_head + shape.kv_heads) * D, shape.kv_heads * D
    token = size * (2 * queries_and_keys + values)  # projected, and rotated
    token += size * 3 * shape.inner  # gate and up, and their product
    if way.does_compile:
        return token
    if way.is_handwritten:
        return token + size * (2 * shape.inner + (0 if keeps_scores else queries_and_keys + C))
    normed = 2 * 4 * C + size * queries_and_keys + (4 * queries_and_keys if way.short else 0)
    return token + normed + size * shape.inner


def kept_scores(shape: Shape, batch_size: int, way: Way) -> int:
    """Bytes of the attention scores that a layer keeps. A CUDA GPU keeps none."""
    T, num_heads = shape.block_size, batch_size * shape.n_head
    if way.device_type == "cuda" or way.does_compile:
        return 0
    if shape.dropout:  # PyTorch's plain formula: shares, mask and product
        return num_heads * T * T * 3 * 4
    if way.device_type == "mps":  # the plain formula again: there is no other one for training
        return num_heads * T * T * 4
    is_kept = num_heads * T * T <= KEPT_SCORES and shape.kv_heads == shape.n_head
    if not is_kept or not way.is_handwritten:
        return 0
    ends = [min(start + SCORE_ROWS, T) for start in range(0, T, SCORE_ROWS)]
    return num_heads * 4 * min(SCORE_ROWS, T) * sum(ends)


def num_chunks(num_tokens: int, vocab_size: int) -> int:
    """The number of parts in which the logits are computed.

    >>> num_chunks(12 * 1024, 65), num_chunks(12 * 1024, 50_304)
    (1, 19)
    """
    return min(num_tokens, -(-num_tokens * vocab_size // CHUNK_LOGITS))


def loss_bytes(shape: Shape, num_tokens: int, way: Way) -> int:
    """What the loss takes, or the last layer's backward pass, if that takes more."""
    V, C, size, short = shape.vocab_size, shape.n_embd, way.size, way.short
    chunks = num_chunks(num_tokens, V)
    if chunks == 1:  # PyTorch's: log-probabilities, their gradient, and that of the logits
        loss = (12 + short) * num_tokens * V + (4 + short) * V * C
    else:
        of_chunk = -(-num_tokens // chunks) * V
        at_once = max((4 + short) * of_chunk, size * (of_chunk + V * C))  # then the head's gradient
        loss = at_once + (4 + short) * V * C + size * num_tokens * C
    widest = 2 * shape.inner if isinstance(shape, ModernConfig) else 4 * C
    return max(loss, size * num_tokens * widest)


def muon_bytes(shape: Shape, inner: int) -> int:
    """What Muon computes with: copies of the gradients and directions of a chunk, and the small
    squares."""
    C, D = shape.n_embd, shape.head_dim
    if isinstance(shape, ModernConfig):
        key_width = shape.kv_heads * D
        squares = 2 * C * C + 2 * min(key_width, C) ** 2 + 3 * min(shape.inner, C) ** 2
    else:
        squares = 6 * C * C
    of_chunk = min(1.0, MUON_CHUNK / inner)
    return int(of_chunk * (8 * inner + 4 * 4 * shape.n_layer * squares))
