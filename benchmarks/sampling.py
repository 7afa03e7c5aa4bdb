"""Cached sampling against reading the whole window again for each token: same tokens, less time.

python benchmarks/sampling.py [--rounds=3]
"""

import argparse
import json
import statistics
import time

import torch

from stepglass.bench.throughput import peak_now
from stepglass.measure.shapes import GPTConfig
from stepglass.models.decoding import Draw, generate
from stepglass.models.gpt2 import GPT

SHAPES = {
    "cpu": {"n_layer": 4, "n_head": 4, "n_embd": 128},
    "baby": {"n_layer": 6, "n_head": 6, "n_embd": 384},
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    result: dict[str, object] = {"matmul_peak_gflops": peak_now() / 1e9}
    for name, shape in SHAPES.items():
        torch.manual_seed(1)
        model = GPT(GPTConfig(vocab_size=65, block_size=256, **shape)).eval()
        for parameter in model.parameters():
            parameter.data *= 3  # random weights hardly prefer any token: make them choose
        times: dict[bool, list[float]] = {True: [], False: []}
        texts: dict[bool, list[int]] = {}
        for _ in range(args.rounds):
            for use_cache in (True, False):
                start = time.perf_counter()
                texts[use_cache] = list(
                    generate(model, [0], max_new_tokens=500, draw=Draw(0), use_cache=use_cache)
                )
                times[use_cache].append(time.perf_counter() - start)
        result[name] = {
            "speed_up": statistics.median(times[False]) / statistics.median(times[True]),
            "same_tokens": texts[True] == texts[False],
            "distinct_tokens": len(set(texts[True])),
        }
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
