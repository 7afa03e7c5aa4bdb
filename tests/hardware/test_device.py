"""Choices of device, format and compilation, on machines we do not have."""

import importlib.util
import shutil

import pytest
import torch

from stepglass.errors import DeviceError
from stepglass.hardware import choose
from stepglass.hardware.peak import Peak, find_peak, measured_again
from stepglass.settings.train import TrainConfig


class Machine:
    """A machine with some hardware, as torch would report it."""

    def __init__(self, monkeypatch, *, cuda=None, bf16=False, mps=False, triton=False, count=1):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda is not None)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda device=None: cuda)
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation=True: bf16)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: object() if triton else None)


def choices(**settings) -> tuple[str, str]:
    chosen = choose.pick_device(TrainConfig(**settings))
    return chosen.type, str(chosen.dtype).removeprefix("torch.")


@pytest.mark.parametrize(
    ("hardware", "expected"),
    [
        ({}, ("cpu", "float32")),
        ({"mps": True}, ("mps", "float32")),
        ({"cuda": "NVIDIA GeForce RTX 4070", "bf16": True}, ("cuda", "bfloat16")),
        ({"cuda": "Tesla V100-SXM2-16GB"}, ("cuda", "float16")),
    ],
)
def test_no_flags_work_on_every_machine_and_every_choice_has_a_reason(
    hardware, expected, monkeypatch
):
    Machine(monkeypatch, **hardware)
    assert choices() == expected
    reasons = choose.pick_device(TrainConfig()).reasons
    assert [reason.split(":")[0] for reason in reasons] == ["device", "dtype"]
    assert "asked for" not in " ".join(reasons)


def test_what_the_user_says_is_done(monkeypatch):
    Machine(monkeypatch, cuda="NVIDIA A100-SXM4-40GB", bf16=True, triton=True)
    assert choices(device="cpu", dtype="bfloat16") == ("cpu", "bfloat16")
    assert choose.pick_compile("cpu", True, 0.0) == (True, "asked for")


@pytest.mark.parametrize(
    ("kind", "hours", "has_compiler", "does_compile", "reason"),
    [
        ("cpu", 0.01, True, False, "compiling takes about 1m 00s and saves about 3.6s of a run of"),
        ("cpu", 1, True, True, "compiling takes about 1m 00s and saves about 6m 00s of a run of"),
        ("cpu", 1, False, False, "torch.compile needs a C++ compiler"),
        ("cuda", 1, True, True, "compiling takes about 1m 00s and saves about 21m 00s of a run"),
        ("cuda", 0.02, True, False, "compiling takes about 1m 00s and saves about 25.2s of a run"),
        ("cuda", 1, False, False, "torch.compile needs Triton"),
        ("mps", 1, True, False, "not tried on an Apple GPU"),
    ],
)
def test_compiling_must_pay_back_within_the_run(
    kind, hours, has_compiler, does_compile, reason, monkeypatch
):
    Machine(monkeypatch, triton=has_compiler)
    monkeypatch.setattr(shutil, "which", lambda name: name if has_compiler else None)
    chosen, said = choose.pick_compile(kind, "auto", hours * 3600)
    assert chosen is does_compile
    assert said.startswith(reason)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"device": "cuda"}, "--device=cuda: torch .* finds no such device here; try --device=cpu"),
        ({"device": "mps"}, "--device=mps: torch .* finds no such device here"),
        ({"device": "tpu"}, "--device expects auto, cpu, cuda, cuda:N or mps, found 'tpu'"),
        ({"device": "cpu:x"}, "--device expects auto, cpu, cuda, cuda:N or mps, found 'cpu:x'"),
    ],
)
def test_a_device_that_is_not_there_is_refused(settings, message, monkeypatch):
    Machine(monkeypatch)
    with pytest.raises(DeviceError, match=message):
        choices(**settings)


def test_a_gpu_that_is_named_becomes_the_current_one(monkeypatch):
    """Events, generators and waits follow the current device, not the model's."""
    Machine(monkeypatch, cuda="NVIDIA A100-SXM4-40GB", bf16=True, count=2)
    current = []
    monkeypatch.setattr(torch.cuda, "set_device", current.append)
    choices(device="cuda:1")
    assert current == [torch.device("cuda:1")]


def test_a_gpu_beyond_the_last_is_refused(monkeypatch):
    Machine(monkeypatch, cuda="NVIDIA A100-SXM4-40GB", bf16=True, count=2)
    with pytest.raises(DeviceError, match="--device=cuda:2: expected an index below 2, found 2"):
        choices(device="cuda:2")


def test_a_format_the_gpu_lacks_is_refused(monkeypatch):
    Machine(monkeypatch, cuda="Tesla V100-SXM2-16GB")
    with pytest.raises(DeviceError, match=r"V100.* has no bfloat16 units; use --dtype=float16"):
        choices(dtype="bfloat16")


def test_peak_of_an_unknown_gpu_is_unknown(monkeypatch):
    Machine(monkeypatch, cuda="NVIDIA GeForce GT 9999", bf16=True)
    peak = find_peak(choose.pick_device(TrainConfig()))
    assert peak.flops_per_s is None
    assert peak.source == "NVIDIA GeForce GT 9999 is not in the device table"


def test_peak_of_a_known_gpu_names_its_row(monkeypatch):
    Machine(monkeypatch, cuda="NVIDIA GeForce RTX 4070", bf16=True)
    peak = find_peak(choose.pick_device(TrainConfig()))
    assert peak.source == "device table: GeForce RTX 4070, bf16, 58.3 TFLOP/s"


def test_the_higher_of_two_measured_peaks_is_kept():
    chosen = choose.pick_device(TrainConfig(device="cpu"))
    assert measured_again(Peak(1.0, "low"), chosen).flops_per_s == 1e11
    assert measured_again(Peak(None, "unknown"), chosen).flops_per_s == 1e11
    high = Peak(1e30, "high")
    assert measured_again(high, chosen) is high
