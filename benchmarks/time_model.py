"""The time model beside real updates on this machine's CPU, as a table.

    python benchmarks/time_model.py [--rounds=3]

Every size is trained for a few updates by `stepglass train` in a process of its own, on random
tokens, by turns. The time of a size is the fifth shortest of a hundred updates or so: other
programs only make them longer. The model knows the peak of this machine and the time of the first
size here, as `--minutes` does; its other constants were fitted to the next six, elsewhere. The
others show what it is worth.
"""

import argparse
import json
import pickle
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from stepglass.measure.shapes import shape_of
from stepglass.measure.time_model import (
    Chip,
    UpdateTime,
    cpu_chip,
    fitted_to,
    predict_update,
)
from stepglass.settings.train import TrainConfig

TOLERANCE = 0.20
TOKENS = 1 << 18
ROUND_S = 6.0  # of updates, about
QUANTILE = 0.05


class Size(NamedTuple):
    model: str
    n_layer: int
    n_embd: int
    n_head: int
    n_inner: int  # 0: 4 times the width
    block_size: int
    batch_size: int
    vocab_size: int

    def config(self) -> TrainConfig:
        settings = {key: value for key, value in self._asdict().items() if key != "vocab_size"}
        optimizer = "muon" if self.model == "modern" else "adamw"
        return TrainConfig(**settings, optimizer=optimizer, gradient_accumulation_steps=1)

    def predicted(self, chip: Chip) -> UpdateTime:
        return predict_update(
            shape_of(self.config(), self.vocab_size),
            chip,
            batch_size=self.batch_size,
            accumulation=1,
            does_compile=False,
            uses_muon=self.model == "modern",
        )


MEASURED = Size("modern", 3, 128, 4, 256, 64, 24, 65)
FITTED = (
    MEASURED,
    Size("modern", 2, 96, 3, 192, 64, 24, 65),
    Size("modern", 4, 192, 6, 384, 128, 16, 65),
    Size("modern", 6, 384, 6, 768, 256, 8, 65),
    Size("modern", 2, 512, 8, 1024, 128, 8, 4096),
    Size("gpt2", 4, 128, 4, 0, 64, 12, 65),
    Size("gpt2", 6, 384, 6, 0, 256, 8, 65),
)
OTHERS = (
    Size("modern", 3, 160, 5, 320, 64, 32, 65),
    Size("modern", 5, 256, 8, 512, 128, 24, 65),
    Size("modern", 6, 320, 5, 960, 128, 12, 1024),
    Size("modern", 8, 128, 4, 384, 256, 8, 65),
    Size("gpt2", 3, 192, 6, 0, 128, 16, 65),
    Size("gpt2", 2, 256, 8, 0, 256, 6, 8192),
)


def make_tokens(folder: Path, vocab_size: int) -> None:
    folder.mkdir(exist_ok=True)
    for split in ("train", "val"):
        tokens = np.random.default_rng(0).integers(vocab_size, size=TOKENS)
        tokens.astype(np.uint16).tofile(folder / f"{split}.bin")
    (folder / "meta.pkl").write_bytes(pickle.dumps({"vocab_size": vocab_size}))


def trained(folder: Path, settings: dict[str, object]) -> list[dict[str, Any]]:
    """The run log of a short run on a CPU that does nothing but updates."""
    out = Path(tempfile.mkdtemp(dir=folder)) / "out"
    quiet = {"recipe": "none", "out_dir": out, "compile": False, "dropout": 0.0, "eval_iters": 1}
    quiet |= dict.fromkeys(("eval_interval", "log_interval", "checkpoint_interval"), 10**6)
    flags = [f"--{key}={value}" for key, value in (quiet | settings).items()]
    subprocess.run(
        [sys.executable, "-m", "stepglass", "train", *flags], check=True, capture_output=True
    )
    return [json.loads(line) for line in (out / "run.jsonl").read_text().splitlines()]


def update_times(records: list[dict[str, Any]]) -> list[float]:
    """In milliseconds. The first updates find cold caches; the last one precedes an evaluation."""
    return [record["wall_ms"] for record in records if record["kind"] == "iter"][2:-1]


def train(size: Size, folder: Path, iters: int) -> tuple[list[float], float]:
    """The times of updates in milliseconds, and the peak that the run has measured."""
    data = folder / f"tokens{size.vocab_size}"
    make_tokens(data, size.vocab_size)
    settings = {key: value for key, value in size._asdict().items() if key != "vocab_size"}
    settings |= {"optimizer": size.config().optimizer, "dataset": data}
    settings |= {"gradient_accumulation_steps": 1, "max_iters": iters}
    records = trained(folder, settings)
    return update_times(records), records[0]["peak_flops"]


def quick_of(times: list[float]) -> float:
    return sorted(times)[int(QUANTILE * len(times))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    times: dict[Size, list[float]] = defaultdict(list)
    peaks = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            for size in FITTED + OTHERS:
                expected_ms = (
                    quick_of(times[size])
                    if times[size]
                    else size.predicted(cpu_chip(1.7e11)).total_ms
                )
                iters = 6 + int(ROUND_S * 1000 / expected_ms)
                found, peak = train(size, Path(folder), iters)
                times[size] += found
                peaks.append(peak)
    peak = median(peaks)
    chip = fitted_to(quick_of(times[MEASURED]), cpu_chip(peak), MEASURED.predicted)
    print(f"matmul peak {peak / 1e9:.0f} GFLOP/s, the median of {len(peaks)}; "
          f"half of it at a width of {chip.half_width:.0f}")  # fmt: skip
    worst = 0.0
    for name, sizes in (("fitted", FITTED), ("others", OTHERS)):
        print(f"\n{name}\n| model | layers x width | context x batch | vocabulary | measured, ms "
              "| predicted, ms | error |\n|---|---|---|---|---|---|---|")  # fmt: skip
        for size in sizes:
            measured, predicted = quick_of(times[size]), size.predicted(chip).total_ms
            error = predicted / measured - 1
            print(f"| {size.model} | {size.n_layer} x {size.n_embd} | {size.block_size} x "
                  f"{size.batch_size} | {size.vocab_size} | {measured:.1f} | {predicted:.1f} | "
                  f"{error:+.0%} |")  # fmt: skip
            worst = max(worst, abs(error)) if sizes is OTHERS else worst
    print(f"\nthe others are off by at most {worst:.0%}; {TOLERANCE:.0%} are allowed")
    return int(worst > TOLERANCE)


if __name__ == "__main__":
    sys.exit(main())
