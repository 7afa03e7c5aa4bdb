"""Benchmark of a GPU: both models at GPT-2's size, beside nanoGPT's model in a plain compiled loop,
as one block of lines to send to the project. It has never run on a GPU: docs/unverified.md."""

import gc
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from torch import nn

from stepglass import units
from stepglass.bench.loops import PlainGPT, Size, TrainerLoop, new_training
from stepglass.data.description import GPT2_PADDED_VOCAB
from stepglass.errors import DeviceError
from stepglass.hardware import choose
from stepglass.hardware.device import Device
from stepglass.measure import mfu
from stepglass.measure.clock import STEP_PHASES, step_time
from stepglass.measure.ledger import PACE_TEXTS
from stepglass.measure.pace_maker import pace_maker
from stepglass.measure.records import IterRecord
from stepglass.measure.shapes import GPTConfig

Say = Callable[[str], None]
Found = dict[str, Any]

# The size of docs/gpu.md. A batch of 8 fits into 8 GB.
GPT2 = {"n_layer": 12, "n_head": 12, "n_embd": 768, "block_size": 1024, "batch_size": 8}
MODELS = {"gpt2": "adamw", "modern": "muon"}
TOKENS = 1 << 20
WARM_UP = 5
STALL = 1.5  # times the median: such an update counts as a stall


def measure_gpu(say: Say, steps: int) -> Found:
    """Measure the GPU of this machine."""
    kind, _ = choose.pick_type("auto")
    if kind == "cpu":
        raise DeviceError(
            f"bench gpu: expected a GPU that torch {torch.__version__} can use, found none; try "
            "stepglass bench speed"
        )
    return measure(say, GPT2 | {"device": kind, "compile": kind == "cuda", "dtype": "auto"}, steps)


def measure(say: Say, size: Size, steps: int) -> Found:
    """Run the three loops, and say what a stranger needs to know about them."""
    result: Found = {"models": {}}
    with tempfile.TemporaryDirectory() as name:
        home = Path.cwd()
        os.chdir(name)
        try:
            make_tokens(Path("data/bench"))
            for model, optimizer in MODELS.items():
                of_model = size | {"model": model, "optimizer": optimizer}
                trainer = TrainerLoop(new_training(of_model, Path(name, model)))
                try:
                    result["models"][model] = of_trainer(trainer, steps)
                    device = trainer.training.run.device
                finally:
                    trainer.close()
                del trainer  # its weights would be in the way of the next model
                free_memory(device)
            result |= of_device(device)
            result["plain_ms"] = plain_update_ms(size, device, steps)
        finally:
            os.chdir(home)
    for line in block(result):
        say(line)
    return result


def make_tokens(folder: Path) -> None:
    """Random tokens with GPT-2's vocabulary, as nanoGPT would prepare them."""
    folder.mkdir(parents=True)
    for split in ("train", "val"):
        tokens = np.random.default_rng(0).integers(GPT2_PADDED_VOCAB, size=TOKENS)
        tokens.astype("<u2").tofile(folder / f"{split}.bin")


def of_device(device: Device) -> Found:
    return {
        "device": device.name,
        "dtype": str(device.dtype).removeprefix("torch."),
        "compile": device.compile,
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
    }


def of_trainer(trainer: TrainerLoop, steps: int) -> Found:
    """Times, MFU and memory of the updates of one model, after those of its warm-up."""
    run, iterations = trainer.training.run, trainer.training.iterations
    device = run.device
    trainer.run(WARM_UP)
    iterations.drain()
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device.torch_device)
    updates: list[IterRecord] = []
    run.log.on_write = lambda record: (
        updates.append(record) if isinstance(record, IterRecord) else None
    )
    began = time.perf_counter()
    trainer.run(steps)
    device.drain()
    took_ms = 1000 * (time.perf_counter() - began) / steps
    iterations.drain()
    peak_bytes = None
    if device.type == "cuda":
        peak_bytes = torch.cuda.max_memory_allocated(device.torch_device)
    times = [step_time(each.phases, each.device_phases) or 0.0 for each in updates]
    flops = run.engine.model.config.flops_per_token() * run.cfg.tokens_per_iter
    total = run.clock.total()
    return {
        "ms": took_ms,
        "mfu": mfu.share_of_peak(float(flops), took_ms, iterations.peak.flops_per_s),
        "peak_bytes": peak_bytes,
        "device_ms": device_ms(updates),
        "stalls": sum(ms > STALL * median(times) for ms in times),
        "longest_ms": max(times),
        "behind_share": total.behind,
        "pace": pace_maker(total.device_phases, total.behind)
        if total.device_phases and total.behind is not None
        else None,
    }


def device_ms(updates: list[IterRecord]) -> dict[str, float] | None:
    """The mean time of each part of an update on the device's own clock, if it has one."""
    timed = [each.device_phases for each in updates if each.device_phases]
    if not timed:
        return None
    return {name: sum(each.get(name, 0.0) for each in timed) / len(timed) for name in STEP_PHASES}


def free_memory(device: Device) -> None:
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def plain_update_ms(size: Size, device: Device, steps: int) -> float:
    """nanoGPT's model and optimizer, compiled if ours is, on random tokens that are there."""
    sizes = {key: size[key] for key in ("block_size", "n_layer", "n_head", "n_embd")}
    model: nn.Module = PlainGPT(GPTConfig(vocab_size=GPT2_PADDED_VOCAB, **sizes))
    model = model.to(device.torch_device)
    fused = device.type == "cuda"
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.99), fused=fused)
    forward = torch.compile(model) if device.compile else model
    shape = (size["batch_size"], size["block_size"])
    idx = torch.randint(GPT2_PADDED_VOCAB, shape, device=device.torch_device)

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


def block(found: Found) -> list[str]:
    """The lines to send us."""
    lines = [
        "--- please send us these lines ---",
        f"device: {found['device']}, {found['dtype']}, compile {found['compile']}",
        f"torch {found['torch']}, CUDA {found['cuda'] or units.UNKNOWN}",
        f"nanoGPT's model in a plain loop: {found['plain_ms']:.2f} ms per update",
    ]
    for model, its in found["models"].items():
        peak, parts = its["peak_bytes"], its["device_ms"]
        on_device = ", ".join(f"{name} {ms:.2f} ms" for name, ms in (parts or {}).items())
        lines += [
            f"{model}: {its['ms']:.2f} ms per update, MFU {units.percent(its['mfu'], 1)}, "
            f"peak memory {units.size(peak) if peak is not None else units.UNKNOWN}",
            f"{model} on the device's clock: {on_device or units.UNKNOWN}",
            f"{model} stalls: {its['stalls']} updates took over {STALL:g} times the median, the "
            f"longest {its['longest_ms']:.2f} ms",
            f"{model} pace: {PACE_TEXTS[its['pace']] if its['pace'] else units.UNKNOWN}",
        ]
    return [*lines, "--- end ---"]
