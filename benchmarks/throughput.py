"""Our loop against a plain eager loop of the same model, and against nanoGPT where it is at hand.

Short segments alternate in one process, so that a busy machine slows both sides; the figure is the
median ratio. The plain loop is what a person would write: a batch by Python slices, AdamW as it
comes, no clock, no log, no checks. Also measured: what the clock, the log and the checks cost, as
the same updates with and without them, and the noise of that figure.

    python benchmarks/throughput.py [--size=cpu|baby] [--rounds=60] [--steps=5]
"""

import argparse
import io
import json
import os
import pickle
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Protocol

import numpy as np
import torch

from stepglass import device, train
from stepglass.clock import PhaseClock
from stepglass.config import read_command_line, resolve
from stepglass.console import Console
from stepglass.data.prepare import PrepareConfig, prepare
from stepglass.models.gpt2 import GPT
from stepglass.session import Session
from stepglass.startup import set_up
from stepglass.stop import StopRequest

SIZES = {
    "cpu": {"n_layer": 4, "n_head": 4, "n_embd": 128, "block_size": 64, "batch_size": 12},
    "baby": {"n_layer": 6, "n_head": 6, "n_embd": 384, "block_size": 256, "batch_size": 8},
}


def our_session(size: dict[str, int], folder: Path) -> Session:
    flags = {
        "recipe": "none", "device": "cpu", "compile": False, "dataset": "bench", "dropout": 0.0,
        "gradient_accumulation_steps": 1, "learning_rate": 1e-3, "max_iters": 10**6,
        "lr_decay_iters": 10**6, "eval_interval": 10**7, "out_dir": str(folder / "out"),
    } | size  # fmt: skip
    argv = [f"--{key}={value}" for key, value in flags.items()]
    cfg = resolve(read_command_line(argv), "none")
    session = set_up(cfg, argv, PhaseClock(), Console(io.StringIO()), StopRequest())
    session.state.evaluated_at = 0
    return session


class OurLoop:
    """The trainer's own loop, a number of updates at a time."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def run(self, steps: int) -> None:
        s = self.session
        object.__setattr__(s.cfg, "max_iters", s.state.step + steps)
        s.state.evaluated_at = s.cfg.max_iters  # no evaluation at the end of a segment
        train.loop(s)


class BareLoop:
    """The same updates as OurLoop with the clock, the log and the checks taken out."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def run(self, steps: int) -> None:
        s = self.session
        for _ in range(steps):
            [(x, y)] = s.batch(s.state.step)
            _, loss = s.model(x, y)
            loss.backward()
            train.apply_gradients(s)
            s.state.step += 1


class PlainLoop:
    """What nanoGPT's loop does, without its surroundings."""

    def __init__(self, session: Session) -> None:
        torch.manual_seed(1)
        self.size = session.cfg
        self.model = GPT(session.raw_model.config)
        decay = [p for p in self.model.parameters() if p.dim() >= 2]
        plain = [p for p in self.model.parameters() if p.dim() < 2]
        groups = [{"params": decay, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.99))
        self.data = np.memmap(session.data.train.path, dtype=np.uint16, mode="r")

    def batch(self) -> tuple[torch.Tensor, torch.Tensor]:
        T = self.size.block_size
        starts = torch.randint(len(self.data) - T, (self.size.batch_size,))
        x = torch.stack([torch.from_numpy(self.data[i : i + T].astype(np.int64)) for i in starts])
        y = torch.stack(
            [torch.from_numpy(self.data[i + 1 : i + 1 + T].astype(np.int64)) for i in starts]
        )
        return x, y

    def run(self, steps: int) -> None:
        for _ in range(steps):
            x, y = self.batch()
            _, loss = self.model(x, y)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
            loss.item()


class Loop(Protocol):
    """Something that can do a number of updates."""

    def run(self, steps: int) -> None: ...


def paired_ratio(reference: Loop, measured: Loop, rounds: int, steps: int) -> float:
    """Time of `measured` over `reference`: short segments, each between two of the reference.

    The median of the rounds: a machine that slows down for a while slows both sides of most rounds.
    """
    ratios = []
    for _ in range(rounds):
        before, between, after = (seconds(loop, steps) for loop in (reference, measured, reference))
        ratios.append(2 * between / (before + after))
    return statistics.median(ratios)


def seconds(loop: Loop, steps: int) -> float:
    start = time.perf_counter()
    loop.run(steps)
    return time.perf_counter() - start


def nanogpt_ratio(folder: Path, checkout: Path, rounds: int, iters: int = 300) -> float:
    """Our speed over nanoGPT's: whole processes by turns, step times from their own logs."""
    flags = ["--device=cpu", "--compile=False", "--eval_iters=1", "--log_interval=1"]
    flags += [f"--{key}={value}" for key, value in SIZES["cpu"].items()]
    flags += [f"--max_iters={iters}", "--dropout=0.0", "--eval_interval=100000"]
    data = folder / "data" / "shakespeare_char"
    shutil.copytree(folder / "data" / "bench", data)
    chars = json.loads((data / "meta.json").read_text())["tokenizer"]["chars"]
    (data / "meta.pkl").write_bytes(pickle.dumps({"vocab_size": len(chars), "stoi": chars}))
    config = str(checkout / "config" / "train_shakespeare_char.py")
    commands = {
        "nanoGPT": [sys.executable, str(checkout / "train.py"), config],
        "ours": [sys.executable, "-m", "stepglass", "train", config],
    }
    # nanoGPT runs its configurator from the working folder.
    (folder / "configurator.py").write_text((checkout / "configurator.py").read_text())
    times: dict[str, list[float]] = {name: [] for name in commands}
    for round_number in range(rounds):
        order = list(commands) if round_number % 2 else list(reversed(commands))
        for name in order:
            done = subprocess.run(
                [*commands[name], *flags], cwd=folder, capture_output=True, text=True, check=True
            )
            lines = [line for line in done.stdout.splitlines() if line.startswith("iter ")]
            step_ms = [float(line.split("time ")[1].split("ms")[0]) for line in lines[10:]]
            times[name].append(statistics.median(step_ms))
    return statistics.median(times["nanoGPT"]) / statistics.median(times["ours"])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", choices=SIZES, default="cpu")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--steps", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.chdir(folder)
        text = "".join(chr(97 + i) for i in np.random.default_rng(0).integers(0, 26, 1_000_000))
        Path("bench.txt").write_text(text)
        prepare(["bench.txt"], PrepareConfig(), lambda *progress: None)
        session = our_session(SIZES[args.size], folder)
        plain, bare, ours = PlainLoop(session), BareLoop(session), OurLoop(session)
        for loop in (plain, bare, ours):
            loop.run(5)
        result = {
            "size": args.size,
            "matmul_peak_gflops": device.measure_matmul(torch.device("cpu"), torch.float32) / 1e9,
            "ours_over_plain": 1 / paired_ratio(plain, ours, args.rounds, args.steps),
            "cost_of_clock_log_and_checks": paired_ratio(bare, ours, args.rounds, args.steps) - 1,
            "noise_of_this_figure": paired_ratio(bare, bare, args.rounds, args.steps) - 1,
        }
        session.close()
        checkout = os.environ.get("NANOGPT_DIR")
        if checkout and args.size == "cpu":
            result["ours_over_nanogpt"] = nanogpt_ratio(folder, Path(checkout), rounds=3)
        print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
