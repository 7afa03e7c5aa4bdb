"""The loss of a model's output, without ever holding the logits of a whole batch.

    loss = mean_loss(x, head, targets)        # training: a number to differentiate
    losses = token_losses(x, head, targets)   # evaluation: one for each token

Logits are the largest tensor of a model with a large vocabulary: 12 x 1024 tokens of GPT-2's 50,304
make 2.3 GiB in float32, and a backward pass needs them several times. So they are computed for some
tokens at a time. Their gradient is computed in the same moment and the logits are dropped: nothing
is kept or computed twice.

Small batches of logits, such as those of characters, take PyTorch's own path.

A target may be IGNORED: its token has a loss and a gradient of zero. A mean is over all tokens,
also those. So the loss of a batch is always the sum of the losses of its parts, however it is
split among micro-batches and processes; the engines divide by the share of tokens that count.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from stepglass.data.dataset import IGNORED
from stepglass.measure import memory_model


def mean_loss(x: Tensor, head: Tensor, targets: Tensor) -> Tensor:
    """The cross entropy, summed up and divided by the number of all tokens. `x` is (B, T, C),
    `head` is (V, C)."""
    num_chunks = chunks_of(x, head)
    if num_chunks == 1:
        logits = F.linear(x, head)
        flat, wanted = logits.view(-1, logits.size(-1)), targets.reshape(-1)
        total = F.cross_entropy(flat, wanted, ignore_index=IGNORED, reduction="sum")
        return total / targets.numel()
    if not torch.is_grad_enabled():
        return token_losses(x, head, targets).mean()
    device = x.device.type
    is_mixed = torch.is_autocast_enabled(device)
    dtype = torch.get_autocast_dtype(device) if is_mixed else x.dtype
    flat_x, flat_targets = x.flatten(0, 1), targets.flatten()
    loss: Tensor = _ChunkedLoss.apply(flat_x, head, flat_targets, dtype, num_chunks)  # type: ignore[no-untyped-call]
    return loss


def token_losses(x: Tensor, head: Tensor, targets: Tensor) -> Tensor:
    """The cross entropy of each token, flat."""
    num_chunks = chunks_of(x, head)
    parts = zip(x.flatten(0, 1).chunk(num_chunks), targets.flatten().chunk(num_chunks), strict=True)
    losses = [
        F.cross_entropy(F.linear(part, head), wanted, ignore_index=IGNORED, reduction="none")
        for part, wanted in parts
    ]
    return torch.cat(losses)


def chunks_of(x: Tensor, head: Tensor) -> int:
    """The number of chunks in which the logits are computed."""
    return memory_model.num_chunks(x.size(0) * x.size(1), head.size(0))


class _ChunkedLoss(torch.autograd.Function):
    """Computes the gradients in the forward pass, for a loss that is the sum over all tokens. The
    backward pass divides them by the number of tokens: in float16 they would underflow before."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, head: Tensor, targets: Tensor, dtype: torch.dtype, num_chunks: int
    ) -> Tensor:
        with torch.autocast(x.device.type, enabled=False):
            short_head = head.to(dtype)
            grad_x, grad_head = [], torch.zeros_like(head)
            total = torch.zeros((), dtype=head.dtype, device=x.device)
            parts = zip(x.chunk(num_chunks), targets.unsqueeze(1).chunk(num_chunks), strict=True)
            for part, wanted in parts:
                short = part.to(dtype)
                loss, grad = loss_and_gradient(short, short_head, wanted)
                total += loss
                grad_x.append(torch.mm(grad, short_head))
                grad_head += torch.mm(grad.T, short)
                del grad  # before the next chunk computes its own
        ctx.save_for_backward(torch.cat(grad_x), grad_head)
        ctx.num_tokens, ctx.dtype = len(x), x.dtype
        return total / len(x)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        grad_x, grad_head = ctx.saved_tensors
        scale = grads[0] / ctx.num_tokens
        return grad_x.to(ctx.dtype) * scale, grad_head.mul_(scale), None, None, None


def loss_and_gradient(x: Tensor, head: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """The sum of the losses of a chunk, and its gradient for the logits. All in place: two tensors
    of this size would be twice the memory."""
    counts = targets != IGNORED
    targets = targets.clamp(min=0)
    logits = torch.mm(x, head.T).to(torch.promote_types(x.dtype, torch.float32))
    logits.sub_(logits.amax(1, keepdim=True))
    of_targets = logits.gather(1, targets)
    odds = logits.exp_()
    sums = odds.sum(1, keepdim=True)
    loss = (sums.log() - of_targets).where(counts, 0.0).sum()
    # Divided by infinity, the gradient of a token that does not count is zero.
    probabilities = odds.div_(sums.where(counts, torch.inf))
    grad = probabilities.scatter_add_(1, targets, -counts.to(sums.dtype))
    return loss, grad.to(x.dtype)
