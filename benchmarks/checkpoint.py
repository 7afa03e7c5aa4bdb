"""What a save costs: the stall, the slow-down while it is written, and the memory.

python benchmarks/checkpoint.py [--sizes=10M,124M] [--saves=100]

All in one process, by turns: a bare copy of the state from memory to memory, nanoGPT's way
(`torch.save` while training waits), and ours in a training loop. Iterations that run while a
checkpoint is written are held against those just before and after it.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from pathlib import Path

import torch

from stepglass import process
from stepglass.bench.throughput import peak_now
from stepglass.checkpoint import tensors
from stepglass.checkpoint.schedule import Interval, SaveSchedule
from stepglass.checkpoint.writer import CheckpointWriter, SaveRequest
from stepglass.files import Folder
from stepglass.hardware.choose import pick_device
from stepglass.measure.run_log import RunLogWriter
from stepglass.measure.shapes import GPTConfig
from stepglass.models.gpt2 import GPT
from stepglass.run_dir.commit import Retention
from stepglass.run_dir.folder import RunFolder
from stepglass.settings.train import TrainConfig


def shape(vocab_size: int, block_size: int, n_layer: int, n_head: int, n_embd: int) -> GPTConfig:
    return GPTConfig(
        vocab_size=vocab_size,
        block_size=block_size,
        n_layer=n_layer,
        n_head=n_head,
        n_embd=n_embd,
        dropout=0.0,
        bias=False,
    )


SIZES = {
    "10M": (shape(65, 256, 6, 6, 384), (2, 256)),
    "124M": (shape(50304, 1024, 12, 12, 768), (2, 128)),
}


class Training:
    """A loop as ours is: gradients, then an update that the snapshot is protected from."""

    def __init__(self, config: GPTConfig, batch: tuple[int, int], saver: CheckpointWriter) -> None:
        self.model = GPT(config)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, fused=True)
        self.x = torch.randint(config.vocab_size, batch)
        self.saver = saver
        self.stall_s = 0.0

    def step(self) -> float:
        start = time.perf_counter()
        loss = self.model(self.x, self.x)
        loss.backward()
        before = time.perf_counter()
        self.saver.protect_snapshot()
        self.stall_s += time.perf_counter() - before
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return time.perf_counter() - start

    def tensors(self) -> tensors.Files:
        return tensors.live_tensors(self.model, self.optimizer, "cpu")

    def save(self, number: int) -> None:
        before = time.perf_counter()
        self.saver.save(self.tensors(), SaveRequest(number, {"step": number}))
        self.stall_s = time.perf_counter() - before


def anonymous_bytes() -> int:
    """Memory of this process that is not files."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise OSError("/proc/self/status has no RssAnon")


def measure(name: str, rounds: int, num_saves: int) -> dict[str, float]:
    config, batch = SIZES[name]
    results: dict[str, float] = {}
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        run_dir = Path(folder)
        run = RunFolder(Folder.open(run_dir))
        log = RunLogWriter(run.folder, run.check)
        chosen = pick_device(TrainConfig(device="cpu"))
        saver = CheckpointWriter(run, chosen, log, Retention())
        training = Training(config, batch, saver)
        for _ in range(3):
            training.step()
        state_bytes = tensors.num_bytes(training.tensors())
        fresh = anonymous_bytes()
        for _ in range(num_saves):  # training's own memory grows at first: not the saves' doing
            training.step()
        before = anonymous_bytes()
        results["memory_growth_without_saves"] = (before - fresh) / state_bytes
        saver.reserve(training.tensors())
        saver.wait()

        after = []
        for number in range(1, num_saves + 1):
            training.save(number)
            training.step()
            saver.wait()
            after.append(anonymous_bytes())
        results["memory_over_state"] = (after[0] - before) / state_bytes
        results["memory_growth_over_saves"] = (after[-1] - after[0]) / state_bytes

        live = [t for tensors in training.tensors().values() for t in tensors.values()]
        copies = [torch.clone(tensor) for tensor in live]
        bare, ours, nanogpt = [], [], []
        slowdown, writing, num_busy, taken = [], [], [], []
        for number in range(num_saves + 1, num_saves + rounds + 1):
            start = time.perf_counter()
            for target, source in zip(copies, live, strict=True):
                target.copy_(source)
            bare.append(time.perf_counter() - start)

            start = time.perf_counter()
            state = {
                "model": training.model.state_dict(),
                "optimizer": training.optimizer.state_dict(),
                "iter_num": number,
            }
            torch.save(state, run_dir / "ckpt.pt")
            nanogpt.append(time.perf_counter() - start)

            quiet = [training.step() for _ in range(4)]
            training.save(number)
            busy = [training.step()]
            ours.append(training.stall_s)
            while saver.is_busy() and len(busy) < 400:
                busy.append(training.step())
            writing.append(sum(busy))
            num_busy.append(len(busy))
            saver.wait()
            taken.append(saver.finished[-1].taken_ms)
            quiet += [training.step() for _ in range(4)]
            slowdown.append(statistics.mean(quiet) / statistics.mean(busy))
        del copies
        stall, ratio = statistics.median(ours), statistics.median(slowdown)
        results["state_MB"] = state_bytes / 1e6
        results["stall_over_bare_copy"] = stall / statistics.median(bare)
        results["nanogpt_over_stall"] = statistics.median(nanogpt) / stall
        results["throughput_while_writing"] = ratio
        results["iterations_while_writing"] = statistics.median(num_busy)
        schedule = SaveSchedule(Interval(), keep_every=0)  # auto
        schedule.measured(stall * 1e3, statistics.median(writing) * 1e3, statistics.median(taken))
        every_s = schedule.every_ms(0.0) / 1e3
        results["interval_s"] = every_s
        lost = stall + (1 - ratio) * statistics.median(writing)
        results["throughput_over_interval"] = 1 - lost / every_s

        assert not saver.num_failed
        saver.close()
        log.close()
        run.close()
    return results


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", default="10M,124M")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--saves", type=int, default=100)
    args = parser.parse_args()
    process.keep_freed_memory()
    peak = peak_now()
    print(f"matmul peak: {peak / 1e9:.0f} GFLOP/s, {torch.get_num_threads()} threads")
    for name in args.sizes.split(","):
        results = measure(name, args.rounds, args.saves)
        print(name, json.dumps({key: round(value, 4) for key, value in results.items()}, indent=1))


if __name__ == "__main__":
    main()
