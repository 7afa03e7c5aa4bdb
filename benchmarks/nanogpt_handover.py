"""Goes on with nanoGPT's training from its ckpt.pt, and gives the checkpoint back.

    NANOGPT_DIR=../nanoGPT python benchmarks/nanogpt_handover.py [--seeds=1,2,3]

For each seed nanoGPT's train.py makes 100 updates of Shakespeare's characters, on a CPU. From its
ckpt.pt there are three ways to update 200: nanoGPT's own `--init_from=resume`, ours after
`stepglass import`, and nanoGPT's again after an import and an export, untrained, which must be the
same to the last bit. nanoGPT without a stop makes 200 as well. None of the three can see the
batches that this one sees: a ckpt.pt has no random numbers in it.

All losses are of the whole validation split, computed by nanoGPT's model.py. Ends with exit code 1
if a bit of the hand-over differs, or logits differ by more than 1e-5.
"""

import argparse
import importlib.util
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor

from stepglass.sample.load import load_run

DATA = "data/shakespeare_char"
FILES = ("train.py", "model.py", "configurator.py")
SEED = "torch.manual_seed(1337"  # in train.py
HALF, WHOLE = 100, 200
SMALL = {
    "device": "cpu",
    "compile": False,
    "dataset": "shakespeare_char",
    "block_size": 64,
    "batch_size": 12,
    "n_layer": 2,
    "n_head": 4,
    "n_embd": 64,
    "dropout": 0.0,
    "gradient_accumulation_steps": 1,
    "learning_rate": 1e-3,
    "min_lr": 1e-4,
    "warmup_iters": 10,
    "lr_decay_iters": WHOLE,
    "beta2": 0.99,
    "eval_iters": 5,
    "log_interval": 10,
    "always_save_checkpoint": True,
}


def run(*command: str) -> str:
    """What a program prints. It runs in this folder."""
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"error: {' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def nanogpt(out_dir: str, until: int, **more: object) -> None:
    """Train with nanoGPT until it has made so many updates, and saved them."""
    settings = SMALL | {"out_dir": out_dir, "max_iters": until, "eval_interval": HALF} | more
    run("train.py", *(f"--{key}={value}" for key, value in settings.items()))


def checkpoint(folder: str) -> dict[str, Any]:
    found: dict[str, Any] = torch.load(Path(folder) / "ckpt.pt", weights_only=True)
    return found


def tensors_of(ckpt: dict[str, Any]) -> dict[str, Tensor]:
    """Weights and moments, by nanoGPT's names and numbers."""
    moments = ckpt["optimizer"]["state"].items()
    return {
        **ckpt["model"],
        **{f"{n}.{key}": t for n, parts in moments for key, t in parts.items()},
    }


def same_bits(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(t, other[n]) for n, t in one.items())


def own_moments(run_dir: str, ckpt: dict[str, Any]) -> dict[str, Tensor]:
    """The moments in a run of ours, by nanoGPT's numbers: matrices first, then vectors."""
    path = next(Path(run_dir, "ckpt").glob(f"step-{ckpt['iter_num']:08d}-*"))
    stored = load_file(path / "optim.safetensors")
    weights = {name: w for name, w in ckpt["model"].items() if name != "lm_head.weight"}
    order = sorted(weights, key=lambda name: weights[name].dim() < 2)
    numbers = {name: str(number) for number, name in enumerate(order)}
    split = [(*key.rpartition("."), tensor) for key, tensor in stored.items()]
    return {f"{numbers[name]}.{key}": tensor for name, _, key, tensor in split}


