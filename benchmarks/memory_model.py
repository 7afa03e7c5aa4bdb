"""The memory model beside what torch counts: one update of eighteen models, as a table.

    python benchmarks/memory_model.py [--only=tracked,compiled,resident]

`tracked`: torch's MemTracker on fake tensors, which allocates nothing, so that models of any size
can be measured anywhere. A GPU's path is followed by turning off the operations that only a CPU
uses. `compiled`: what the compiler keeps for the backward pass. `resident`: real updates in a
process of their own, and how much its memory grows.
"""

import argparse
import contextlib
import os
import resource
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from unittest import mock

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.attention import SDPBackend, sdpa_kernel

from stepglass.measure.memory_model import BYTES, Way, activation_bytes, memory_of
from stepglass.measure.shapes import GPTConfig, ModernConfig, Shape
from stepglass.models import cpu_ops
from stepglass.models.registry import model_of
from stepglass.settings.train import TrainConfig
from stepglass.train.optimizer import make_optimizer

if TYPE_CHECKING:
    from torch.distributed._tools.mem_tracker import MemTracker

CPU = torch.device("cpu")


@dataclass(frozen=True)
class Case:
    """An update of a model: its shape, and how it is computed."""

    shape: Shape
    batch_size: int
    dtype: str = "bfloat16"
    device_type: str = "cuda"
    optimizer: str = "adamw"
    accumulates: bool = True

    def __str__(self) -> str:
        s = self.shape
        size = f"{s.n_layer} x {s.n_embd}, vocabulary {s.vocab_size:,}"
        where = f"{self.dtype} {self.device_type} {self.optimizer}"
        more = ", dropout" * bool(s.dropout) + ", grouped heads" * (s.kv_heads != s.n_head)
        accumulated = ", accumulated" if self.accumulates else ""
        return f"{s.name} {size}{more} | {self.batch_size} x {s.block_size}{accumulated} | {where}"

    def predicted(self) -> int:
        """The model's number, without the context of a GPU, which the tracker does not see."""
        need = memory_of(
            self.shape,
            batch_size=self.batch_size,
            dtype=self.dtype,
            device_type=self.device_type,
            uses_muon=self.optimizer == "muon",
            accumulates=self.accumulates,
        )
        return need.total - need.context


