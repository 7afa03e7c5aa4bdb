"""Four operations for which PyTorch makes more passes over memory on a CPU than necessary.

    y = rms_norm(x, weight)                      # Qwen3's norm
    qk = normed_and_rotated(qk, ...)             # its norm of heads, then rotary positions
    y = swiglu(gate_and_up)                      # silu(gate) * up
    y = attention(q, k, v)                       # causal

Each operation has two versions. `plain_*` is the formula, which torch.compile turns into one kernel
for a GPU. The other has a hand-written gradient and is used on a CPU. Tests compare the two in
double precision.
"""

import functools

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx
from torch.nn import functional as F

EPS = 1e-6
# Attention on a CPU: the number of queries in a block, and of scores that fit in a core's cache.
ROWS = 128
CACHED_SCORES = 48 * 128 * 256
# The most scores of all heads that are kept for the backward pass. Above this, PyTorch's attention
# is used, which keeps none.
KEPT_SCORES = 1 << 25


def _run(operation: type[torch.autograd.Function], *inputs: Tensor | float) -> Tensor:
    result: Tensor = operation.apply(*inputs)  # type: ignore[no-untyped-call]
    return result


def uses_handwritten(x: Tensor) -> bool:
    """True if the hand-written version should be used: on a CPU, without torch.compile and without
    autocast."""
    is_plain = not torch.compiler.is_compiling() and not torch.is_autocast_enabled("cpu")
    return is_plain and x.device.type == "cpu"


# -- RMSNorm ------------------------------------------------------------------------------------


def rms_norm(x: Tensor, weight: Tensor, eps: float = EPS) -> Tensor:
    """x / rms(x) * weight over the last dimension."""
    if uses_handwritten(x):
        return _run(_RMSNorm, x, weight, eps)
    return plain_rms_norm(x, weight, eps)


def plain_rms_norm(x: Tensor, weight: Tensor | None, eps: float = EPS) -> Tensor:
    return torch.rms_norm(x, (x.size(-1),), weight, eps)


def inverse_rms(x: Tensor, eps: float) -> Tensor:
    """1 / rms(x) over the last dimension. The result has size 1 in that dimension."""
    norm: Tensor = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return norm.square_().mul_(1 / x.size(-1)).add_(eps).rsqrt_()


def norm_gradient(grad: Tensor, y: Tensor, scale: Tensor) -> Tensor:
    """The gradient of x for y = x * scale, where scale is 1 / rms(x). Changes `grad` in place."""
    along = torch.linalg.vecdot(grad, y).unsqueeze(-1).mul_(1 / y.size(-1))
    return grad.addcmul_(y, along, value=-1).mul_(scale)


class _RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        scale = inverse_rms(x, eps)
        y = x * scale
        ctx.save_for_backward(y, scale, weight)
        return y * weight

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        y, scale, weight = ctx.saved_tensors  # type: ignore[attr-defined]
        grad_weight = (grad * y).view(-1, y.size(-1)).sum(0)
        return norm_gradient(grad * weight, y, scale), grad_weight, None


# -- queries and keys ---------------------------------------------------------------------------


def normed_and_rotated(
    x: Tensor, weight: Tensor, cos: Tensor, sin: Tensor, eps: float = EPS
) -> Tensor:
    """Apply RMSNorm and rotary positions to each head: (B, T, H, D) -> (B, H, T, D).

    `weight` is (H, D). `cos` and `sin` are (T, 1, D), and the first half of `sin` is negative. The
    elements d and d + D/2 are rotated as a pair.
    """
    if uses_handwritten(x):
        return _run(_NormRotate, x, weight, cos, sin, eps)
    return plain_normed_and_rotated(x, weight, cos, sin, eps)


def plain_normed_and_rotated(
    x: Tensor, weight: Tensor, cos: Tensor, sin: Tensor, eps: float = EPS
) -> Tensor:
    normed = torch.rms_norm(x, (x.size(-1),), None, eps).to(x.dtype)
    return rotated(normed * weight.to(x.dtype), cos, sin)


