"""`--minutes=N` beside the shipped recipes and beside settings tried by hand, N minutes each.

    python benchmarks/minutes.py DATASET --minutes=1 [--only=chosen,recipes,hand]

Every run is a process of its own, one after the other, with the whole machine to itself. The time
is measured from the start of the process to its end, the loss is the last one of the run, over the
whole validation split. What was chosen is right if it ends within 3 % of its time, at most 0.02
above the best of those tried by hand, and below every recipe.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from stepglass.settings.command_line import read_recipe

RECIPES = (
    "quick", "quick_gpt2", "speedrun_cpu", "shakespeare_char", "shakespeare_char_gpt2", "gpt2",
    "gpt2_modern",
)  # fmt: skip
HAND = {
    1: (
        "3x128 64x24", "3x128 128x16", "2x128 128x16", "2x128 256x8", "3x128 256x8", "2x96 128x16",
        "3x128 128x8", "4x128 128x16", "3x160 128x12", "2x160 128x12", "2x128 128x16 rate=1.4",
        "2x128 128x16 rate=0.7",
    ),
    5: (
        "3x128 128x16", "3x128 256x8", "3x192 128x16", "3x160 256x8", "4x128 256x12",
        "4x192 128x16", "4x192 256x8", "4x192 128x24", "4x256 128x16", "6x192 128x16",
        "3x160 256x8 rate=1.4", "3x160 256x8 rate=0.7",
    ),
    20: (
        "3x192 256x12", "4x192 256x8", "4x192 256x16", "4x256 256x8", "4x256 256x16",
        "5x256 256x8", "5x256 128x24", "6x256 256x12", "6x384 256x8", "4x256 256x16 rate=0.7",
        "4x256 256x16 dropout=0.1", "6x384 256x8 dropout=0.1",
    ),
}  # fmt: skip
TIME_TOLERANCE, LOSS_TOLERANCE = 0.03, 0.02


class Result(NamedTuple):
    name: str
    seconds: float
    loss: float
    parameters: int
    iterations: int


def flags_of(setting: str) -> list[str]:
    """The flags of layers x width, context x batch, and what else a setting names."""
    size, data, *others = setting.split()
    layers, width = map(int, size.split("x"))
    context, batch = map(int, data.split("x"))
    settings: dict[str, object] = {
        "n_layer": layers,
        "n_embd": width,
        "n_head": 6 if width == 384 else width // 32,
        "n_inner": 2 * width,
        "block_size": context,
        "batch_size": batch,
    }
    for name, value in (other.split("=") for other in others):
        if name == "rate":
            quick = read_recipe("quick")
            for rate in ("learning_rate", "embedding_lr", "muon_lr"):
                settings[rate] = round(float(value) * quick[rate].value, 5)
        else:
            settings[name] = value
    return ["--recipe=quick", *(f"--{key}={value}" for key, value in settings.items())]


def train(name: str, dataset: str, minutes: float, flags: list[str]) -> Result | None:
    """None if the run was refused."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        command = [sys.executable, "-m", "stepglass", "train", dataset, f"--minutes={minutes:g}"]
        began = time.monotonic()
        done = subprocess.run(
            [*command, f"--out_dir={out}", *flags], check=False, capture_output=True, text=True
        )
        seconds = time.monotonic() - began
        if done.returncode:
            print(f"{name}: {done.stderr.strip()}", file=sys.stderr)
            return None
        records = [json.loads(line) for line in (out / "run.jsonl").read_text().splitlines()]
        evals = [record for record in records if record["kind"] == "eval"]
        parameters = records[0]["model"]["parameters"]
        return Result(name, seconds, evals[-1]["val_loss"], parameters, evals[-1]["iter"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset")
    parser.add_argument("--minutes", type=int, choices=sorted(HAND), default=1)
    parser.add_argument("--only", default="chosen,recipes,hand")
    args = parser.parse_args()
    runs = {"chosen": {"chosen": []}}
    runs["recipes"] = {f"--recipe={name}": [f"--recipe={name}"] for name in RECIPES}
    runs["hand"] = {setting: flags_of(setting) for setting in HAND[args.minutes]}
    found: dict[str, list[Result]] = {}
    print("| run | loss | seconds | parameters | iterations |\n|---|---|---|---|---|")
    for kind in args.only.split(","):
        found[kind] = []
        for name, flags in runs[kind].items():
            result = train(name, args.dataset, args.minutes, flags)
            if result is not None:
                found[kind].append(result)
                print(f"| {name} | {result.loss:.4f} | {result.seconds:.1f} | "
                      f"{result.parameters:,} | {result.iterations} |", flush=True)  # fmt: skip
    return verdict(found, args.minutes * 60)


def verdict(found: dict[str, list[Result]], seconds: float) -> int:
    """Compare what was chosen with the others. The exit code."""
    if not found.get("chosen"):
        return 0
    chosen = found["chosen"][0]
    late = chosen.seconds / seconds - 1
    print(f"\nended {late:+.1%} from its time; {TIME_TOLERANCE:.0%} are allowed")
    is_right = abs(late) <= TIME_TOLERANCE
    if found.get("hand"):
        best = min(found["hand"], key=lambda result: result.loss)
        print(f"{chosen.loss - best.loss:+.4f} from the best by hand ({best.name}); "
              f"+{LOSS_TOLERANCE} is allowed")  # fmt: skip
        is_right &= chosen.loss <= best.loss + LOSS_TOLERANCE
    if found.get("recipes"):
        best = min(found["recipes"], key=lambda result: result.loss)
        print(
            f"{chosen.loss - best.loss:+.4f} from the best recipe ({best.name}); below 0 is right"
        )
        is_right &= chosen.loss < best.loss
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
