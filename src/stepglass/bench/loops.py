"""Training loops for benchmarks. Each is in its own process, and only one runs at a time.

    with Worker("ours", size) as ours, Worker("plain", size) as plain:
        faster = paired_ratio(plain, ours, rounds=30, steps=5)

Each loop has its own process, so that one loop's settings of the allocator and the thread pool do
not affect the other. They run alternately, so that a temporary load on the machine slows both.
"""

import io
import multiprocessing
import os
import statistics
import tempfile
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from stepglass.data.prepare import PrepareConfig, prepare
from stepglass.errors import TrainingFailed
from stepglass.measure.clock import PhaseClock
from stepglass.measure.shapes import GPTConfig
from stepglass.process import StopRequest
from stepglass.run_dir.saved_settings import saved_settings
from stepglass.settings.command_line import read_command_line, resolve
from stepglass.train.batches import micro_batches
from stepglass.train.building import Surroundings
from stepglass.train.console import Console
from stepglass.train.loop import loop
from stepglass.train.setup import set_up
from stepglass.train.training import Training

Size = dict[str, Any]  # settings of a run

NANOGPT_CPU = {"n_layer": 4, "n_head": 4, "n_embd": 128, "block_size": 64, "batch_size": 12}
BABY = {"n_layer": 6, "n_head": 6, "n_embd": 384, "block_size": 256, "batch_size": 16}
SPINNING_S = 0.3  # after its last work, a thread pool keeps the cores busy for this long


class Runs(Protocol):
    """Something that can run a number of updates."""

    def run(self, steps: int) -> float | None: ...


class Loop(Runs, Protocol):
    """A `Runs` that must be closed."""

    def close(self) -> None: ...


# -- ways to train ------------------------------------------------------------------------------


class TrainerLoop:
    """Runs a number of updates with the trainer's own loop. For a negative number, it runs the same
    updates without the clock, the log and the checks.

    Both variants are in one process, because the speed of two equal processes differs by several
    percent, depending on where their memory is.
    """

    def __init__(self, training: Training) -> None:
        self.training = training

    def run(self, steps: int) -> float | None:
        """Run the updates, and return the highest MFU that was logged for them."""
        if steps < 0:
            self._run_bare(-steps)
            return None
        t, state = self.training, self.training.run.state
        t.last_step = state.step + steps
        state.evaluated_at = t.last_step  # no evaluation at the end of a segment
        t.iterations.highest_mfu = 0.0
        loop(t)
        return t.iterations.highest_mfu

    def _run_bare(self, steps: int) -> None:
        run = self.training.run
        for _ in range(steps):
            batches = micro_batches(run.data, run.cfg, run.state.step)
            run.engine.backward(batches, run.state.step)
            run.engine.update(run.cfg.grad_clip)
            run.state.step += 1

    def close(self) -> None:
        self.training.close()  # otherwise its threads would keep the process alive


