"""Muon for matrices whose rows are spread over several processes.

Momentum and weight decay work on each number by itself, so every process does that for its own
rows. Only a whole matrix can be made orthogonal. So the processes gather all matrices, each makes
some of them orthogonal, and they gather the results. The numbers are those of one process.
"""

from collections.abc import Mapping
from itertools import accumulate
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from stepglass.train.muon import MuonAdamW, maps_in, orthogonal, step_size


class ShardedMuonAdamW(MuonAdamW):
    """An optimizer for this process's rows of every parameter."""

    def __init__(self, whole: MuonAdamW, own: Mapping[nn.Parameter, nn.Parameter]) -> None:
        """`whole` is an optimizer for the whole parameters, `own` has this process's rows of
        each."""
        super().__init__(  # the groups hold all settings
            [group | {"params": [own[p] for p in group["params"]]} for group in whole.param_groups]
        )

    def _move(self, group: dict[str, Any], gradients: list[Tensor]) -> None:
        heights = [sum(rows) for rows in group["rows"]]
        maps = maps_in(gather_matrices(gradients, heights), group["rows"])
        directions = iter(orthogonal_together(maps))
        number, processes = dist.get_rank(), dist.get_world_size()
        for weight, rows in zip(group["params"], group["rows"], strict=True):
            each = rows_of_each(sum(rows), processes)
            first, last = sum(each[:number]), sum(each[: number + 1])
            for start, height in zip(accumulate(rows, initial=0), rows, strict=False):
                direction = next(directions)
                top, bottom = max(start, first), min(start + height, last)
                if top < bottom:
                    weight[top - first : bottom - first].add_(
                        direction[top - start : bottom - start],
                        alpha=-group["lr"] * step_size(direction),
                    )


def rows_of_each(rows: int, processes: int) -> list[int]:
    """How many rows of a tensor each process holds, as torch splits it.

    >>> rows_of_each(65, 2), rows_of_each(3, 4)
    ([33, 32], [1, 1, 1, 0])
    """
    most = -(-rows // processes)
    return [max(0, min(most, rows - number * most)) for number in range(processes)]


def gather_matrices(shares: list[Tensor], heights: list[int]) -> list[Tensor]:
    """The whole matrices, of which each process holds some rows."""
    processes = dist.get_world_size()
    shapes = [
        [(rows_of_each(height, processes)[number], share.size(1)) for number in range(processes)]
        for share, height in zip(shares, heights, strict=True)
    ]
    by_process = [[shape[number] for shape in shapes] for number in range(processes)]
    found = gather_all(shares, by_process, shares[0])
    return [torch.cat(parts) for parts in zip(*found, strict=True)]


def orthogonal_together(matrices: list[Tensor]) -> list[Tensor]:
    """Make the matrices orthogonal. Each process does some of them, about the same work each."""
    processes, number = dist.get_world_size(), dist.get_rank()
    owned: list[list[int]] = [[] for _ in range(processes)]
    work = [0] * processes
    for index in sorted(range(len(matrices)), key=lambda i: -matrices[i].numel()):
        least = work.index(min(work))
        owned[least].append(index)
        work[least] += matrices[index].numel()
    mine = orthogonal([matrices[index] for index in owned[number]])
    sizes = [(matrix.size(0), matrix.size(1)) for matrix in matrices]
    shapes = [[sizes[index] for index in indices] for indices in owned]
    found = gather_all(mine, shapes, matrices[0])
    result = {
        index: direction
        for indices, directions in zip(owned, found, strict=True)
        for index, direction in zip(indices, directions, strict=True)
    }
    return [result[index] for index in range(len(matrices))]


def gather_all(
    mine: list[Tensor], shapes: list[list[tuple[int, int]]], like: Tensor
) -> list[list[Tensor]]:
    """The matrices of all processes. `shapes` says which shapes each process has."""
    sizes = [[shape[0] * shape[1] for shape in of_one] for of_one in shapes]
    most = max(1, *(sum(of_one) for of_one in sizes))
    flat = like.new_zeros(most)
    if mine:
        joined = torch.cat([tensor.reshape(-1) for tensor in mine])
        flat[: len(joined)] = joined
    everything = [torch.empty_like(flat) for _ in shapes]
    dist.all_gather(everything, flat)
    return [
        [
            piece.view(shape)
            for piece, shape in zip(torch.split(part[: sum(size)], size), of_one, strict=True)
        ]
        for part, size, of_one in zip(everything, sizes, shapes, strict=True)
    ]
