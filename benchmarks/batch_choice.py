"""What `--batch_size=auto` chooses beside the best of all micro-batches, tried one by one.

    python benchmarks/batch_choice.py [--rounds=3]

Every micro-batch that an update can consist of is trained with for a few seconds, by turns. The
choice is right if its updates take at most 5 % longer than the shortest.
"""

import argparse
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from stepglass.settings.train import TrainConfig
from stepglass.train.batch_probe import sizes_to_try
from time_model import make_tokens, quick_of, trained, update_times

TOLERANCE = 0.05
ROUND_S = 4.0  # of updates, about
ROWS = 48  # sequences in an update
MODELS = {
    "quick 0.5M": {"n_layer": 3, "n_embd": 128, "n_head": 4, "n_inner": 256, "block_size": 64},
    "modern 1.5M": {"n_layer": 4, "n_embd": 192, "n_head": 6, "n_inner": 384, "block_size": 128},
    "gpt2 0.8M": {"model": "gpt2", "n_layer": 4, "n_embd": 128, "n_head": 4, "block_size": 256},
}


def settings_of(folder: Path, model: str) -> dict[str, object]:
    optimizer = "adamw" if MODELS[model].get("model") == "gpt2" else "muon"
    return {"dataset": folder / "tokens", "optimizer": optimizer, **MODELS[model]}


def chosen_batch(folder: Path, model: str) -> int:
    """`auto` keeps the number of sequences: those of the default batch, times the steps."""
    steps = ROWS // TrainConfig().batch_size
    auto = {"batch_size": "auto", "gradient_accumulation_steps": steps, "max_iters": 2}
    cfg = trained(folder, settings_of(folder, model) | auto)[0]["config"]
    assert cfg["batch_size"] * cfg["gradient_accumulation_steps"] == ROWS
    return int(cfg["batch_size"])


def times_of(folder: Path, model: str, batch_size: int, iters: int) -> list[float]:
    steps = ROWS // batch_size
    given = {"batch_size": batch_size, "gradient_accumulation_steps": steps, "max_iters": iters}
    return update_times(trained(folder, settings_of(folder, model) | given))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    worst = 0.0
    print("| model | chosen | its update, ms | the best | its update, ms | longer by |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_tokens(folder / "tokens", 65)
        for model in MODELS:
            chosen = chosen_batch(folder, model)
            times: dict[int, list[float]] = defaultdict(list)
            for _ in range(rounds):
                for size in sizes_to_try(ROWS, ROWS):
                    pace_ms = quick_of(times[size]) if times[size] else 500.0
                    iters = 6 + int(ROUND_S * 1000 / pace_ms)
                    times[size] += times_of(folder, model, size, iters)
            found = {size: quick_of(each) for size, each in times.items()}
            best = min(found, key=lambda size: found[size])
            longer = found[chosen] / found[best] - 1
            worst = max(worst, longer)
            print(f"| {model} | {chosen} | {found[chosen]:.1f} | {best} | {found[best]:.1f} | "
                  f"{longer:.0%} |", flush=True)  # fmt: skip
    print(f"\nat most {worst:.0%} longer than the best; {TOLERANCE:.0%} are allowed")
    return int(worst > TOLERANCE)


if __name__ == "__main__":
    sys.exit(main())
