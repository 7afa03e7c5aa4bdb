"""Compiles the training step for GPUs that are not here, and checks what comes out.

    make gpu-proof        # its own environment, with PyTorch for CUDA; no GPU is needed

The models are traced by torch.compile as in a run, split into forward and backward, and compiled by
Inductor and Triton for four GPUs. Muon's arithmetic is compiled too; AdamW is one of PyTorch's own
kernels. Nothing is executed. Differences from a run on a GPU: autocast follows a CPU's rules, and
the flash kernel for attention is put in by hand, after its conditions have been checked.
"""

import copy
import math
import re
import sys
import time
from dataclasses import dataclass
from typing import Any

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch._inductor.decomposition import select_decomp_table
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional as F

from faked_gpu import GPUS, compile_graph, faked, moved_to_gpu
from stepglass.measure.memory_model import Way, activation_bytes, loss_bytes, params_in_blocks
from stepglass.measure.shapes import GPTConfig, ModernConfig, Shape
from stepglass.models import cpu_ops
from stepglass.models.model import Model
from stepglass.models.registry import model_of
from stepglass.settings.train import TrainConfig
from stepglass.train.muon import orthogonal
from stepglass.train.optimizer import make_optimizer

BATCH, SIZES = 2, {"vocab_size": 50_304, "block_size": 1024, "n_head": 12, "n_embd": 768}
SHAPES = {
    "gpt2": GPTConfig(**SIZES, n_layer=1),
    "modern": ModernConfig(**SIZES, n_layer=1),
}
# What came out when this was written, and a little room.
MOST_LAUNCHES = {"gpt2": 75, "modern": 95}
SIZES_OF = {"torch.float32": 4, "torch.bfloat16": 2, "torch.int64": 8, "torch.bool": 1}
ALLOCATED = re.compile(r"(\w+) = empty_strided_cuda\(\(([\d, ]*)\), \([\d, ]*\), (torch\.\w+)\)")
RENAMED = re.compile(r"(\w+) = (?:reinterpret_tensor\((\w+),.*\)|(\w+)); del (\w+)")
OF_FLASH = re.compile(r"assert_size_stride\((\w+), \(([\d, ]+)\), .*flash_attention")
DELETED = re.compile(r"\bdel ((?:\w+, )*\w+)")


class FlashFunctional:
    """torch.nn.functional with PyTorch's flash kernel for attention."""

    def __getattr__(self, name: str) -> Any:
        return getattr(F, name)

    @staticmethod
    def scaled_dot_product_attention(
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        enable_gqa: bool = False,
    ) -> torch.Tensor:
        """PyTorch takes this kernel under these conditions, on every GPU since sm_80."""
        for part in (q, k, v):
            assert part.dtype in (torch.bfloat16, torch.float16)
            assert part.size(-1) % 8 == 0
            assert part.size(-1) <= 256
            assert part.stride(-1) == 1
        assert is_causal
        assert q.size(2) == k.size(2)  # otherwise its mask would be aligned differently
        return torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, dropout_p, is_causal)[0]


class Captured(Exception):
    """Ends a compilation that has given us its graphs."""


def traced(model: Model) -> tuple[torch.fx.GraphModule, torch.fx.GraphModule]:
    """The forward and the backward graph, as torch.compile splits them."""
    found: list[Any] = []

    def capture(joint: Any, inputs: Any, **options: Any) -> Any:
        options["compiler"] = "inductor"
        found.extend(min_cut_rematerialization_partition(joint, inputs, **options))
        raise Captured

    backend = aot_autograd(
        fw_compiler=lambda graph, inputs: graph,
        bw_compiler=lambda graph, inputs: graph,
        partition_fn=capture,
        decompositions=select_decomp_table(),
    )
    torch._dynamo.reset()
    net = torch.compile(model, fullgraph=True, dynamic=False, backend=backend)
    idx = torch.zeros((BATCH, model.config.block_size), dtype=torch.int64)
    try:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            net(idx, idx)
    except Exception:
        if not found:
            raise
    return found[0], found[1]


def traced_muon(model: Model) -> torch.fx.GraphModule:
    """What Muon computes from the gradients of a model."""
    cfg = TrainConfig(model="modern")
    group = make_optimizer(model, cfg, torch.device("cpu")).param_groups[-1]
    matrices = [
        part
        for p, rows in zip(group["params"], group["rows"], strict=True)
        for part in p.detach().split(rows)
    ]

    def directions(*gradients: torch.Tensor) -> list[torch.Tensor]:
        return orthogonal(list(gradients))

    pure = torch.func.functionalize(directions, remove="mutations_and_views")
    graph = make_fx(pure, select_decomp_table(), tracing_mode="fake")(*matrices)
    return graph


# -- what the code says -------------------------------------------------------------------------


@dataclass
class Plan:
    """What a compiled graph launches and allocates."""

    launches: int
    buffers: list[tuple[list[int], str]]  # shape and format of every buffer
    peak_bytes: int
    kept_bytes: int  # at its end


def planned(code: str, given: dict[str, int]) -> Plan:
    """Follow the generated code line by line. `given` are bytes of inputs that it may free."""
    body = code[code.index("def call(") :]
    live, peak, launches = dict(given), 0, 0
    buffers = []
    for line in body.splitlines():
        if line.strip().startswith("return "):
            break
        launches += bool(re.search(r"\.run\(|extern_kernels\.|= torch\.ops\.", line))
        if made := ALLOCATED.search(line):
            sizes = numbers(made[2])
            live[made[1]] = SIZES_OF[made[3]] * math.prod(sizes)
            buffers.append((sizes, made[3]))
        elif made := OF_FLASH.search(line):
            sizes = numbers(made[2])
            live[made[1]] = math.prod(sizes) * (2 if len(sizes) == 4 else 4)
        elif made := RENAMED.search(line):
            if made[4] in live:
                live[made[1]] = live.pop(made[4])
            continue
        peak = max(peak, sum(live.values()))
        if deleted := DELETED.search(line):
            for name in deleted[1].split(", "):
                live.pop(name, None)
    return Plan(launches, buffers, peak, sum(live.values()))


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part.strip()]