def gpt2(vocab_size: int, block_size: int, n_layer: int, n_embd: int, **more: Any) -> Shape:
    sizes = {"vocab_size": vocab_size, "block_size": block_size, "n_layer": n_layer}
    return GPTConfig(**sizes, n_embd=n_embd, n_head=n_embd // 64, **more)


def modern(vocab_size: int, block_size: int, n_layer: int, n_embd: int, **more: Any) -> Shape:
    sizes = {"vocab_size": vocab_size, "block_size": block_size, "n_layer": n_layer}
    return ModernConfig(**sizes, n_embd=n_embd, n_head=n_embd // 64, **more)


CASES = [
    case
    for shape, optimizer in ((gpt2, "adamw"), (modern, "muon"))
    for case in (
        Case(shape(50_304, 1024, 12, 768), 12, optimizer=optimizer),
        Case(shape(50_304, 1024, 12, 768), 1, optimizer=optimizer),
        Case(shape(50_304, 512, 4, 256), 8, "float32", optimizer=optimizer, accumulates=False),
        Case(shape(4096, 512, 8, 512), 16, "float16", optimizer=optimizer),
        Case(shape(65, 256, 6, 384), 64, optimizer=optimizer, accumulates=False),
        Case(shape(65, 256, 6, 384), 64, "float32", "mps", optimizer, accumulates=False),
        Case(shape(65, 256, 6, 384), 16, "float32", "cpu", optimizer, accumulates=False),
        Case(shape(65, 1024, 4, 384, dropout=0.1), 4, "float32", "cpu", "adamw"),
        Case(shape(65, 64, 4, 128), 12, "float32", "cpu", optimizer, accumulates=False),
    )
]
RESIDENT = [
    Case(shape(50_304, 256, 4, 256), 8, "float32", "cpu", "adamw", accumulates=False)
    for shape in (gpt2, modern)
] + [
    Case(shape(65, 256, 6, 384), 32, "float32", "cpu", "adamw", accumulates=False)
    for shape in (gpt2, modern)
]


# -- one update ---------------------------------------------------------------------------------


def update(case: Case, tracker: "MemTracker | None" = None) -> None:
    """One update as `SingleEngine` computes it."""
    net = model_of(case.shape)
    cfg = TrainConfig(model=case.shape.name, optimizer=case.optimizer)
    optimizer = make_optimizer(net, cfg, CPU)
    if tracker is not None:
        states = [tensor for state in optimizer.state.values() for tensor in state.values()]
        tracker.track_external(net, optimizer, *states)
    dtype = getattr(torch, case.dtype)
    with tracker or contextlib.nullcontext():
        for _ in range(2 if case.accumulates else 1):
            idx = torch.zeros((case.batch_size, case.shape.block_size), dtype=torch.int64)
            with torch.autocast("cpu", dtype=dtype, enabled=dtype is not torch.float32):
                loss = net(idx, idx)
            loss.backward()
            del loss
            if tracker is not None:
                tracker.reset_mod_stats()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def never(x: torch.Tensor) -> bool:
    """Not a mock, which would keep all tensors that it is called with."""
    return False


@contextlib.contextmanager
def path_of(device_type: str) -> Iterator[None]:
    """Lets a CPU compute as the device does."""
    cpu_ops.causal_mask.cache_clear()  # a fake one is of no use to others
    with contextlib.ExitStack() as paths:
        if device_type != "cpu":
            paths.enter_context(mock.patch.object(cpu_ops, "uses_handwritten", new=never))
        if device_type == "mps":  # it has no other attention for training
            paths.enter_context(sdpa_kernel(SDPBackend.MATH))
        yield
    cpu_ops.causal_mask.cache_clear()


def tracked_peak(case: Case, is_fake: bool = True) -> int:
    """Bytes at the peak of an update, counted by torch."""
    from torch.distributed._tools.mem_tracker import MemTracker  # noqa: PLC0415 - takes seconds

    tracker = MemTracker()
    with path_of(case.device_type), FakeTensorMode() if is_fake else contextlib.nullcontext():
        update(case, tracker)
        peak: int = tracker.get_tracker_snapshot("peak")[CPU]["Total"]
        return peak


def resident_growth(case: Case) -> int:
    """How much the memory of a process grows while it does an update."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        torch.set_num_threads(1)
        update(Case(modern(65, 8, 1, 64), 1, "float32", "cpu"))  # loads the libraries
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        update(case)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        os.write(writing, str(grown * 1024).encode())
        os._exit(0)
    os.close(writing)
    with open(reading) as answer:
        grown = int(answer.read())
    os.waitpid(pid, 0)
    return grown


# -- what a compiled model keeps ----------------------------------------------------------------


def compiled_bytes(case: Case) -> int:
    """Bytes that the compiler's partition of a model keeps for the backward pass. Weights are left
    out, and views of the same memory count once."""
    from torch._dynamo.backends.common import aot_autograd  # noqa: PLC0415  takes seconds
    from torch._functorch.partitioners import min_cut_rematerialization_partition  # noqa: PLC0415
    from torch._inductor.decomposition import select_decomp_table  # noqa: PLC0415

    kept: dict[Any, int] = {}

    def forward(graph: Any, inputs: Any) -> Any:
        given = set(graph.graph.find_nodes(op="placeholder"))
        (out,) = graph.graph.find_nodes(op="output")
        for node in out.args[0][1:]:
            value = node.meta.get("val")
            while node not in given and node.target in VIEWS:
                node = node.args[0]
            if node not in given and isinstance(value, torch.Tensor) and has_tokens(value):
                whole = node.meta["val"]
                whole = value if not isinstance(whole, torch.Tensor) else whole
                kept[node, value.shape if whole is value else None] = whole.nbytes
        return graph

    def has_tokens(value: torch.Tensor) -> bool:
        return value.numel() % (case.batch_size * case.shape.block_size) == 0

    torch._dynamo.reset()
    backend = aot_autograd(
        fw_compiler=forward,
        bw_compiler=lambda graph, inputs: graph,
        partition_fn=min_cut_rematerialization_partition,
        decompositions=select_decomp_table(),
    )
    net = torch.compile(model_of(case.shape), fullgraph=True, backend=backend)
    idx = torch.zeros((case.batch_size, case.shape.block_size), dtype=torch.int64)
    dtype = getattr(torch, case.dtype)
    with torch.autocast("cpu", dtype=dtype, enabled=dtype is not torch.float32):
        net(idx, idx)
    return sum(kept.values())


VIEWS = {
    torch.ops.aten.view.default,
    torch.ops.aten.permute.default,
    torch.ops.aten.alias.default,
    torch.ops.aten.select.int,
    torch.ops.aten.unsqueeze.default,
    torch.ops.aten.squeeze.dim,
    torch.ops.aten._unsafe_view.default,
}


def row(name: object, counted: int, predicted: int) -> str:
    off = f"{100 * (predicted / counted - 1):+.1f} %"
    return f"| {name} | {counted / 2**20:,.0f} | {predicted / 2**20:,.0f} | {off} |"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="tracked,compiled,resident")
    only = parser.parse_args().only.split(",")
    print("| model | batch | computed in | torch, MiB | model, MiB | |")
    print("|---|---|---|---|---|---|")
    real = RESIDENT if "resident" in only else []
    for case in real:  # first: a fork begins with what this process has
        print(row(f"{case}, resident", resident_growth(case), case.predicted()), flush=True)
    for case in real:
        counted = tracked_peak(case, is_fake=False)
        print(row(f"{case}, real tensors", counted, case.predicted()), flush=True)
    for case in CASES if "tracked" in only else []:
        print(row(case, tracked_peak(case), case.predicted()), flush=True)
    for shape in (gpt2, modern) if "compiled" in only else ():
        for dtype in ("bfloat16", "float32"):
            case = Case(shape(65, 256, 4, 384), 16, dtype, accumulates=False)
            predicted = activation_bytes(case.shape, 16, Way(BYTES[dtype], "cuda", True))
            print(row(f"{case}, kept when compiled", compiled_bytes(case), predicted), flush=True)


if __name__ == "__main__":
    main()
