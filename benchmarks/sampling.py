"""Sampling: with a cache against nanoGPT's way, and 16 texts together against one after the other.

python benchmarks/sampling.py [--rounds=3] [--tokens=500] ["modern baby" ...]

Without names all four models are measured: "gpt2 cpu", "gpt2 baby", "modern cpu" and "modern baby".
Each row is printed when it is done. With 500 tokens, a round of "modern baby" takes about 75 s of
CPU time on one core of a server, most of it for nanoGPT's way, and several times as long on a core
that other programs use.

nanoGPT's way is that of its `generate`: for every token the model reads the last `block_size`
tokens again. All sides choose greedily, and are measured by turns in one process: the median of
their CPU time on one thread, which other programs on the machine hardly change.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable

import torch

from stepglass.bench.throughput import peak_now
from stepglass.measure.shapes import GPTConfig, ModernConfig
from stepglass.models.batch_decoding import DecodingBatch
from stepglass.models.decoding import Draw, generate
from stepglass.models.gpt2 import GPT
from stepglass.models.model import Model
from stepglass.models.modern import Modern

SHAPES = {
    "cpu": {"n_layer": 4, "n_head": 4, "n_embd": 128},
    "baby": {"n_layer": 6, "n_head": 6, "n_embd": 384},  # 10.65 M parameters
}
BLOCK_SIZE = 256
TOGETHER = 16
SHORT = 100  # tokens of each text of a batch


def chooser(name: str, shape: dict[str, int]) -> Model:
    torch.manual_seed(1)
    sizes = {"vocab_size": 65, "block_size": BLOCK_SIZE, **shape}
    model: Model = GPT(GPTConfig(**sizes)) if name == "gpt2" else Modern(ModernConfig(**sizes))
    for parameter in model.parameters():
        # Random weights hardly prefer any token: make them choose.
        parameter.data = parameter.data * 3 + 0.02 * torch.randn_like(parameter)
    return model.eval()


def cached(model: Model, num_tokens: int) -> list[int]:
    return list(generate(model, [0], max_new_tokens=num_tokens, draw=Draw(0)))


@torch.no_grad()
def nanogpts_way(model: Model, num_tokens: int) -> list[int]:
    ids = torch.zeros((1, 1), dtype=torch.long)
    for _ in range(num_tokens):
        logits = model.next_logits(ids[:, -BLOCK_SIZE:])
        ids = torch.cat((ids, logits.argmax(dim=-1, keepdim=True)), dim=1)
    return ids[0, 1:].tolist()


def one_by_one(model: Model) -> list[list[int]]:
    return [
        list(generate(model, [number], max_new_tokens=SHORT, draw=Draw(0)))
        for number in range(TOGETHER)
    ]


def together(model: Model) -> list[list[int]]:
    batch = DecodingBatch(model)
    texts: dict[object, list[int]] = {
        batch.add([number], Draw(0)): [] for number in range(TOGETHER)
    }
    for _ in range(SHORT):
        for sequence, token in batch.step():
            texts[sequence].append(token)
    return list(texts.values())


def timed(sides: dict[str, Callable[[], object]], rounds: int) -> tuple[dict[str, float], dict]:
    """The median time of each side, measured by turns, and what it returned last."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    found = {}
    for _ in range(rounds):
        for name, side in sides.items():
            start = time.process_time()
            found[name] = side()
            times[name].append(time.process_time() - start)
    return {name: statistics.median(values) for name, values in times.items()}, found


def measured(model: Model, rounds: int, tokens: int) -> dict[str, object]:
    alone, texts = timed(
        {"cached": lambda: cached(model, tokens), "nanogpt": lambda: nanogpts_way(model, tokens)},
        rounds,
    )
    many, batches = timed(
        {"together": lambda: together(model), "single": lambda: one_by_one(model)}, rounds
    )
    # Beyond the window the two ways differ: ours restarts it at half.
    is_same = texts["cached"][: BLOCK_SIZE - 1] == texts["nanogpt"][: BLOCK_SIZE - 1]
    return {
        "parameters": model.config.num_params(),
        "speed_up_by_cache": alone["nanogpt"] / alone["cached"],
        "same_tokens_within_the_window": is_same,
        "distinct_tokens": len(set(texts["cached"])),
        "speed_up_by_batch": many["single"] / many["together"],
        "same_texts_in_a_batch": batches["together"] == batches["single"],
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=500)
    rows = [f"{name} {size}" for name in ("gpt2", "modern") for size in SHAPES]
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(rows))
    args = parser.parse_args()
    unknown = set(args.models) - set(rows)
    if unknown:
        parser.error(f"expected {', '.join(rows)}, found {', '.join(sorted(unknown))}")
    torch.set_num_threads(1)
    print(json.dumps({"matmul_peak_gflops": peak_now() / 1e9}), flush=True)
    for row in args.models or rows:
        name, size = row.split()
        found = measured(chooser(name, SHAPES[size]), args.rounds, args.tokens)
        print(json.dumps({row: found}, indent=1), flush=True)


if __name__ == "__main__":
    main()
