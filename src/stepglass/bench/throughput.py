"""Benchmarks of the speed of an update: compared with a plain loop, with the peak, and by size."""

import math
import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import torch

from stepglass.bench.loops import (
    BABY,
    NANOGPT_CPU,
    BareUpdates,
    Runs,
    Size,
    Worker,
    paired_ratio,
    timed,
)
from stepglass.hardware.cpu_peak import measure_cpu_peak
from stepglass.measure.shapes import GPTConfig

Say = Callable[[str], None]

# About 0.8, 3, 10 and 30 million parameters, with the same number of tokens per update.
SCALES = {
    "0.8M": {"n_layer": 4, "n_head": 4, "n_embd": 128},
    "3M": {"n_layer": 6, "n_head": 6, "n_embd": 192},
    "10M": {"n_layer": 6, "n_head": 6, "n_embd": 384},
    "30M": {"n_layer": 10, "n_head": 8, "n_embd": 512},
}
STEPS = 15  # updates per measurement: enough that the pause before it does not matter
SUSTAINED_SIZE = 1024  # of the square matrices
TOKENS = {"block_size": 64, "batch_size": 48}


def peak_now() -> float:
    """NaN if the machine is too busy to measure it."""
    return measure_cpu_peak(torch.get_num_threads(), torch.float32) or math.nan


def sustained_matmul(duration_s: float) -> float:
    """The mean FLOP/s of the matrix product over a time, not the best rate."""
    a = torch.ones(SUSTAINED_SIZE, SUSTAINED_SIZE)
    start, rounds = time.perf_counter(), 0
    while time.perf_counter() - start < duration_s:
        torch.mm(a, a)
        rounds += 1
    return rounds * 2 * SUSTAINED_SIZE**3 / (time.perf_counter() - start)


def against_plain(say: Say, rounds: int) -> dict[str, Any]:
    """The speed of our loop, eager and compiled, relative to a plain loop at nanoGPT's CPU size,
    and the cost of the clock, the log and the checks."""
    size = NANOGPT_CPU
    with Worker("plain", size) as plain, Worker("ours", size | {"compile": True}) as compiled:
        compiled_over_plain = round(paired_ratio(plain, compiled, rounds, STEPS), 3)
    with Worker("plain", size) as plain, Worker("ours", size) as ours:
        bare = BareUpdates(ours)
        result = {
            "compiled_over_plain": compiled_over_plain,
            "ours_over_plain": round(paired_ratio(plain, ours, rounds, STEPS), 3),
            "clock_log_and_checks": round(paired_ratio(ours, bare, rounds, STEPS) - 1, 4),
            "noise_of_this_figure": round(paired_ratio(bare, bare, rounds, STEPS) - 1, 4),
        }
    say(
        f"gpt2 at nanoGPT's CPU size: {result['ours_over_plain']} times a plain eager loop, "
        f"{compiled_over_plain} times once it is compiled"
    )
    say(f"the clock, the log and the checks cost {result['clock_log_and_checks']:.1%} of an update")
    return result


def of_peak(say: Say, rounds: int) -> dict[str, Any]:
    """The share of the peak that a model of 10.65 M parameters reaches, with the trainer's formula
    for MFU. The peak is measured right before and after each run, as the best rate and as the mean
    over a second. A plain eager loop is measured too, to show how much of the missing share is due
    to the machine."""
    result: dict[str, Any] = {}
    with Worker("plain", BABY) as plain, Worker("ours", BABY) as ours:
        turns = [(shares_of_peak(plain), shares_of_peak(ours)) for _ in range(rounds)]
    for name, shares in zip(("plain", "ours"), zip(*turns, strict=True), strict=True):
        of_best, of_sustained = zip(*shares, strict=True)
        result[name] = {
            "share_of_peak": round(statistics.median(of_best), 3),
            "best_share": round(max(of_best), 3),
            "share_of_sustained": round(statistics.median(of_sustained), 3),
        }
        say(
            f"gpt2 at 10.65 M parameters, {name}: {result[name]['share_of_peak']:.1%} of the "
            f"matmul peak, {result[name]['share_of_sustained']:.1%} of what a product does for a "
            "second"
        )
    return result


def shares_of_peak(loop: Runs) -> tuple[float, float]:
    """The FLOP/s of two updates, as a share of the best rate of a matrix product and of its mean
    rate over a second. Both are measured before and after the updates."""
    before, steady_before = peak_now(), sustained_matmul(1.0)
    rate = 2 * flops_per_update(BABY) / timed(loop, 2)
    steady_after, after = sustained_matmul(1.0), peak_now()
    return rate / max(before, after), 2 * rate / (steady_before + steady_after)


def scaling(say: Say, rounds: int) -> dict[str, Any]:
    """Time per token divided by FLOPs per token, at four sizes. The results are relative to the
    geometric mean of the lowest and the highest."""
    sizes = {name: {**scale, **TOKENS} for name, scale in SCALES.items()}
    times: dict[str, list[float]] = {name: [] for name in sizes}
    with ExitStack() as stack:
        workers = {n: stack.enter_context(Worker("ours", size)) for n, size in sizes.items()}
        for _ in range(rounds):
            for name, worker in workers.items():
                times[name].append(timed(worker, 2) / 2)
    tokens = TOKENS["block_size"] * TOKENS["batch_size"]
    rates = {n: flops_per_update(sizes[n]) / statistics.median(times[n]) for n in sizes}
    proportional = (min(rates.values()) * max(rates.values())) ** 0.5
    result: dict[str, Any] = {}
    say("size    parameters  MFLOP/token  us/token  GFLOP/s  off proportional")
    for name, rate in rates.items():
        shape = gpt_shape(sizes[name])
        row = {
            "parameters": shape.num_params(),
            "mflop_per_token": round(shape.flops_per_token() / 1e6, 1),
            "us_per_token": round(statistics.median(times[name]) / tokens * 1e6, 2),
            "gflops": round(rate / 1e9, 1),
            "off_proportional": round(proportional / rate - 1, 3),
        }
        result[name] = row
        say(
            f"{name:<6}{row['parameters']:>12,}{row['mflop_per_token']:>13}"
            f"{row['us_per_token']:>10}{row['gflops']:>9}{row['off_proportional']:>17.1%}"
        )
    return result


def gpt_shape(size: Size) -> GPTConfig:
    keys = ("block_size", "n_layer", "n_head", "n_embd")
    return GPTConfig(vocab_size=26, **{key: size[key] for key in keys})


def flops_per_update(size: Size) -> float:
    return gpt_shape(size).flops_per_token() * float(size["block_size"] * size["batch_size"])
