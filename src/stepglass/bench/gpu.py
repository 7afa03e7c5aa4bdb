"""Benchmark of a GPU: our update against nanoGPT's model in a plain compiled loop, as one block of
lines to send to the project. It has never run on a GPU: docs/unverified.md."""

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from stepglass import units
from stepglass.bench.loops import PlainGPT, Size, TrainerLoop, build_loop
from stepglass.errors import DeviceError
from stepglass.hardware import choose
from stepglass.hardware.device import Device
from stepglass.measure.ledger import PACE_TEXTS
from stepglass.measure.pace_maker import pace_maker
from stepglass.measure.shapes import GPTConfig

Say = Callable[[str], None]

GPT2 = {"n_layer": 12, "n_head": 12, "n_embd": 768, "block_size": 1024, "batch_size": 8}
WARM_UP = 5


def measure_gpu(say: Say, steps: int) -> dict[str, Any]:
    """Measure the GPU of this machine."""
    kind, _ = choose.pick_type("auto")
    if kind == "cpu":
        raise DeviceError(
            f"bench gpu: expected a GPU that torch {torch.__version__} can use, found none; try "
            "stepglass bench speed"
        )
    return measure(say, GPT2 | {"device": kind, "compile": kind == "cuda", "dtype": "auto"}, steps)


def measure(say: Say, size: Size, steps: int) -> dict[str, Any]:
    """Run both loops, and say what a stranger needs to know about them."""
    with tempfile.TemporaryDirectory() as name:
        home = Path.cwd()
        os.chdir(name)
        try:
            ours = build_loop("ours", size, Path(name))
            assert isinstance(ours, TrainerLoop)
            try:
                result = of_trainer(ours, steps)
                device = ours.training.run.device
            finally:
                ours.close()
            plain_ms = plain_update_ms(size, device, steps)
        finally:
            os.chdir(home)
    result["plain_ms"] = plain_ms
    for line in block(result):
        say(line)
    return result


def of_trainer(ours: TrainerLoop, steps: int) -> dict[str, Any]:
    run = ours.training.run
    ours.run(WARM_UP)
    run.device.drain()
    began = time.perf_counter()
    highest = ours.run(steps)
    run.device.drain()
    took_ms = 1000 * (time.perf_counter() - began) / steps
    ours.training.iterations.drain()
    total = run.clock.total()
    on_device = total.device_phases
    has_pace = on_device is not None and total.behind is not None
    return {
        "device": run.device.name,
        "dtype": str(run.device.dtype).removeprefix("torch."),
        "compile": run.device.compile,
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "ours_ms": took_ms,
        "best_mfu": highest or None,
        "peak_bytes": torch.cuda.max_memory_allocated() if run.device.type == "cuda" else None,
        "behind_share": total.behind,
        "pace": pace_maker(on_device, total.behind or 0.0) if has_pace and on_device else None,
    }


def plain_update_ms(size: Size, device: Device, steps: int) -> float:
    """nanoGPT's model and optimizer, compiled if ours is, on random tokens that are there."""
    sizes = {key: size[key] for key in ("block_size", "n_layer", "n_head", "n_embd")}
    model: nn.Module = PlainGPT(GPTConfig(vocab_size=26, **sizes)).to(device.torch_device)
    fused = device.type == "cuda"
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.99), fused=fused)
    forward = torch.compile(model) if device.compile else model
    shape = (size["batch_size"], size["block_size"])
    idx = torch.randint(26, shape, device=device.torch_device)

    def update() -> None:
        with device.autocast():
            loss = forward(idx, idx)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    for _ in range(WARM_UP):
        update()
    device.drain()
    began = time.perf_counter()
    for _ in range(steps):
        update()
    device.drain()
    return 1000 * (time.perf_counter() - began) / steps


def block(found: dict[str, Any]) -> list[str]:
    """The lines to send us."""
    pace, peak, mfu = found["pace"], found["peak_bytes"], found["best_mfu"]
    return [
        "--- please send us these lines ---",
        f"device: {found['device']}, {found['dtype']}, compile {found['compile']}",
        f"torch {found['torch']}, CUDA {found['cuda'] or units.UNKNOWN}",
        f"ours: {found['ours_ms']:.2f} ms per update; plain loop: {found['plain_ms']:.2f} ms",
        f"MFU at best: {units.percent(mfu, 1) if mfu else units.UNKNOWN}",
        f"peak memory: {units.size(peak) if peak is not None else units.UNKNOWN}",
        f"pace: {PACE_TEXTS[pace] if pace else units.UNKNOWN}",
        "--- end ---",
    ]