class PlainGPT(nn.Module):
    """GPT-2 written in the usual way with PyTorch's modules, with the same sizes as ours."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        C = config.n_embd
        self.n_head = config.n_head
        self.tokens = nn.Embedding(config.vocab_size, C)
        self.positions = nn.Embedding(config.block_size, C)
        self.blocks = nn.ModuleList(
            nn.ModuleDict(
                {
                    "norm_1": nn.LayerNorm(C, bias=False),
                    "qkv": nn.Linear(C, 3 * C, bias=False),
                    "out": nn.Linear(C, C, bias=False),
                    "norm_2": nn.LayerNorm(C, bias=False),
                    "up": nn.Linear(C, 4 * C, bias=False),
                    "down": nn.Linear(4 * C, C, bias=False),
                }
            )
            for _ in range(config.n_layer)
        )
        self.norm = nn.LayerNorm(C, bias=False)
        self.head = nn.Linear(C, config.vocab_size, bias=False)
        self.head.weight = self.tokens.weight
        nn.init.normal_(self.tokens.weight, std=0.02)

    def forward(self, idx: Tensor, targets: Tensor) -> Tensor:
        B, T = idx.shape
        x = self.tokens(idx) + self.positions(torch.arange(T, device=idx.device))
        for block in self.blocks:
            assert isinstance(block, nn.ModuleDict)
            q, k, v = block["qkv"](block["norm_1"](x)).chunk(3, dim=-1)
            q, k, v = (part.view(B, T, self.n_head, -1).transpose(1, 2) for part in (q, k, v))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + block["out"](y.transpose(1, 2).contiguous().view(B, T, -1))
            x = x + block["down"](F.gelu(block["up"](block["norm_2"](x))))
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.view(B * T, -1), targets.reshape(-1))


class PlainLoop:
    """A plain version of nanoGPT's loop: batches from Python slices, AdamW with default options, no
    clock, no log and no checks."""

    def __init__(self, size: Size, tokens: Path) -> None:
        self.size = size
        self.data = np.memmap(tokens, dtype=np.uint16, mode="r")
        sizes = {key: size[key] for key in ("block_size", "n_layer", "n_head", "n_embd")}
        self.model = PlainGPT(GPTConfig(vocab_size=26, **sizes))
        decay = [p for p in self.model.parameters() if p.dim() >= 2]
        plain = [p for p in self.model.parameters() if p.dim() < 2]
        groups = [{"params": decay, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.99))

    def batch(self) -> tuple[Tensor, Tensor]:
        T = self.size["block_size"]
        starts = torch.randint(len(self.data) - T, (self.size["batch_size"],))
        x = torch.stack([torch.from_numpy(self.data[i : i + T].astype(np.int64)) for i in starts])
        y = torch.stack(
            [torch.from_numpy(self.data[i + 1 : i + 1 + T].astype(np.int64)) for i in starts]
        )
        return x, y

    def run(self, steps: int) -> None:
        for _ in range(steps):
            x, y = self.batch()
            loss = self.model(x, y)
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
            loss.item()

    def close(self) -> None:
        pass


def new_training(size: Size, folder: Path) -> Training:
    """Set up a run that does not evaluate, print or save."""
    flags = {
        "recipe": "none", "model": "gpt2", "device": "cpu", "compile": False, "dataset": "bench",
        "dropout": 0.0, "gradient_accumulation_steps": 1, "learning_rate": 1e-3,
        "max_iters": 10**6, "lr_decay_iters": 10**6, "eval_interval": 10**7, "eval_iters": 1,
        "checkpoint_interval": "10h", "log_interval": 10**9, "out_dir": str(folder / "out"),
    } | size  # fmt: skip
    argv = [f"--{key}={value}" for key, value in flags.items()]
    cfg = resolve(read_command_line(argv), "none", saved_settings)
    around = Surroundings(PhaseClock(), Console(io.StringIO()), StopRequest())
    training = set_up(cfg, argv, around)
    training.run.state.evaluated_at = 0
    return training


# -- processes ----------------------------------------------------------------------------------


class Worker:
    """A loop in its own process. A context manager: leaving it ends the process."""

    def __init__(self, kind: str, size: Size) -> None:
        self._kind, self._size = kind, size

    def __enter__(self) -> "Worker":
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=run_in_process, args=(self._kind, self._size, theirs), daemon=True
        )
        self._process.start()
        self.run(5)
        return self

    def run(self, steps: int) -> float | None:
        try:
            self._pipe.send(steps)
            result = self._pipe.recv()
        except (EOFError, BrokenPipeError) as error:
            raise TrainingFailed(f"the process of the {self._kind} loop ended early") from error
        if isinstance(result, Exception):
            raise result
        return None if result is None else float(result)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        with suppress(BrokenPipeError):
            self._pipe.send(0)
        self._process.join(timeout=30)
        self._process.terminate()


class BareUpdates:
    """Runs the updates of a worker's TrainerLoop without clock, log and checks."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def run(self, steps: int) -> float | None:
        return self._worker.run(-steps)


def run_in_process(kind: str, size: Size, pipe: Connection) -> None:
    """The main function of a worker's process: build the loop, then run updates as requested."""
    with tempfile.TemporaryDirectory() as name:
        home = Path.cwd()
        os.chdir(name)
        try:
            built = build_loop(kind, size, Path(name))
            try:
                while steps := pipe.recv():
                    pipe.send(built.run(steps))
            finally:
                built.close()
        except Exception as error:  # noqa: BLE001  raised again by `Worker.run`
            pipe.send(error)
        finally:
            os.chdir(home)


def build_loop(kind: str, size: Size, folder: Path) -> Loop:
    text = "".join(chr(97 + i) for i in np.random.default_rng(0).integers(0, 26, 200_000))
    Path("bench.txt").write_text(text)
    prepare(["bench.txt"], PrepareConfig(), lambda *progress: None)
    if kind == "plain":
        return PlainLoop(size, folder / "data" / "bench" / "train.bin")
    return TrainerLoop(new_training(size, folder))


def timed(runs: Runs, steps: int) -> float:
    """The time of a number of updates in seconds."""
    time.sleep(SPINNING_S)
    start = time.perf_counter()
    runs.run(steps)
    return time.perf_counter() - start


def paired_ratio(reference: Runs, measured: Runs, rounds: int, steps: int) -> float:
    """The time of `reference` divided by that of `measured`: how many times as fast `measured` is.

    Returns the median over all rounds. In each round, `measured` runs between two runs of
    `reference`.
    """
    ratios = []
    for _ in range(rounds):
        before, between, after = (timed(runs, steps) for runs in (reference, measured, reference))
        ratios.append((before + after) / (2 * between))
    return statistics.median(ratios)
