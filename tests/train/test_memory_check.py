"""A run that does not fit into memory is refused, with the settings that do fit."""

import importlib.util
import re

import pytest
import torch

from stepglass.errors import DeviceError
from stepglass.hardware.device import Device
from stepglass.measure.shapes import shape_of
from stepglass.settings.train import TrainConfig
from stepglass.train.memory_check import need_of, rows_before_compiling
from stepglass.train.memory_errors import is_out_of_memory

GPT2 = {"model": "gpt2", "n_layer": 12, "n_head": 12, "n_embd": 768, "block_size": 1024}


class Card(Device):
    """A GPU that says how much memory is free."""

    free: int | None

    def available_bytes(self) -> int | None:
        return self.free


def card(free_gb: float | None) -> Device:
    device = Card(torch.device("cuda"), "a card", torch.bfloat16, 1, False, 1, ())
    object.__setattr__(device, "free", None if free_gb is None else int(free_gb * 1e9))
    return device


def refusal(free_gb: float, **settings) -> str:
    cfg = TrainConfig(**GPT2 | settings)
    with pytest.raises(DeviceError) as refused:
        rows_before_compiling(cfg, shape_of(cfg, 50_304), card(free_gb))
    return str(refused.value)


def test_what_fits_is_not_refused_nor_what_is_unknown():
    cfg = TrainConfig(**GPT2, batch_size=12, gradient_accumulation_steps=40)
    for free_gb in (8.0, None):
        rows_before_compiling(cfg, shape_of(cfg, 50_304), card(free_gb))


def test_a_refusal_says_need_split_found_and_what_fits():
    text = refusal(6.0, batch_size=12, gradient_accumulation_steps=40)
    assert "\n" not in text
    assert re.search(
        r"124,\d+,\d+ parameters with batch_size=12 and block_size=1024 needs at least 6\.\d GB "
        r"\(weights 667.\d MB, gradients 497.\d MB, optimizer 995.\d MB, activations 4\.\d GB, "
        r"logits \d+.\d MB\), found 6.0 GB; --batch_size=\d+ --gradient_accumulation_steps=\d+",
        text,
    ), text


@pytest.mark.parametrize(("batch_size", "steps"), [(12, 40), (7, 5), (48, 1)])
def test_the_settings_it_names_fit_and_have_as_many_tokens(batch_size, steps):
    text = refusal(5.0, batch_size=batch_size, gradient_accumulation_steps=steps)
    fitting = {key: int(value) for key, value in re.findall(r"--(\w+)=(\d+)", text)}
    assert fitting["batch_size"] < batch_size
    assert fitting["batch_size"] * fitting["gradient_accumulation_steps"] == batch_size * steps
    cfg = TrainConfig(**GPT2 | fitting)
    rows_before_compiling(cfg, shape_of(cfg, 50_304), card(5.0))


def test_a_model_that_fits_with_no_batch_says_what_else_to_lower():
    text = refusal(1.0, batch_size=12)
    assert text.endswith("no batch of this model fits: lower --n_layer, --n_embd or --block_size")


def test_updates_of_too_many_tokens_are_not_the_models_fault():
    text = refusal(8.0, batch_size=1000, gradient_accumulation_steps=1_000_000)
    assert text.endswith("lower --gradient_accumulation_steps or --batch_size")


MODERN = GPT2 | {"model": "modern", "batch_size": 12, "gradient_accumulation_steps": 40}


@pytest.fixture
def triton(monkeypatch):
    """Whether Triton is installed, without which nothing is compiled on a GPU."""
    real = importlib.util.find_spec

    def install(is_there):
        found = {"triton": "here" if is_there else None}
        monkeypatch.setattr(
            importlib.util, "find_spec", lambda name: found[name] if name in found else real(name)
        )

    install(True)
    return install


@pytest.mark.parametrize("compile", ["auto", True])
def test_a_batch_that_fits_only_compiled_is_warmed_up_with_fewer_rows(compile, triton):
    cfg = TrainConfig(**MODERN, compile=compile)
    shape = shape_of(cfg, 50_304)
    assert rows_before_compiling(cfg, shape, card(12.0)) == 12
    rows = rows_before_compiling(cfg, shape, card(8.8))
    assert 1 <= rows < 12
    assert need_of(cfg, shape, card(8.8), rows, accumulates=True).total < 8.8e9


def test_without_compiling_such_a_batch_is_refused(triton):
    smaller = "--batch_size=6 --gradient_accumulation_steps=80 fits"
    assert smaller in refusal(8.8, **MODERN, compile=False)
    triton(False)
    assert smaller in refusal(8.8, **MODERN)


def test_a_refusal_counts_what_the_compiled_model_needs(triton):
    text = refusal(6.0, **MODERN)
    assert "needs at least 7.5 GB" in text
    assert "--batch_size=5 --gradient_accumulation_steps=96 fits" in text


def cpu(free_gb: float, threads: int = 1) -> Device:
    device = Card(torch.device("cpu"), "a CPU", torch.float32, threads, False, 1, ())
    object.__setattr__(device, "free", int(free_gb * 1e9))
    return device


def test_a_run_on_a_cpu_has_to_leave_room_for_what_its_heap_grows_by():
    cfg = TrainConfig(**GPT2, batch_size=4, gradient_accumulation_steps=1)
    shape = shape_of(cfg, 65)
    need = need_of(cfg, shape, cpu(64.0), 4, accumulates=False).total / 1e9
    assert rows_before_compiling(cfg, shape, cpu(need / 0.8)) == 4
    with pytest.raises(DeviceError, match="85% of what is free; --batch_size="):
        rows_before_compiling(cfg, shape, cpu(need / 0.9))


def test_every_replica_on_a_cpu_has_gradients_of_its_own():
    cfg = TrainConfig(**GPT2, batch_size=4, gradient_accumulation_steps=1)
    shape = shape_of(cfg, 65)
    one, two = (need_of(cfg, shape, cpu(64.0, threads), 4, accumulates=False) for threads in (1, 2))
    assert two.gradients - one.gradients == 4 * shape.num_params()


@pytest.mark.parametrize(
    "message",
    [
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "Invalid buffer size: 494.00 GiB",
        "MPS backend out of memory (MPS allocated: 18.00 GB)",
    ],
)
def test_every_way_to_say_that_memory_is_short_is_understood(message):
    assert is_out_of_memory(RuntimeError(message))
    assert not is_out_of_memory(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
