# ruff: noqa: E501  the page has long lines
"""docs/gpu.md: what to expect of GPUs, calculated. Nothing in it was measured.

python docs/gpu_page.py > docs/gpu.md
"""

import sys

from stepglass.measure.devices import find_device
from stepglass.measure.memory_model import largest_batch, memory_of, same_rows
from stepglass.measure.shapes import GPTConfig, ModernConfig
from stepglass.measure.time_model import chip_of, predict_update

GPUS = {
    "NVIDIA GeForce RTX 3060": 12,
    "NVIDIA GeForce RTX 4070": 12,
    "NVIDIA GeForce RTX 3090": 24,
    "NVIDIA GeForce RTX 4090": 24,
    "NVIDIA GeForce RTX 5090": 32,
    "NVIDIA A100-SXM4-40GB": 40,
    "NVIDIA H100 80GB HBM3": 80,
}
SIZES = {"vocab_size": 50_304, "block_size": 1024, "n_layer": 12, "n_head": 12, "n_embd": 768}
SHAPES = {"gpt2": GPTConfig(**SIZES), "modern": ModernConfig(**SIZES)}
ROWS, MOST = 480, 32  # of an update, and of a batch

TEXT = """# What to expect on a GPU

Stepglass is developed without a GPU: **every figure here is calculated** by the models of time and memory that
`stepglass advise` uses ([hardware](hardware.md) and [memory](memory.md) say how far they are off), and none was measured.
What has been proven without one, and what has not, is in [unverified](unverified.md).

Each row is an update of 480 sequences of 1024 tokens, with 12 layers of width 768 and a vocabulary of 50,304 tokens, in
bfloat16 and compiled:

| GPU | model | batch_size x accumulation | ms per update (calculated) | tokens per s (calculated) | memory (calculated) |
|---|---|---|---|---|---|
"""


def row(driver_name: str, gib: int, model: str) -> str:
    shape, device = SHAPES[model], find_device(driver_name)
    assert device is not None, driver_name

    def need(batch: int):
        return memory_of(
            shape,
            batch_size=batch,
            dtype="bfloat16",
            device_type="cuda",
            uses_muon=model == "modern",
            does_compile=True,
        )

    batch, steps = same_rows(ROWS, min(MOST, largest_batch(need, gib << 30) or 1))
    took = predict_update(
        shape,
        chip_of(device, "bfloat16"),
        batch_size=batch,
        accumulation=steps,
        does_compile=True,
        uses_muon=model == "modern",
    ).total_ms
    rate = 1000 * ROWS * shape.block_size / took
    name = f"{device.name} ({gib} GB)"
    memory = f"{need(batch).total / 2**30:.1f} GiB"
    return f"| {name} | {model} | {batch} x {steps} | {took:,.0f} | {rate:,.0f} | {memory} |"


def main() -> None:
    sys.stdout.write(TEXT)
    for name, gib in GPUS.items():
        for model in SHAPES:
            sys.stdout.write(row(name, gib, model) + "\n")
    sys.stdout.write(
        "\nEach row has the largest batch that leaves 15 % of the memory free, but at most 32 sequences."
        " `stepglass advise`\nleaves 20 % free and counts a card's memory in GB, not GiB, so it may "
        "propose smaller batches. If your card says\nsomething else, please send us what `stepglass "
        "bench gpu` prints: one block with the device, times, MFU, memory,\nstalls and what sets the pace "
        "for both models in batches of 8, and the time of nanoGPT's model in a plain loop.\n"
    )


if __name__ == "__main__":
    main()
