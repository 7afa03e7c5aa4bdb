"""Compares the time to reach nanoGPT's loss: our speedrun and nanoGPT's CPU recipe.

Whole processes are measured, alternately. nanoGPT's recipe is run by our trainer with the `gpt2`
model and nanoGPT's settings, and also by nanoGPT itself if NANOGPT_DIR names a checkout. Losses are
computed over the whole validation split, in windows of 64 tokens.
"""

import json
import os
import pickle
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stepglass.errors import ConfigError, TrainingFailed
from stepglass.settings.nanogpt_defaults import CPU_FLAGS, SHAKESPEARE_CHAR

Say = Callable[[str], None]
Settings = dict[str, Any]

TARGET = 1.88
# This run takes at most as long as nanoGPT's run. It shows the loss that we reach in the same time.
LONG = {
    "recipe": "quick", "n_layer": 3, "n_head": 5, "n_embd": 160, "n_inner": 320, "batch_size": 32,
    "max_iters": 700, "lr_decay_iters": 700, "cooldown_iters": 420,
}  # fmt: skip


def race(say: Say, rounds: int, text: str) -> dict[str, Any]:
    """Run each command `rounds` times, alternately."""
    checkout = os.environ.get("NANOGPT_DIR")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        commands = sides(folder, Path(checkout).resolve() if checkout else None)
        prepare_data(folder, text)
        times: dict[str, list[float]] = {side: [] for side in commands}
        losses: dict[str, list[float]] = {side: [] for side in commands}
        for number in range(rounds):
            order = list(commands) if number % 2 else list(reversed(commands))
            for side in order:
                took = seconds_of_command(commands[side], folder)
                times[side].append(took)
                if side != "nanogpt":
                    losses[side].append(whole_split_loss(folder / side, folder))
                lost = f", val {losses[side][-1]:.4f}" if losses[side] else ""
                say(f"round {number + 1}: {side}: {took:.1f} s{lost}")
    return summarize_race(say, times, losses)


def summarize_race(
    say: Say, times: dict[str, list[float]], losses: dict[str, list[float]]
) -> dict[str, Any]:
    took = {side: statistics.median(values) for side, values in times.items()}
    result: dict[str, Any] = {
        "target": TARGET,
        "seconds": {side: [round(t, 2) for t in values] for side, values in times.items()},
        "val_loss": {side: [round(v, 4) for v in values] for side, values in losses.items()},
        "all_reached_target": all(loss <= TARGET for loss in losses["speedrun"]),
    }
    for baseline in ("gpt2", "nanogpt"):
        if baseline in took:
            ratio = took[baseline] / took["speedrun"]
            result[f"{baseline}_over_speedrun"] = round(ratio, 2)
            say(f"val <= {TARGET}: {ratio:.1f} times as fast as {baseline}, from start to end")
            result[f"long_over_{baseline}"] = round(took["long"] / took[baseline], 3)
    lower = statistics.median(losses["gpt2"]) - statistics.median(losses["long"])
    result["lower_at_equal_time"] = round(lower, 4)
    say(f"in {took['long'] / took['gpt2']:.0%} of the time of gpt2: val loss lower by {lower:.3f}")
    return result


def sides(folder: Path, checkout: Path | None) -> dict[str, list[str]]:
    """The command lines by name. Each writes to a folder with its name."""
    ours = [sys.executable, "-m", "stepglass", "train"]
    data: Settings = {"dataset": "shakespeare_char", "device": "cpu"}
    fast = {"recipe": "speedrun_cpu", "target_val_loss": TARGET, "out_dir": "speedrun"}
    gpt2 = {"recipe": "none", "model": "gpt2", "out_dir": "gpt2"} | SHAKESPEARE_CHAR | CPU_FLAGS
    commands = {
        "speedrun": [*ours, *as_flags(data | fast)],
        "long": [*ours, *as_flags(data | LONG | {"out_dir": "long"})],
        "gpt2": [*ours, *as_flags(data | gpt2)],
    }
    if checkout is not None:
        if not (checkout / "train.py").is_file():
            raise ConfigError(f"NANOGPT_DIR={checkout}: expected a checkout of nanoGPT, found none")
        # nanoGPT runs its configurator from the working folder.
        shutil.copy(checkout / "configurator.py", folder / "configurator.py")
        config = str(checkout / "config" / "train_shakespeare_char.py")
        nanogpt = [sys.executable, str(checkout / "train.py"), config]
        commands["nanogpt"] = [*nanogpt, *as_flags(CPU_FLAGS | {"out_dir": "nanogpt"})]
    return commands


def as_flags(settings: Settings) -> list[str]:
    return [f"--{key}={value}" for key, value in settings.items()]


def prepare_data(folder: Path, text: str) -> None:
    """Make nanoGPT's data set, with the meta.pkl that nanoGPT's trainer needs."""
    source = [text] if text else ["tinyshakespeare"]
    seconds_of_command(
        [sys.executable, "-m", "stepglass", "prepare", *source, "--name=shakespeare_char"], folder
    )
    data = folder / "data" / "shakespeare_char"
    chars = json.loads((data / "meta.json").read_text())["tokenizer"]["chars"]
    (data / "meta.pkl").write_bytes(pickle.dumps({"vocab_size": len(chars), "stoi": chars}))


def seconds_of_command(command: list[str], folder: Path) -> float:
    """Run a command, and return its time in seconds."""
    start = time.perf_counter()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    took = time.perf_counter() - start
    if done.returncode:
        raise TrainingFailed(f"{' '.join(command)} failed: {done.stderr[-500:]}")
    return took


def whole_split_loss(out_dir: Path, folder: Path) -> float:
    """The loss of a finished run on the whole validation split. This evaluation is not part of the
    measured time."""
    command = [sys.executable, "-m", "stepglass", "train", "--init_from=resume", "--eval_only"]
    command += [f"--out_dir={out_dir.name}", "--target_val_loss=1e-9"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("step ")]
    if done.returncode or not lines:
        raise TrainingFailed(f"{out_dir}: cannot be evaluated: {done.stderr[-500:]}")
    return float(lines[-1].rpartition(" ")[2])
