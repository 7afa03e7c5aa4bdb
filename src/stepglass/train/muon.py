"""Muon for the matrices inside the blocks, AdamW for the rest, in one optimizer."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from stepglass.measure.memory_model import MUON_CHUNK

# The first three steps of the Polar Express (arXiv 2505.16932): polynomials a x + b x^3 + c x^5
# that raise small singular values fast. The resulting values lie between 0.15 and 1.9. Steps that
# bring all of them to 1 were tried, and gave a slightly higher loss: docs/recipes.md.
STEPS = (
    (8.156554524902461, -22.48329292557795, 15.878769915207462),
    (4.042929935166739, -2.808917465908714, 0.5000178451051316),
    (3.8916678022926607, -2.772484153217685, 0.5060648178503393),
)
MARGIN = 1.02  # so that no singular value is above 1 after rounding


# The wrapped method would import torch's compiler in the first iteration, which takes a second.
ADAMW_STEP = inspect.unwrap(torch.optim.AdamW.step)


class MuonAdamW(torch.optim.AdamW):
    """Muon for the groups marked `is_muon`, if there are any, and AdamW for the others.

    Muon makes the momentum orthogonal and uses it as the step, so that every direction of a matrix
    moves at the same speed. A parameter may hold several matrices, one below the other; a group's
    `rows` gives the number of rows of each. The state is kept in the same way as AdamW's, so it is
    saved and restored in the same way. It exists from the start. `state` is given to share the
    state of another optimizer.
    """

    def __init__(
        self,
        groups: list[dict[str, Any]],
        state: dict[Tensor, dict[str, Tensor]] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(groups, **options)
        if state is None:
            for group in self.param_groups:
                moments = ("momentum",) if group.get("is_muon") else ("exp_avg", "exp_avg_sq")
                for p in group["params"]:
                    self.state[p]["step"] = torch.zeros((), device=p.device)
                    self.state[p].update({name: torch.zeros_like(p) for name in moments})
        else:
            self.state = state  # type: ignore[assignment]
        if any(group.get("is_muon") for group in self.param_groups):
            # The scaler must check the gradients itself and skip the update: Muon cannot skip it.
            self._step_supports_amp_scaling = False

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        assert closure is None
        for group in self.param_groups:
            if group.get("is_muon") and group["params"]:  # a part of a split optimizer may be empty
                self._muon(group)
        ADAMW_STEP(self)  # skips weights without a gradient
        return None

    def parameters(self) -> Iterator[Tensor]:
        return (p for group in self.param_groups for p in group["params"])

    def _muon(self, group: dict[str, Any]) -> None:
        weights: list[Tensor] = group["params"]
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in weights]
        # AdamW's code expects a step count.
        torch._foreach_add_([self.state[p]["step"] for p in weights], 1)
        for p in weights:
            p.grad = None
        momenta = [self.state[p]["momentum"] for p in weights]
        torch._foreach_lerp_(momenta, gradients, 1 - group["momentum"])
        torch._foreach_lerp_(gradients, momenta, group["momentum"])  # Nesterov momentum
        if group["weight_decay"]:
            torch._foreach_mul_(weights, 1 - group["lr"] * group["weight_decay"])
        self._move(group, gradients)

    def _move(self, group: dict[str, Any], gradients: list[Tensor]) -> None:
        """Make the gradients orthogonal, and move the weights against them."""
        maps, pulls = (maps_in(joined, group["rows"]) for joined in (group["params"], gradients))
        for numbers in chunks_by_height(pulls):
            directions = orthogonal([pulls[number] for number in numbers])
            move([maps[number] for number in numbers], directions, group["lr"])


def step_size(direction: Tensor) -> float:
    """Taller matrices get longer steps."""
    height, width = direction.shape
    return float(max(1.0, height / width) ** 0.5)


def move(weights: list[Tensor], directions: list[Tensor], lr: float) -> None:
    """Take a step in each direction, longer for a matrix that is higher than wide."""
    by_shape: dict[torch.Size, list[int]] = {}
    for number, weight in enumerate(weights):
        by_shape.setdefault(weight.shape, []).append(number)
    for numbers in by_shape.values():
        steps = [directions[number] for number in numbers]
        if steps[0].device.type != "cpu" and not steps[0].is_contiguous():
            # One kernel that transposes all of them, and then one that adds all of them.
            steps = list(torch.stack(steps).unbind())
        length = -lr * step_size(steps[0])
        torch._foreach_add_([weights[number] for number in numbers], steps, alpha=length)


def chunks_by_height(matrices: list[Tensor]) -> Iterator[list[int]]:
    """Numbers of matrices that are computed together: those with equal shorter sides, but not so
    many that their copies take much memory."""
    by_height: dict[int, list[int]] = {}
    for number, X in enumerate(matrices):
        by_height.setdefault(min(X.shape), []).append(number)
    for numbers in by_height.values():
        chunk: list[int] = []
        size = 0
        for number in numbers:
            size += matrices[number].numel()
            if chunk and size > MUON_CHUNK:
                yield chunk
                chunk, size = [], matrices[number].numel()
            chunk.append(number)
        yield chunk


def maps_in(joined: list[Tensor], rows: list[list[int]]) -> list[Tensor]:
    """Views of the single matrices that the parameters hold."""
    return [part for tensor, r in zip(joined, rows, strict=True) for part in torch.split(tensor, r)]


def orthogonal(matrices: list[Tensor]) -> list[Tensor]:
    """Make the matrices approximately orthogonal: singular values between 0.02 and 1 times the
    matrix's norm end up between 0.15 and 1.9.

    A Newton-Schulz step multiplies X by a polynomial of X Xᵀ. All these factors commute, so their
    product is computed from the small square matrix X Xᵀ, for all matrices of the same height at
    once. X itself is used only twice: to compute X Xᵀ, and to be multiplied by the product.
    """
    wide = [X if X.size(0) <= X.size(1) else X.T for X in matrices]
    by_shape: dict[torch.Size, list[int]] = {}
    for number, X in enumerate(wide):
        by_shape.setdefault(X.shape, []).append(number)
    result: dict[int, Tensor] = {}
    for height in {shape[0] for shape in by_shape}:
        groups = [numbers for shape, numbers in by_shape.items() if shape[0] == height]
        stacks = [torch.stack([wide[number] for number in numbers]) for numbers in groups]
        gram = torch.cat([X @ X.mT for X in stacks])
        size = gram.diagonal(dim1=1, dim2=2).sum(-1).mul_(MARGIN**2).clamp_min_(1e-30)
        size = size.view(-1, 1, 1)  # the squared norm of X: no singular value is above the norm
        factor = polynomial(gram.div_(size)).mul_(size.rsqrt_())
        factors = torch.split(factor, [len(numbers) for numbers in groups])
        for numbers, X, F in zip(groups, stacks, factors, strict=True):
            result |= zip(numbers, F @ X, strict=True)
    return [
        result[number] if X.size(0) <= X.size(1) else result[number].T
        for number, X in enumerate(matrices)
    ]


def polynomial(gram: Tensor) -> Tensor:
    """The product of the factors of all steps, for a batch of Gram matrices."""
    product, factor = None, None
    for a, b, c in STEPS:
        if factor is not None:  # the Gram matrix after the previous step
            gram = factor @ gram @ factor
        factor = torch.baddbmm(gram, gram, gram, beta=b, alpha=c)
        factor.diagonal(dim1=1, dim2=2).add_(a)
        product = factor if product is None else factor @ product
    assert product is not None
    return product