def nanogpts_model(ckpt: dict[str, Any]) -> torch.nn.Module:
    spec = importlib.util.spec_from_file_location("nanogpts_model", "model.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["nanogpts_model"] = module
    spec.loader.exec_module(module)
    model: torch.nn.Module = module.GPT(module.GPTConfig(**ckpt["model_args"]))
    model.load_state_dict(ckpt["model"])
    return model.eval()


@torch.inference_mode()
def val_loss(folder: str) -> float:
    """The mean over all windows of the validation split, each after the one before."""
    model, size = nanogpts_model(checkpoint(folder)), int(str(SMALL["block_size"]))
    ids = torch.from_numpy(np.fromfile(f"{DATA}/val.bin", np.uint16).astype(np.int64))
    count = (len(ids) - 1) // size
    inputs, targets = ids[: count * size].view(-1, size), ids[1 : count * size + 1].view(-1, size)
    batches = zip(inputs.split(128), targets.split(128), strict=True)
    return sum(model(x, y)[1].item() * len(x) for x, y in batches) / count


@torch.inference_mode()
def logits_apart(folder: str, run_dir: str) -> float:
    """How far our logits are from nanoGPT's with the same weights."""
    idx = torch.randint(65, (4, 64), generator=torch.Generator().manual_seed(3))
    theirs, _ = nanogpts_model(checkpoint(folder))(idx, idx)  # targets: logits of every token
    ours = load_run(Path(run_dir), torch.device("cpu"), on_skip=print).model
    return (ours.lm_head(ours.hidden(idx)) - theirs).abs().max().item()


def hand_over(seed: int) -> tuple[dict[str, float], bool]:
    """The four losses of a seed, and whether everything came over."""
    train = Path("train.py").read_text(encoding="utf-8")
    Path("train.py").write_text(train.replace(SEED, f"torch.manual_seed({seed}"))
    nanogpt("whole", WHOLE)
    nanogpt("half", HALF)
    run("-m", "stepglass", "import", "half", "--out_dir=ours")
    run("-m", "stepglass", "export", "ours", "--to=nanogpt", "--out=back")
    half, back = checkpoint("half"), checkpoint("back")
    moments = {n: t for n, t in tensors_of(half).items() if n not in half["model"]}
    came_over = same_bits(moments, own_moments("ours", half))
    came_back = same_bits(tensors_of(half), tensors_of(back))
    apart = logits_apart("half", "ours")
    shutil.copytree("half", "again")
    nanogpt("again", WHOLE, init_from="resume")
    nanogpt("back", WHOLE, init_from="resume")
    same_end = same_bits(tensors_of(checkpoint("again")), tensors_of(checkpoint("back")))
    more = (f"--max_iters={WHOLE}", f"--seed={seed}", "--device=cpu")
    run("-m", "stepglass", "resume", "ours", *more)
    # The best checkpoint would be another one if the last is not it.
    run("-m", "stepglass", "export", "ours", "--to=nanogpt", "--out=ended")
    is_last = checkpoint("ended")["iter_num"] == WHOLE
    losses = {
        "nanoGPT 100": val_loss("half"),
        "nanoGPT 200": val_loss("whole"),
        "nanoGPT 100 + nanoGPT 100": val_loss("again"),
        "nanoGPT 100 + ours 100": val_loss("ended"),
    }
    print(
        f"seed {seed}: {len(moments)} moments of AdamW "
        f"{'are' if came_over else 'are NOT'} the same bits here; the exported ckpt.pt "
        f"{'has' if came_back else 'does NOT have'} the same bits; nanoGPT's next 100 updates from "
        f"it {'end' if same_end else 'do NOT end'} in the same bits; logits at most {apart:.1e} "
        "apart"
    )
    print("  " + "; ".join(f"{name}: {loss:.4f}" for name, loss in losses.items()), flush=True)
    return losses, came_over and came_back and same_end and is_last and apart <= 1e-5


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", default="1,2,3")
    seeds = [int(seed) for seed in parser.parse_args().seeds.split(",")]
    source = Path(os.environ["NANOGPT_DIR"]).resolve()
    if not (source / DATA / "train.bin").exists():
        sys.exit(f"error: {source / DATA} has no train.bin; run: python {DATA}/prepare.py there")
    if SEED not in (source / "train.py").read_text(encoding="utf-8"):
        sys.exit(f"error: {source / 'train.py'} sets its seed in another way")
    rows, right = [], True
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            shutil.copytree(source / DATA, DATA)
            for name in FILES:
                shutil.copy(source / name, name)
            losses, is_right = hand_over(seed)
            os.chdir(source)
        rows.append(losses)
        right &= is_right
    print("\nvalidation loss (whole split), mean and spread over the seeds:")
    for name in rows[0]:
        values = [row[name] for row in rows]
        print(f"  {name:28} {statistics.mean(values):.4f}  {min(values):.4f} to {max(values):.4f}")
    sys.exit(0 if right else 1)


if __name__ == "__main__":
    main()
