"""`--minutes=N` beside settings tried by hand and the shipped recipes, for the same time.

    python benchmarks/minutes.py DATASET --minutes=5 --results=minutes.jsonl

First comes a run of N minutes with the whole machine to itself. Its time is that from the start of
the process to its end. For the others, the time becomes work: updates of each are timed, by turns
with updates of the model that was chosen, with the machine to itself. Each then gets as many as
take as long as those of the chosen run. So they can run beside each other, one on each core, on a
busy machine, or on another machine.

All losses are those of the last weights over the whole validation split. Runs of more than a minute
are stopped early if they are clearly behind what was chosen; that is printed.
Every result is a line of the results file, and nothing in it is run again. What was chosen is right
if it ends within 3 % of its time, at most 0.02 above the best of those tried by hand, and below
every recipe.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np

from stepglass.settings.command_line import read_recipe
from stepglass.train.fit_to_time import MAY_CHANGE
from time_model import quick_of, update_times

RECIPES = (
    "quick", "quick_gpt2", "speedrun_cpu", "shakespeare_char", "shakespeare_char_gpt2", "gpt2",
    "gpt2_modern",
)  # fmt: skip
# Layers x width, context x batch, for characters.
HAND = {
    1: (
        "3x128 64x24", "3x128 128x16", "2x128 128x16", "2x128 256x8", "3x128 256x8", "2x96 128x16",
        "3x96 128x16", "4x128 128x16", "3x160 128x12", "3x160 256x8", "3x128 128x16 rate=1.4",
        "3x128 128x16 rate=0.7",
    ),
    5: (
        "3x128 128x16", "3x128 256x8", "3x192 128x16", "3x160 256x8", "4x128 256x12",
        "4x192 128x16", "4x192 256x8", "4x192 256x12", "4x256 256x16", "6x192 128x16",
        "4x192 256x8 rate=1.4", "4x192 256x8 rate=0.7",
    ),
    20: (
        "3x192 256x12", "4x192 256x8", "4x192 256x16", "4x256 256x8", "4x256 256x16",
        "5x256 256x8", "5x256 128x24", "6x256 256x12", "6x384 256x8", "4x256 256x16 rate=0.7",
        "4x256 256x16 dropout=0.1", "6x384 256x8 dropout=0.1",
    ),
}  # fmt: skip
# A head of some thousand rows makes every update longer, so smaller models are better.
HAND_BPE = {
    1: (
        "1x64 64x24", "2x64 32x48", "2x64 64x24", "2x64 64x16", "2x64 64x48", "2x64 128x16",
        "3x64 64x24", "2x96 64x24", "2x96 128x16", "3x96 128x16", "2x64 64x24 rate=1.4",
        "2x64 64x24 rate=0.7",
    ),
    5: (
        "2x96 128x16", "3x96 128x16", "3x96 128x32", "3x128 64x24", "3x128 128x16", "3x128 256x8",
        "3x160 128x16", "4x160 128x16", "3x192 256x8", "4x192 128x16", "3x160 256x8 rate=1.4",
        "3x160 256x8 rate=0.7",
    ),
    20: (
        "3x128 128x16", "3x160 256x8", "3x192 256x8", "4x192 128x24", "4x192 256x8", "4x192 256x12",
        "4x256 128x16", "4x256 256x8", "4x256 256x16", "5x320 256x12", "4x192 256x12 rate=1.4",
        "4x192 256x12 rate=0.7",
    ),
}  # fmt: skip
LARGE_VOCABULARY = 1000
TIME_TOLERANCE, LOSS_TOLERANCE = 0.03, 0.02
# A run is stopped if it is so far behind what was chosen, and would be at its end if the distance
# went on as in its last evaluations. The distance alone says little: small models are in front for
# half of their time, by 0.3 at most, and end far behind. The learning rates fall from 40 % on, and
# only then the distances show where they go.
BEHIND, BEHIND_FROM, LAST_EVALUATIONS = 0.04, 0.55, 4
BEHIND_MINUTES = 2
EVALUATIONS, LOOK_S = 16, 2.0
PACE_MINUTES = (0.15, 0.6)  # runs in which updates are timed: a longer one if there were few
PACE_UPDATES, PACE_WITHIN_S = 5, 60.0  # or it is a model that this machine cannot train in minutes
PACE_TURN = 3  # so many others are timed between two looks at what was chosen

Result = dict[str, Any]
Curve = list[tuple[float, float]]  # validation losses after shares of the updates


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


def command_of(folder: Path, dataset: str, flags: list[str]) -> list[str]:
    return [sys.executable, "-m", "stepglass", "train", dataset, f"--out_dir={folder}", *flags]


def records_in(folder: Path) -> list[Result]:
    log = folder / "run.jsonl"
    text = log.read_text() if log.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def stepglass(folder: Path, dataset: str, flags: list[str], **options: Any) -> list[Result]:
    """Train in a process of its own, and return the run log."""
    command = command_of(folder, dataset, flags)
    subprocess.run(command, check=True, capture_output=True, text=True, **options)
    return records_in(folder)


def whole_split_loss(folder: Path, dataset: str) -> float:
    # A target loss makes evaluations read the whole validation split. Of the training data, one
    # batch is enough.
    flags = ["--init_from=resume", "--eval_only", "--target_val_loss=1e-9", "--eval_iters=1"]
    records = stepglass(folder, dataset, flags)
    return float([each for each in records if each["kind"] == "eval"][-1]["val_loss"])


def run_chosen(dataset: str, minutes: int) -> Result:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "out"
        began = time.monotonic()
        records = stepglass(folder, dataset, [f"--minutes={minutes}"])
        seconds = time.monotonic() - began
        config = records[0]["config"]
        return {
            "seconds": round(seconds, 2),
            "updates": records[-1]["iter"],
            "parameters": records[0]["model"]["parameters"],
            "settings": {key: config[key] for key in (*MAY_CHANGE, "dropout", "weight_decay")},
            "vocabulary": records[0]["model"]["vocab_size"],
            "curve": curve_of(records, records[-1]["iter"]),
            "loss": whole_split_loss(folder, dataset),
        }


def pace_ms(dataset: str, flags: list[str]) -> float | None:
    """The time of an update with the whole machine. None if that is too long for this machine."""
    for minutes in PACE_MINUTES:
        with tempfile.TemporaryDirectory() as name:
            try:
                options = [*flags, f"--minutes={minutes}", "--compile=False"]
                records = stepglass(Path(name) / "out", dataset, options, timeout=PACE_WITHIN_S)
            except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
                return None
        times = update_times(records)
        if len(times) >= PACE_UPDATES:
            return quick_of(times)
    return None


def curve_of(records: list[Result], updates: int) -> Curve:
    """The validation losses of a run, after shares of its updates."""
    return [
        (each["iter"] / updates, each["val_loss"]) for each in records if each["kind"] == "eval"
    ]


def how_far_behind(curve: Curve, chosen: Curve) -> tuple[float, float]:
    """How far the loss of a setting is above that of what was chosen after the same share of its
    updates, and how far it will be at the end if that goes on as in the last evaluations."""
    shares, losses = np.array(curve[-LAST_EVALUATIONS:]).T
    distances = losses - np.interp(shares, *np.array(chosen).T)
    slope, at_zero = np.polyfit(shares, distances, 1)
    return float(distances[-1]), float(at_zero + slope)


def is_clearly_behind(curve: Curve, chosen: Curve) -> bool:
    """Whether a run may be stopped, because it cannot end in front of what was chosen."""
    if len(curve) < LAST_EVALUATIONS or curve[-1][0] < BEHIND_FROM:
        return False
    return min(how_far_behind(curve, chosen)) > BEHIND


def run_for(dataset: str, flags: list[str], updates: int, threads: int, chosen: Result) -> Result:
    """A run of so many updates. It is stopped if it is clearly behind what was chosen."""
    may_stop = chosen["minutes"] >= BEHIND_MINUTES
    every = math.ceil(updates / EVALUATIONS) if may_stop else 100_000_000
    settings = [f"--max_iters={updates}", f"--eval_interval={every}", f"--threads={threads}"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "out"
        command = command_of(folder, dataset, [*flags, *settings, "--compile=False"])
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            while process.poll() is None:
                time.sleep(LOOK_S)
                curve = curve_of(records_in(folder), updates)
                if may_stop and is_clearly_behind(curve, chosen["curve"]):
                    process.kill()
                    behind, expected = how_far_behind(curve, chosen["curve"])
                    result = {"stopped_at": curve[-1][0], "behind": behind, "expected": expected}
                    return result | {"updates": updates, "curve": curve}
        records = records_in(folder)
        return {
            "loss": whole_split_loss(folder, dataset),
            "parameters": records[0]["model"]["parameters"],
            "updates": updates,
            "curve": curve_of(records, updates),
        }


class Table:
    """The results of one data set and time, kept in a file that has those of others too."""

    def __init__(self, path: Path, dataset: str, minutes: int) -> None:
        self.path, self.key = path, {"dataset": dataset, "minutes": minutes}
        self.results: list[Result] = []
        for line in path.read_text().splitlines() if path.exists() else ():
            found = json.loads(line)
            if self.key.items() <= found.items():
                self.results.append(found)

    def of(self, kind: str) -> list[Result]:
        return [each for each in self.results if each["kind"] == kind]

    def has(self, kind: str, name: str) -> bool:
        return any(each["name"] == name for each in self.of(kind))

    def add(self, kind: str, name: str, found: Result) -> None:
        result = self.key | {"kind": kind, "name": name} | found
        self.results.append(result)
        with self.path.open("a") as file:
            print(json.dumps(result), file=file)
        show(result)


def show(result: Result) -> None:
    if "loss" in result:
        loss, parameters = f"{result['loss']:.4f}", f"{result['parameters']:,}"
        print(f"| {result['name']} | {loss} | {parameters} | {result['updates']} |", flush=True)
    elif "behind" in result:
        stopped = f"{result['behind']:.2f} behind at {result['stopped_at']:.0%}: stopped"
        if "expected" in result:
            stopped += f", {result['expected']:.2f} expected at the end"
        print(f"| {result['name']} | {stopped} | | {result['updates']} |", flush=True)


def measure_paces(table: Table, others: dict[str, list[str]]) -> None:
    """Time an update of each, and one of what was chosen again and again, because machines change
    their speed."""
    dataset = table.key["dataset"]
    chosen = [f"--{key}={value}" for key, value in table.of("chosen")[0]["settings"].items()]
    missing = [name for name in others if not table.has("pace", name)]
    for index, name in enumerate(missing):
        if index % PACE_TURN == 0:
            chosen_ms = pace_ms(dataset, chosen)
        table.add("pace", name, {"ms": pace_ms(dataset, others[name]), "chosen_ms": chosen_ms})


def run_others(table: Table, others: dict[str, list[str]], jobs: int) -> None:
    """Give each of these settings the work of the chosen run."""
    relative = {
        each["name"]: each["chosen_ms"] / each["ms"] for each in table.of("pace") if each["ms"]
    }
    chosen = table.of("chosen")[0]
    threads = max(1, (os.cpu_count() or 1) // jobs)
    with ThreadPoolExecutor(jobs) as pool:
        running = {}
        for name, flags in others.items():
            updates = round(chosen["updates"] * relative.get(name, 0.0))
            if updates and not table.has("other", name):
                run = pool.submit(run_for, table.key["dataset"], flags, updates, threads, chosen)
                running[run] = name
        for run in as_completed(running):
            table.add("other", running[run], run.result())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset")
    parser.add_argument("--minutes", type=int, choices=sorted(HAND), default=1)
    parser.add_argument("--results", type=Path, default=Path("minutes.jsonl"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="at the same time")
    parser.add_argument("--only-paces", action="store_true", help="leave the others for later")
    args = parser.parse_args()
    table = Table(args.results, args.dataset, args.minutes)
    print("| run | loss | parameters | updates |\n|---|---|---|---|")
    for result in table.results:
        show(result)
    if not table.of("chosen"):
        table.add("chosen", "chosen", run_chosen(args.dataset, args.minutes))
    is_large = table.of("chosen")[0]["vocabulary"] > LARGE_VOCABULARY
    others = {name: flags_of(name) for name in (HAND_BPE if is_large else HAND)[args.minutes]}
    others |= {f"recipe {name}": [f"--recipe={name}"] for name in RECIPES}
    measure_paces(table, others)
    if args.only_paces:
        return 0
    run_others(table, others, args.jobs)
    return verdict(table)


def verdict(table: Table) -> int:
    """Compare what was chosen with the others. The exit code."""
    chosen = table.of("chosen")[0]
    late = chosen["seconds"] / (60 * table.key["minutes"]) - 1
    print(f"\nended {late:+.1%} from its time; {TIME_TOLERANCE:.0%} are allowed")
    by_kind: dict[str, list[Result]] = {"hand": [], "recipe": []}
    for each in (result for result in table.of("other") if "loss" in result):
        by_kind["recipe" if each["name"].startswith("recipe") else "hand"].append(each)
    over = {}
    for kind, allowed in (("hand", f"+{LOSS_TOLERANCE}"), ("recipe", "less than 0")):
        if not by_kind[kind]:
            over[kind] = -math.inf
            print(f"every {kind} was clearly behind, and stopped")
            continue
        best = min(by_kind[kind], key=lambda result: float(result["loss"]))
        over[kind] = chosen["loss"] - best["loss"]
        print(f"{over[kind]:+.4f} from the best {kind} ({best['name']}); {allowed} is allowed")
    is_right = over["hand"] <= LOSS_TOLERANCE and over["recipe"] < 0
    return int(abs(late) > TIME_TOLERANCE or not is_right)


if __name__ == "__main__":
    sys.exit(main())