def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary positions alone, for models without the norm: (B, T, H, D) -> (B, H, T, D)."""
    # Under autocast the heads are in half precision. A float32 cosine or sine would make tensors of
    # their size in float32.
    cos, sin = cos.to(x.dtype), sin.to(x.dtype)
    return (x * cos + x.roll(x.size(-1) // 2, -1) * sin).transpose(1, 2)


class _NormRotate(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: FunctionCtx, x: Tensor, weight: Tensor, cos: Tensor, sin: Tensor, eps: float
    ) -> Tensor:
        B, T, H, D = x.shape
        scale = inverse_rms(x, eps)
        y = x * scale
        ctx.save_for_backward(y, scale, weight, cos, sin)
        z = y * weight
        out = x.new_empty(B, H, T, D)
        torch.mul(z.roll(D // 2, -1), sin, out=out.transpose(1, 2))
        return out.transpose(1, 2).addcmul_(z, cos).transpose(1, 2)

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        y, scale, weight, cos, sin = ctx.saved_tensors  # type: ignore[attr-defined]
        grad = grad.transpose(1, 2)
        turned = (grad * sin).roll(y.size(-1) // 2, -1).addcmul_(grad, cos)
        grad_weight = (turned * y).sum((0, 1))
        return norm_gradient(turned.mul_(weight), y, scale), grad_weight, None, None, None


# -- the MLP's gate -----------------------------------------------------------------------------


def swiglu(gate_and_up: Tensor) -> Tensor:
    """silu(gate) * up, where gate and up are the two halves of the last dimension."""
    if uses_handwritten(gate_and_up):
        return _run(_SwiGLU, gate_and_up)
    return plain_swiglu(gate_and_up)


def plain_swiglu(gate_and_up: Tensor) -> Tensor:
    gate, up = gate_and_up.chunk(2, -1)
    return F.silu(gate) * up


class _SwiGLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, gate_and_up: Tensor) -> Tensor:
        gate, up = gate_and_up.chunk(2, -1)
        share = torch.sigmoid(gate)
        passed = gate * share
        ctx.save_for_backward(up, share, passed)
        return passed * up

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Tensor) -> Tensor:
        up, share, passed = ctx.saved_tensors  # type: ignore[attr-defined]
        both = grad.new_empty(*grad.shape[:-1], 2 * grad.size(-1))
        grad_gate, grad_up = both.chunk(2, -1)
        torch.mul(grad, passed, out=grad_up)
        slope = (share + passed).addcmul_(passed, share, value=-1)
        torch.mul(slope.mul_(up), grad, out=grad_gate)
        return both


# -- attention ----------------------------------------------------------------------------------


def attention(q: Tensor, k: Tensor, v: Tensor, dropout: float = 0.0) -> Tensor:
    """Causal attention: every query attends to the keys up to its own position.

    (B, H, T, D) -> (B, H, T, D). A single query may have many earlier keys, from a cache. If there
    are fewer key heads than query heads, neighbouring query heads share a key head.
    """
    B, H, T, _ = q.shape
    assert T in (1, k.size(2)), "a mask would be aligned with the first key, not with the last"
    is_small = B * H * T * T <= KEPT_SCORES
    if uses_handwritten(q) and T > 1 and is_small and k.size(1) == H and dropout == 0:
        return _run(_Attention, q, k, v)
    if torch.compiler.is_compiling() and q.device.type == "cpu" and 1 < T <= ROWS and dropout == 0:
        return plain_attention(q, k, v)
    # A single new token attends to all earlier tokens, so it needs no mask.
    return F.scaled_dot_product_attention(
        q, k, v, dropout_p=dropout, is_causal=T > 1, enable_gqa=k.size(1) != H
    )


def plain_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The formula, which torch.compile can fuse with the code around it. The mask is finite:
    inductor's exponential of minus infinity takes several times as long."""
    B, H, T, D = q.shape
    if k.size(1) != H:
        k, v = (part.repeat_interleave(H // k.size(1), dim=1) for part in (k, v))
    q, k, v = (part.reshape(B * H, T, D) for part in (q, k, v))
    mask = torch.full((T, T), -1e30, dtype=q.dtype).triu(1)
    shares = torch.softmax(torch.baddbmm(mask, q, k.mT, alpha=D**-0.5), -1)
    return torch.bmm(shares, v).view(B, H, T, D)


class _Attention(torch.autograd.Function):
    """Processes queries in blocks and heads in groups. Most masked scores are not computed, and the
    others are used while they are still in the CPU's cache."""

    @staticmethod
    def forward(ctx: FunctionCtx, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        B, H, T, D = q.shape
        q, k, v = (part.reshape(B * H, T, D) for part in (q, k, v))
        mask = causal_mask(T, q.dtype)
        out = torch.empty_like(q)
        shares = []
        for heads, rows, seen in attention_blocks(B * H, T):
            scores = torch.baddbmm(
                mask[rows, seen], q[heads, rows], k[heads, seen].mT, alpha=D**-0.5
            )
            shares.append(torch.softmax(scores, -1))
            out[heads, rows] = torch.bmm(shares[-1], v[heads, seen])
        ctx.save_for_backward(q, k, v, *shares)
        return out.view(B, H, T, D)

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v, *shares = ctx.saved_tensors  # type: ignore[attr-defined]
        shape, scale = grad.shape, q.size(-1) ** -0.5
        grad = grad.reshape(q.shape)
        grad_q, grad_k, grad_v = torch.empty_like(q), torch.zeros_like(k), torch.zeros_like(v)
        for (heads, rows, seen), share in zip(attention_blocks(*q.shape[:2]), shares, strict=True):
            grad_v[heads, seen] += torch.bmm(share.mT, grad[heads, rows])
            grad_share = torch.bmm(grad[heads, rows], v[heads, seen].mT)
            grad_scores = torch._softmax_backward_data(grad_share, share, -1, share.dtype)
            grad_scores.mul_(scale)
            grad_q[heads, rows] = torch.bmm(grad_scores, k[heads, seen])
            grad_k[heads, seen] += torch.bmm(grad_scores.mT, q[heads, rows])
        return grad_q.view(shape), grad_k.view(shape), grad_v.view(shape)


@functools.lru_cache(maxsize=4)
def causal_mask(T: int, dtype: torch.dtype) -> Tensor:
    """The causal mask, which is added to the scores: minus infinity for later keys."""
    with torch.inference_mode(False):  # it may be created in an evaluation and used in training
        return torch.full((T, T), float("-inf"), dtype=dtype).triu_(1)


def attention_blocks(num_heads: int, T: int) -> list[tuple[slice, slice, slice]]:
    """The blocks of the computation: heads, queries, and the keys that these queries may see."""
    group = max(1, CACHED_SCORES // (min(ROWS, T) * T))
    return [
        (slice(head, head + group), slice(row, min(row + ROWS, T)), slice(min(row + ROWS, T)))
        for head in range(0, num_heads, group)
        for row in range(0, T, ROWS)
    ]
