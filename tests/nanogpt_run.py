"""A nanoGPT run that never was: its console, from phase times that we know.

It keeps time as train.py does: one timer from the end of an iteration to the end of the next, an
average of MFU that starts at the fifth iteration, one line in `log_interval`.
"""

import random
from dataclasses import dataclass, field
from datetime import datetime, timedelta


@dataclass
class Run:
    """What really happened. Times are milliseconds."""

    num_iters: int = 100
    step_ms: float = 33.0
    eval_ms: float = 4400.0
    save_ms: float = 600.0
    warmup_ms: float = 8000.0
    eval_interval: int = 25
    log_interval: int = 1
    always_save: bool = False
    noise: float = 0.0
    mfu: float = 11.1  # of an ordinary iteration, in percent
    stalls: dict[int, float] = field(default_factory=dict)  # iteration -> ms
    slowdown: float = 0.0  # of the last iteration, as a fraction
    has_stamps: bool = False
    val_losses: list[float] | None = None
    header: list[str] = field(default_factory=list)
    losses: dict[int, str] = field(default_factory=dict)  # iteration -> what is printed
    seed: int = 0

    def __post_init__(self) -> None:
        self.wall_ms = 0.0
        self.spent = dict.fromkeys(("step", "eval", "checkpoint", "warmup", "stall"), 0.0)
        self.evals: list[float] = []
        self.lines = list(self.header)
        self._random = random.Random(self.seed)
        self._now = datetime(2026, 3, 1, 12)
        self._run()

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"

    def _around(self, ms: float) -> float:
        return ms * max(0.2, self._random.gauss(1.0, self.noise))

    def _print(self, line: str) -> None:
        if self.has_stamps and not line.startswith("saving"):
            line = f"{self._now:%Y-%m-%d %H:%M:%S}.{self._now.microsecond // 1000:03d} {line}"
        self.lines.append(line)

    def _pass(self, phase: str, ms: float) -> float:
        self.spent[phase] += ms
        self.wall_ms += ms
        self._now += timedelta(milliseconds=ms)
        return ms

    def _run(self) -> None:
        average, best = -1.0, float("inf")
        for i in range(self.num_iters):
            took = 0.0
            if i % self.eval_interval == 0:
                took += self._pass("eval", self._around(self.eval_ms))
                val = self._val_loss(len(self.evals))
                self.evals.append(val)
                self._print(f"step {i}: train loss {val - 0.02:.4f}, val loss {val:.4f}")
                if i > 0 and (self.always_save or val < best):
                    self._print("saving checkpoint to out")
                    took += self._pass("checkpoint", self._around(self.save_ms))
                best = min(best, val)
            if i == 0:
                took += self._pass("warmup", self.warmup_ms)
            took += self._pass("stall", self.stalls.get(i, 0.0))
            slower = 1 + self.slowdown * (i > self.num_iters // 2)
            took += self._pass("step", self._around(self.step_ms * slower))
            if i % self.log_interval == 0:
                if i >= 5:
                    new = self.mfu * self.step_ms / took
                    average = new if average < 0 else 0.9 * average + 0.1 * new
                shown = f"{average:.2f}" if average >= 0 else "-100.00"
                loss = self.losses.get(i) or f"{self._loss(i):.4f}"
                self._print(f"iter {i}: loss {loss}, time {took:.2f}ms, mfu {shown}%")

    def _loss(self, i: int) -> float:
        return 1.5 + 2.6 * 0.995**i + self._random.gauss(0, 0.02)

    def _val_loss(self, number: int) -> float:
        if self.val_losses is not None:
            return self.val_losses[min(number, len(self.val_losses) - 1)]
        return 1.6 + 2.5 * 0.9**number
