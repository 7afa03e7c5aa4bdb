"""The training step never waits for the device, as far as this can be seen without one.

The step runs on fake tensors, which have shapes but no contents. Whatever needs a number on the
host (`.item()`, `.cpu()`, `nonzero`, `if tensor:`) cannot be answered and raises: on a GPU it would
stop the queue.
"""

import contextlib
from unittest import mock

import pytest
import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode

from stepglass.hardware.device import Device
from stepglass.measure import memory_model
from stepglass.measure.clock import PhaseClock
from stepglass.measure.shapes import GPTConfig, ModernConfig
from stepglass.models import cpu_ops
from stepglass.models.registry import model_of
from stepglass.settings.train import TrainConfig
from stepglass.train.engines.single import SingleEngine
from stepglass.train.optimizer import make_optimizer, set_lr

CPU = torch.device("cpu")
SIZES = {"vocab_size": 300, "block_size": 16, "n_layer": 2, "n_head": 2, "n_embd": 32}
SHAPES = {
    "gpt2": GPTConfig(**SIZES, bias=True, dropout=0.1),
    "modern": ModernConfig(**SIZES),
    "modern, grouped, tied": ModernConfig(**SIZES, n_kv_head=1, tie_weights=True, dropout=0.1),
}


def never(x):
    return False


@contextlib.contextmanager
def on_fake_tensors():
    """A GPU's path through the model, its loss in chunks, and no contents."""
    with (
        mock.patch.object(cpu_ops, "uses_handwritten", new=never),
        mock.patch.object(memory_model, "CHUNK_LOGITS", 4000),
        FakeTensorMode(),
    ):
        yield


def new_engine(shape, dtype=torch.bfloat16) -> SingleEngine:
    cfg = TrainConfig(model=shape.name)
    model = model_of(shape)
    device = Device(CPU, "a fake", dtype, threads=1, compile=False, replicas=1, reasons=())
    return SingleEngine(model, make_optimizer(model, cfg, CPU), device, PhaseClock())


def step(engine: SingleEngine) -> torch.Tensor:
    """What the loop does in an iteration, up to the loss that is read late."""
    idx = torch.zeros((4, 16), dtype=torch.int64)
    loss = engine.backward([(idx, idx), (idx, idx)], 0)
    set_lr(engine.optimizer, 1e-3, TrainConfig())
    norm = engine.update(grad_clip=1.0)
    return torch.stack((loss, norm))


@pytest.mark.parametrize(
    ("name", "dtype"),
    [*((name, torch.bfloat16) for name in SHAPES), ("modern", torch.float32)],
)
def test_an_iteration_needs_no_number_on_the_host(name, dtype):
    with on_fake_tensors():
        engine = new_engine(SHAPES[name], dtype)
        engine.rehearse_update(grad_clip=1.0)
        assert step(engine).shape == (2,)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_a_batch_of_an_evaluation_needs_no_number_on_the_host(shape):
    with on_fake_tensors(), torch.inference_mode():
        idx = torch.zeros((4, 16), dtype=torch.int64)
        assert new_engine(shape).score(idx, idx).shape == (4,)


def test_float16_without_muon_needs_none_either():
    with on_fake_tensors():
        step(new_engine(SHAPES["gpt2"], torch.float16))


def test_float16_with_muon_asks_once_whether_the_gradients_are_finite():
    """Known: Muon cannot skip an update on the device, so the loss scaler asks."""
    with on_fake_tensors(), pytest.raises(DataDependentOutputException, match="local_scalar"):
        step(new_engine(SHAPES["modern"], torch.float16))


@pytest.mark.parametrize("wait", [torch.Tensor.item, torch.Tensor.nonzero, bool])
def test_a_wait_that_was_put_into_the_step_would_be_found(wait):
    with on_fake_tensors(), pytest.raises(Exception, match=r"local_scalar|nonzero"):
        wait(step(new_engine(SHAPES["modern"]))[0])


# -- few kernels --------------------------------------------------------------------------------


class Kernels(torch.utils._python_dispatch.TorchDispatchMode):
    """Counts the operations that are no views: on a GPU, each is a kernel or a few."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        is_view = any(r.alias_info and not r.alias_info.is_write for r in func._schema.returns)
        if func.namespace == "aten" and not is_view:
            self.names.append(func.__name__)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("shape", [GPTConfig, ModernConfig])
def test_the_number_of_kernels_of_an_update_does_not_grow_with_the_model(shape, monkeypatch):
    for name in ("uniform_", "normal_"):  # torch for a CPU cannot draw numbers on a fake GPU
        monkeypatch.setattr(torch.Tensor, name, lambda tensor, *args, **options: tensor)
    counts = []
    for n_layer in (2, 6):
        with on_fake_tensors(), torch.device("cuda"):
            engine = new_engine(shape(**SIZES | {"n_layer": n_layer}))
            for parameter in engine.model.parameters():
                parameter.grad = torch.zeros_like(parameter)
            with Kernels() as kernels:
                engine.optimizer.step()
        counts.append(len(kernels.names))
    assert 2 <= counts[0] == counts[1] < 60


# -- half precision stays half ------------------------------------------------------------------


class Float32Tensors(torch.utils._python_dispatch.TorchDispatchMode):
    """Notes the sizes of float32 tensors that operations make."""

    def __init__(self):
        super().__init__()
        self.made = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        leaves = torch.utils._pytree.tree_leaves(out)
        self.made += [t.numel() for t in leaves if torch.is_tensor(t) and t.dtype is torch.float32]
        return out


def test_the_norm_and_the_rotation_of_heads_make_no_float32_tensor_of_their_size():
    B, T, H, D = 2, 16, 4, 8
    with on_fake_tensors(), torch.autocast("cpu", dtype=torch.bfloat16):
        x = torch.zeros(B, T, H, D, dtype=torch.bfloat16)
        weight, cos, sin = torch.ones(H, D), torch.ones(T, 1, D), torch.ones(T, 1, D)
        with Float32Tensors() as of_norm:  # it computes in float32 inside, which a kernel hides
            cpu_ops.plain_rms_norm(x, None)
        with Float32Tensors() as found:
            out = cpu_ops.normed_and_rotated(x, weight, cos, sin)
    assert out.dtype is torch.bfloat16
    assert found.made.count(x.numel()) == of_norm.made.count(x.numel())
