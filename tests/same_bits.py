"""The same runs before and after a change that must change nothing.

    python tests/same_bits.py write FILE [COMMAND]     with the code as it was
    python tests/same_bits.py compare FILE [COMMAND]   with the code as it is

COMMAND is how stepglass is started, `stepglass` if it is left out. Ten small runs: both models, one
model and replicas, float16 with its scaler, dropout, accumulation, a run that is stopped and
resumed. Compared are the sha256 of weights, optimizer and generators, and every number in the run
log that does not measure time. Nothing of the package is imported: its names may be what changed.
"""

import hashlib
import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

TEXT = "To be, or not to be, that is the question:\nWhether 'tis nobler in the mind\n" * 80
COMMON = {
    "recipe": "none", "dataset": "tiny", "device": "cpu", "n_layer": 2, "n_head": 2, "n_embd": 32,
    "block_size": 16, "batch_size": 8, "gradient_accumulation_steps": 1, "max_iters": 12,
    "eval_interval": 4, "eval_iters": 3, "warmup_iters": 2, "lr_decay_iters": 12,
    "learning_rate": 1e-2, "min_lr": 1e-3, "compile": False,
}  # fmt: skip
CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "modern": {},
    "gpt2": {"model": "gpt2", "bias": True},
    "modern, one model": {"threads": 1},
    "gpt2, one model": {"model": "gpt2", "threads": 1},
    "modern, dropout, accumulation": {"dropout": 0.2, "gradient_accumulation_steps": 3},
    "gpt2, dropout": {"model": "gpt2", "dropout": 0.2},
    "float16 with a scaler": {"model": "gpt2", "dtype": "float16", "threads": 1},
    "modern, AdamW, grouped heads": {"optimizer": "adamw", "n_kv_head": 1, "tie_weights": True},
    "trapezoid, embedding rate": {
        "lr_schedule": "trapezoid", "cooldown_iters": 6, "embedding_lr": 0.02, "grad_clip": 0.5,
    },
    "stopped and resumed": {"stops_at": 5, "dropout": 0.1, "checkpoint_interval": 5},
}  # fmt: skip
NOT_MEASURED = ("iter", "loss", "lr", "grad_norm", "tokens", "train_loss", "val_loss", "val_se",
                "windows", "reason", "is_best", "name", "kind")  # fmt: skip


def train(command: list[str], settings: dict[str, Any], threads: int) -> None:
    flags = [f"--{key}={value}" for key, value in settings.items()]
    environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
    done = subprocess.run(
        [*command, "train", *flags], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def outcome(out_dir: Path) -> dict[str, Any]:
    """What a run has left that is not a time."""
    newest = sorted(path for path in (out_dir / "ckpt").iterdir() if path.name.startswith("step"))
    found: dict[str, Any] = {}
    for name in ("model", "optim", "rank-00000"):
        data = (newest[-1] / f"{name}.safetensors").read_bytes()
        found[name] = hashlib.sha256(data).hexdigest()
    records = [json.loads(line) for line in (out_dir / "run.jsonl").read_text().splitlines()]
    found["log"] = [
        {key: record[key] for key in NOT_MEASURED if key in record}
        for record in records
        # Whether a save had to wait, and whether a peak was measured again, is the machine's doing.
        if record.get("name") not in ("checkpoint_wait", "peak")
    ]
    found["log"].sort(key=lambda record: (record.get("iter", -1), json.dumps(record)))
    return found


def run_all(command: list[str]) -> dict[str, Any]:
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("text.txt").write_text(TEXT)
        prepare = [*command, "prepare", "text.txt", "--name=tiny"]
        subprocess.run(prepare, check=True, stdout=subprocess.DEVNULL)
        for number, (name, changes) in enumerate(CONFIGURATIONS.items()):
            settings = COMMON | changes | {"out_dir": f"out-{number}"}
            threads, stops_at = settings.pop("threads", 2), settings.pop("stops_at", None)
            if stops_at is not None:
                train(command, settings | {"max_iters": stops_at}, threads)
                again = {"out_dir": settings["out_dir"], "init_from": "resume"}
                train(command, again | {"max_iters": settings["max_iters"]}, threads)
            else:
                train(command, settings, threads)
            found[name] = outcome(Path(f"out-{number}"))
    return found


def main(words: list[str]) -> int:
    verb, path = words[0], Path(words[1]).absolute()
    found = run_all(shlex.split(words[2]) if len(words) > 2 else ["stepglass"])
    if verb == "write":
        path.write_text(json.dumps(found, indent=1))
        return 0
    before = json.loads(path.read_text())
    is_same = True
    for name in CONFIGURATIONS:
        different = [key for key in found[name] if found[name][key] != before[name][key]]
        is_same = is_same and not different
        verdict = f"DIFFERENT: {', '.join(different)}" if different else "the same"
        sys.stdout.write(f"{name:<34}{verdict:<16} weights {found[name]['model'][:12]}\n")
    return 0 if is_same else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
