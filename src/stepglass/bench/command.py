"""The `bench` command: runs benchmarks, prints the results, and writes them as JSON."""

import os
import platform
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import stepglass
from stepglass import json_files, units
from stepglass.errors import ConfigError
from stepglass.settings.schema import Config, Settings, setting

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class BenchConfig(Config):
    """Settings of `bench`."""

    rounds: int = setting(0, "how often each side is measured; 0: as often as is usual", minimum=0)
    text: str = setting(
        "", "loss: the text to train on instead of downloading tinyshakespeare", is_path=True
    )
    out: str = setting("bench.json", "the file to write", is_path=True)

    def check(self) -> None:
        if self.text and not Path(self.text).is_file():
            raise ConfigError(f"--text={self.text}: expected a text file, found none")


SETTINGS = Settings(BenchConfig)

HELP = {
    "speed": "an update of gpt2 against a plain eager loop, and what the clock costs (3 minutes)",
    "peak": "an update of 10.65 M parameters against the machine's matmul peak (2 minutes)",
    "scaling": "time per token at 0.8, 3, 10 and 30 M parameters (2 minutes)",
    "loss": "time to nanoGPT's loss against nanoGPT's recipe (15 minutes)",
    "gpu": "an update on this machine's GPU, as lines to send to the project; only if named",
}
USAGE = "usage: stepglass bench [NAME ...] [--key=value ...]\n\n" + "".join(
    f"  {name:<10}{text}\n" for name, text in HELP.items()
)


def run(argv: list[str], say: Say) -> None:
    """Run the `bench` command."""
    names, given = SETTINGS.parse(argv)
    bench(names, SETTINGS.build(given), say)


def bench(names: list[str], cfg: BenchConfig, say: Say) -> None:
    """Run the named benchmarks, or all if none is named."""
    for name in names:
        if name not in HELP:
            raise ConfigError(f"unknown benchmark {name!r}; expected {', '.join(HELP)}")
    if not Path(cfg.out).resolve().parent.is_dir():
        raise ConfigError(f"--out={cfg.out}: its folder does not exist")
    import torch  # noqa: PLC0415 - not needed for --help or errors

    from stepglass.bench import gpu, throughput, time_to_loss  # noqa: PLC0415

    text = str(Path(cfg.text).resolve()) if cfg.text else ""
    peak = throughput.peak_now()
    say(f"matmul peak: {units.flops_rate(peak)}, {torch.get_num_threads()} threads")
    results: dict[str, Any] = {
        "stepglass": stepglass.__version__,
        "torch": torch.__version__,
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "matmul_peak_flops": peak,
    }
    measures: dict[str, Callable[[], dict[str, Any]]] = {
        "speed": lambda: throughput.against_plain(say, cfg.rounds or 20),
        "peak": lambda: throughput.of_peak(say, cfg.rounds or 12),
        "scaling": lambda: throughput.scaling(say, cfg.rounds or 15),
        "loss": lambda: time_to_loss.race(say, cfg.rounds or 3, text),
        "gpu": lambda: gpu.measure_gpu(say, cfg.rounds or 50),
    }
    for name in names or [name for name in HELP if name != "gpu"]:
        results[name] = measures[name]()
        # Write the file after each benchmark, because the user may stop a long run.
        json_files.write_json(Path(cfg.out), results)
    say(f"written to {cfg.out}")
