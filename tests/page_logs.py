"""Logs and runs whose page is tested, and their reports."""

import math
from pathlib import Path

from nanogpt_run import Run
from stepglass.cli import main
from stepglass.measure import run_log

STALLS = {60: 400.0}


def report(*targets: str, out: str = "page.html", **settings: str) -> str:
    flags = [f"--{key}={value}" for key, value in settings.items()]
    assert main(["report", *targets, "-o", out, *flags]) == 0
    return Path(out).resolve().as_uri()


def nanogpt_log(**changes) -> Run:
    run = Run(**{"num_iters": 400, "eval_interval": 100, "stalls": STALLS, "noise": 0.02} | changes)
    Path("train.log").write_text(run.text)
    return run


def own_run(
    num_iters: int = 60,
    name: str = "out",
    shift: float = 0.0,
    bytes_per_token: float | None = None,
    **changes,
) -> None:
    """A run log as the trainer writes it, from phases that we know. `shift` is added to losses."""
    Path(name).mkdir(exist_ok=True)
    lines = [
        {
            "kind": "start",
            "schema": 1,
            "time": 1_700_000_000.0,
            "argv": ["tiny"],
            "config": {"max_iters": num_iters, "batch_size": 4, "eval_interval": 20} | changes,
            "model": {"parameters": 1000, "flops_per_token": 6000},
            "peak_flops": 1e11,
            "peak_source": "100 GFLOP/s, measured here",
            "tokens_per_iter": 32,
            "data": {"val_bytes_per_token": bytes_per_token},
            "replicas": 7,
        }
    ]
    total: dict[str, float] = {}
    for i in range(num_iters):
        phases = {"data": 0.5, "forward_backward": 30.0 + i % 3, "optimizer": 4.0, "other": 0.1}
        if i % 20 == 0:
            phases |= {"eval": 30.0, "checkpoint": 12.0}
            val = shift + 2 + math.exp(-i / 20)
            lines.append({"kind": "eval", "iter": i, "wall_ms": 30.0, "train_loss": val - 0.1,
                          "val_loss": val, "val_se": 0.02, "windows": 10})  # fmt: skip
            lines.append({"kind": "event", "name": "sample", "iter": i,
                          "detail": {"text": f"<b>sample {i}</b>"}})  # fmt: skip
        for name_, ms in phases.items():
            total[name_] = total.get(name_, 0.0) + ms
        lines.append({"kind": "iter", "iter": i, "loss": shift + 2 + math.exp(-i / 20), "lr": 1e-3,
                      "grad_norm": 1.0, "tokens": 32, "wall_ms": sum(phases.values()),
                      "phases": phases, "mfu": 0.5, "memory_bytes": 1e9})  # fmt: skip
    wall = sum(total.values())
    lines.append({"kind": "end", "reason": "finished", "iter": num_iters,
                  "ledger": {"wall_ms": wall, "phases": total}})  # fmt: skip
    Path(name, "run.jsonl").write_bytes(b"".join(map(run_log.encode, lines)))
