"""Lets PyTorch's compiler and Triton believe that a GPU is here, so that they compile for it.

    with faked(GPUS["RTX 4090"]) as binaries:
        compiled = compile_graph(graph)          # Inductor's code; nothing can be run
    binaries["triton_poi_fused_add_0"]           # machine code for that GPU

Only the questions about the device are answered falsely. Inductor, Triton and NVIDIA's assembler,
which is part of Triton, are the real ones.
"""

import contextlib
import re
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from unittest import mock

import torch
import torch._dynamo.device_interface as interfaces
import torch.utils._triton as triton_questions
import triton
from torch._inductor import async_compile, codecache, compile_fx, config
from torch._inductor.runtime import hints, triton_helpers
from torch._inductor.virtualized import V
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.passes.fake_tensor_prop import FakeTensorProp
from triton.backends.compiler import GPUTarget

CUDA = torch.device("cuda:0")


@dataclass(frozen=True)
class GPU:
    """What a compiler asks about a GPU. Approximate: they only decide which code is generated."""

    name: str
    capability: tuple[int, int]
    processors: int
    threads_per_processor: int
    shared_kib: int  # of a block
    memory_gib: int

    @property
    def arch(self) -> int:
        return 10 * self.capability[0] + self.capability[1]

    def properties(self) -> types.SimpleNamespace:
        return types.SimpleNamespace(
            name=self.name,
            major=self.capability[0],
            minor=self.capability[1],
            multi_processor_count=self.processors,
            regs_per_multiprocessor=65536,
            max_threads_per_multi_processor=self.threads_per_processor,
            max_threads_per_block=1024,
            warp_size=32,
            total_memory=self.memory_gib << 30,
            shared_memory_per_block=48 << 10,
            shared_memory_per_block_optin=self.shared_kib << 10,
            shared_memory_per_multiprocessor=(self.shared_kib + 1) << 10,
            L2_cache_size=32 << 20,
            is_integrated=False,
        )


GPUS = {
    "RTX 3060": GPU("NVIDIA GeForce RTX 3060", (8, 6), 28, 1536, 99, 12),
    "RTX 4090": GPU("NVIDIA GeForce RTX 4090", (8, 9), 128, 1536, 99, 24),
    "H100": GPU("NVIDIA H100 80GB HBM3", (9, 0), 132, 2048, 227, 80),
    "RTX 5090": GPU("NVIDIA GeForce RTX 5090", (12, 0), 170, 1536, 99, 32),
}


@dataclass(frozen=True)
class Binary:
    """A compiled kernel."""

    target: str  # such as sm_89
    code: bytes


class FakeDriver:
    """Stands for Triton's driver, which would load code onto a GPU."""

    def __init__(self, gpu: GPU) -> None:
        self._gpu = gpu
        known = {"max_shared_mem": gpu.shared_kib << 10, "multiprocessor_count": gpu.processors}
        self.utils = types.SimpleNamespace(get_device_properties=lambda device: known)

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", self._gpu.arch, 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int = 0) -> int:
        return 0

    def get_device_interface(self) -> Any:
        return torch.cuda

    def get_active_torch_device(self) -> torch.device:
        return CUDA


class Unlaunchable:
    """A compiled kernel. It can be listed, but there is nothing to launch it on."""

    def run(self, *args: Any, **options: Any) -> None:
        raise AssertionError("nothing is executed in this proof")