def wide_float32(plan: Plan, shape: Shape) -> list[list[int]]:
    """Buffers in float32 that have the size of heads or of the MLP's inside. The residual stream
    (as wide as the model) and one chunk of logits are meant to be float32."""
    tokens = BATCH * shape.block_size
    wide = {tokens * (shape.n_head + shape.kv_heads) * shape.head_dim}
    wide |= {tokens * (shape.n_head + 2 * shape.kv_heads) * shape.head_dim}
    inner = shape.inner if isinstance(shape, ModernConfig) else 4 * shape.n_embd
    wide |= {tokens * inner, 2 * tokens * inner}
    return [
        sizes
        for sizes, dtype in plan.buffers
        if dtype == "torch.float32"
        and math.prod(sizes) in wide
        and (tokens in sizes or sizes[:2] == [BATCH, shape.block_size])  # not a weight's gradient
    ]


# -- the proof ----------------------------------------------------------------------------------


def prove(name: str, gpu_name: str, graphs: Any) -> str:
    """Compile a model's step for a GPU, check it, and return a row of the table."""
    shape, gpu = SHAPES[name], GPUS[gpu_name]
    began = time.perf_counter()
    forward, backward = copy.deepcopy(graphs)
    saved = {
        node.name: node.meta["val"].nbytes
        for node in backward.graph.find_nodes(op="placeholder")
        if isinstance(node.meta.get("val"), torch.Tensor) and not node.name.startswith("primals")
    }
    inputs = [moved_to_gpu(graph) for graph in (forward, backward)]
    with faked(gpu) as binaries:
        codes = [compile_graph(*pair) for pair in zip((forward, backward), inputs, strict=True)]
    plans = [planned(codes[0], {}), planned(codes[1], saved)]
    launches = sum(plan.launches for plan in plans)
    check(bool(binaries), "no kernel was compiled")
    for kernel, binary in binaries.items():
        check(binary.code[:4] == b"\x7fELF", f"{kernel}: no machine code")
        check(binary.target == f"sm_{gpu.arch}", f"{kernel}: for {binary.target}")
    check(launches <= MOST_LAUNCHES[name], f"{launches} launches")
    for plan in plans:
        check(not wide_float32(plan, shape), f"float32 buffers: {wide_float32(plan, shape)}")
    for code, op in zip(
        codes, ("flash_attention.default", "flash_attention_backward"), strict=True
    ):
        check(op in code, f"no {op}")
    way = Way(2, "cuda", does_compile=True)
    expected = activation_bytes(shape, BATCH, way) + 2 * params_in_blocks(shape)
    expected += loss_bytes(shape, BATCH * shape.block_size, way)
    off = plans[0].peak_bytes / expected - 1
    check(abs(off) < 0.15, f"forward plans {plans[0].peak_bytes:,} bytes, expected {expected:,}")
    most = expected + 4 * shape.num_params()  # and all gradients
    check(plans[1].peak_bytes < most, f"backward plans {plans[1].peak_bytes:,} bytes of {most:,}")
    peaks = " / ".join(f"{plan.peak_bytes / 2**20:,.0f}" for plan in plans)
    return (
        f"| {name} | {gpu_name} (sm_{gpu.arch}) | {len(binaries)} | {launches} | {peaks} | "
        f"{expected / 2**20:,.0f} | {time.perf_counter() - began:.0f} s |"
    )


def prove_muon(gpu_name: str, graph: torch.fx.GraphModule) -> str:
    gpu = GPUS[gpu_name]
    began = time.perf_counter()
    graph = copy.deepcopy(graph)
    inputs = moved_to_gpu(graph)
    with faked(gpu) as binaries:
        code = compile_graph(graph, inputs)
    plan = planned(code, {})
    check(bool(binaries), "no kernel was compiled")
    check(all(binary.code[:4] == b"\x7fELF" for binary in binaries.values()), "no machine code")
    check({dtype for _, dtype in plan.buffers} == {"torch.float32"}, "Muon must be in float32")
    return (
        f"| Muon | {gpu_name} (sm_{gpu.arch}) | {len(binaries)} | {plan.launches} | "
        f"{plan.peak_bytes / 2**20:,.0f} | | {time.perf_counter() - began:.0f} s |"
    )


def check(holds: bool, otherwise: str) -> None:
    if not holds:
        raise SystemExit(f"error: {otherwise}")


def main() -> None:
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")  # as a run on CUDA does
    cpu_ops.F = FlashFunctional()
    shipped = torch._C._cuda_getArchFlags().split()
    print(f"torch {torch.__version__} has kernels for {', '.join(shipped)}")
    for gpu in GPUS.values():  # those of sm_86 also run on sm_89
        check(bool({f"sm_{gpu.arch}", f"sm_{gpu.capability[0]}6"} & set(shipped)), gpu.name)
    only = sys.argv[1:]
    graphs = {name: traced(model_of(shape)) for name, shape in SHAPES.items()}
    muon = traced_muon(model_of(SHAPES["modern"]))
    print("| what | for | kernels | launches | planned peak, MiB | model, MiB | took |")
    print("|---|---|---|---|---|---|---|")
    for gpu_name in only or GPUS:
        for name, pair in graphs.items():
            print(prove(name, gpu_name, pair), flush=True)
        print(prove_muon(gpu_name, muon), flush=True)
    print("all compiled; nothing was executed")


if __name__ == "__main__":
    main()