def answers(gpu: GPU) -> list[tuple[Any, str, Any]]:
    """The questions about the device, and what is answered."""
    properties = gpu.properties()
    of_interface = {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "get_device_properties": lambda device=None: properties,
        "get_compute_capability": lambda device=None: gpu.arch,
        "synchronize": lambda device=None: None,
        "set_device": lambda device=None: None,
        "exchange_device": lambda device=None: 0,
        "maybe_exchange_device": lambda device=None: 0,
        "get_raw_stream": lambda device=None: 0,
    }
    of_cuda = {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "get_device_properties": lambda device=None: properties,
        "get_device_capability": lambda device=None: gpu.capability,
        "get_device_name": lambda device=None: gpu.name,
        "mem_get_info": lambda device=None: (gpu.memory_gib << 30, gpu.memory_gib << 30),
        "is_bf16_supported": lambda including_emulation=True: True,
        "get_rng_state": lambda device=None: torch.zeros(16, dtype=torch.uint8),
        "set_rng_state": lambda *state: None,
        "synchronize": lambda device=None: None,
        "set_device": lambda device: None,
        "_lazy_init": lambda: None,
        "_exchange_device": lambda device: 0,
        "_maybe_exchange_device": lambda device: 0,
    }
    interface = interfaces.CudaInterface
    return [
        *((torch.cuda, name, answer) for name, answer in of_cuda.items()),
        *((interface, name, staticmethod(answer)) for name, answer in of_interface.items()),
        (interface.Worker, "get_device_properties", staticmethod(lambda device=None: properties)),
        (interface.Worker, "current_device", staticmethod(lambda: 0)),
        (torch._C, "_cuda_getCurrentRawStream", lambda device: 0),
    ]


@contextlib.contextmanager
def faked(gpu: GPU) -> Iterator[dict[str, Binary]]:
    """Fake a GPU. Yields the machine code of each kernel that is compiled meanwhile."""
    binaries: dict[str, Binary] = {}
    real_compile = triton.compile

    def compile_kernel(self: Any, name: str, source: str, device_str: str = "cuda") -> Unlaunchable:
        made = []
        kernel = getattr(codecache.PyCodeCache.load(source), name)
        with mock.patch.object(
            triton,
            "compile",
            side_effect=lambda *args, **options: (
                made.append(real_compile(*args, **options)) or made[-1]
            ),
        ):
            kernel._precompile_config(kernel.configs[0])  # the others differ in sizes of blocks
        target = re.search(r"^\.target (sm_\d+)", made[0].asm["ptx"], re.MULTILINE)
        binaries[name] = Binary(target[1] if target else "", made[0].asm["cubin"])
        return Unlaunchable()

    def use_fake_driver() -> None:
        triton.runtime.driver.set_active(FakeDriver(gpu))

    with contextlib.ExitStack() as patches:
        for place, name, answer in answers(gpu):
            patches.enter_context(mock.patch.object(place, name, answer))
        patches.enter_context(
            mock.patch.object(triton_helpers, "set_driver_to_gpu", use_fake_driver)
        )
        patches.enter_context(
            mock.patch.object(async_compile.AsyncCompile, "triton", compile_kernel)
        )
        patches.enter_context(config.patch(compile_threads=1, force_disable_caches=True))
        use_fake_driver()
        forget_answers()
        yield binaries
    forget_answers()


def forget_answers() -> None:
    """Inductor remembers what it has asked."""
    hints.DeviceProperties.create.cache_clear()
    for question in vars(triton_questions).values():
        if hasattr(question, "cache_clear"):
            question.cache_clear()


def moved_to_gpu(graph: torch.fx.GraphModule) -> list[Any]:
    """Rewrite a graph that was traced on a CPU, and return fake inputs on a GPU."""
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    inputs = []
    for node in graph.graph.nodes:
        value = node.meta.pop("val", None)
        if node.op == "placeholder":
            if isinstance(value, torch.Tensor):
                shape, strides = tuple(value.shape), value.stride()
                with mode:
                    value = torch.empty_strided(shape, strides, dtype=value.dtype, device=CUDA)
            inputs.append(value)
        if "device" in node.kwargs:
            node.kwargs = node.kwargs | {"device": CUDA}
    graph.recompile()
    FakeTensorProp(graph, mode=mode).propagate_dont_convert_inputs(*inputs)
    return inputs


def compile_graph(graph: torch.fx.GraphModule, inputs: list[Any]) -> str:
    """Inductor's code for a graph. Call it while a GPU is faked."""
    mode = next(x.fake_mode for x in inputs if hasattr(x, "fake_mode"))
    with V.set_fake_mode(mode):
        return compile_fx.compile_fx_inner(graph, inputs, cudagraphs=False).source_code
